"""`make exercises`: what is written, what counts as out of date, exit codes."""

from __future__ import annotations

import nbformat

from tests.support.sample import SAMPLE, sample_source
from tools import release_exercises


def test_release_writes_and_compares(tmp_path):
    source = tmp_path / "solutions" / SAMPLE
    source.mkdir(parents=True)
    nbformat.write(sample_source(), source / f"{SAMPLE}.ipynb")
    (source / "data.csv").write_text("1,2\n")
    assert release_exercises.out_of_date(SAMPLE, tmp_path) == [
        f"{SAMPLE}/data.csv: missing",
        f"{SAMPLE}/{SAMPLE}.ipynb: missing",
    ]
    release_exercises.write(SAMPLE, tmp_path)
    assert release_exercises.out_of_date(SAMPLE, tmp_path) == []
    written = tmp_path / "exercises" / SAMPLE
    (written / "data.csv").write_text("3\n")
    (written / "old.txt").write_text("")
    assert release_exercises.out_of_date(SAMPLE, tmp_path) == [
        f"{SAMPLE}/old.txt: not in solutions/",
        f"{SAMPLE}/data.csv: differs",
    ]
    release_exercises.write(SAMPLE, tmp_path)
    assert release_exercises.out_of_date(SAMPLE, tmp_path) == []


def test_check_tells_of_stale_files_and_writes_nothing(monkeypatch, capsys):
    stale = {SAMPLE: [f"{SAMPLE}/data.csv: differs"]}
    monkeypatch.setattr(release_exercises, "topics", lambda: list(stale))
    monkeypatch.setattr(release_exercises, "out_of_date", stale.get)
    assert release_exercises.main(["--check"]) == 1
    assert capsys.readouterr() == (
        f"{SAMPLE}/data.csv: differs\n",
        "exercises/ is out of date; run `make exercises`.\n",
    )
    stale[SAMPLE] = []
    assert release_exercises.main(["--check"]) == 0
    assert capsys.readouterr().out == "exercises/ is up to date.\n"
