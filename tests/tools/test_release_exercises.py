"""`make exercises`: what is written, what counts as out of date, exit codes."""

from __future__ import annotations

import nbformat

from tests.support.exercise_harness import source_notebook
from tools import release_exercises

TOPIC = "01_vector_multiply"


def test_release_writes_and_compares(tmp_path):
    source = tmp_path / "solutions" / TOPIC
    source.mkdir(parents=True)
    nbformat.write(source_notebook(TOPIC), source / f"{TOPIC}.ipynb")
    (source / "data.csv").write_text("1,2\n")
    assert release_exercises.out_of_date(TOPIC, tmp_path) == [
        f"{TOPIC}/{TOPIC}.ipynb: missing",
        f"{TOPIC}/data.csv: missing",
    ]
    release_exercises.write(TOPIC, tmp_path)
    assert release_exercises.out_of_date(TOPIC, tmp_path) == []
    written = tmp_path / "exercises" / TOPIC
    (written / "data.csv").write_text("3\n")
    (written / "old.txt").write_text("")
    assert release_exercises.out_of_date(TOPIC, tmp_path) == [
        f"{TOPIC}/old.txt: not in solutions/",
        f"{TOPIC}/data.csv: differs",
    ]
    release_exercises.write(TOPIC, tmp_path)
    assert release_exercises.out_of_date(TOPIC, tmp_path) == []


def test_check_tells_of_stale_files_and_writes_nothing(monkeypatch, capsys):
    stale = {TOPIC: [f"{TOPIC}/data.csv: differs"]}
    monkeypatch.setattr(release_exercises, "topics", lambda: list(stale))
    monkeypatch.setattr(release_exercises, "out_of_date", stale.get)
    assert release_exercises.main(["--check"]) == 1
    assert capsys.readouterr() == (f"{TOPIC}/data.csv: differs\n", "exercises/ is out of date; run `make exercises`.\n")
    stale[TOPIC] = []
    assert release_exercises.main(["--check"]) == 0
    assert capsys.readouterr().out == "exercises/ is up to date.\n"
