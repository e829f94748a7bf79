"""Verdicts kept from an earlier run: taken for the same texts and code alone, and only where that is wanted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.support import verdicts
from tests.support.exercise_harness import Session
from warplab.hardware import backend


@pytest.fixture
def compute(monkeypatch, tmp_path):
    """Verdicts in a folder of their own; what computes one returns how often it has run."""
    monkeypatch.setattr(verdicts, "FOLDER", tmp_path / "verdicts")
    monkeypatch.setattr(verdicts, "_wanted", lambda: True)
    monkeypatch.setattr(verdicts, "BEGUN", float("inf"))
    monkeypatch.setattr(verdicts, "taken", 0)
    monkeypatch.setattr(verdicts, "saved", 0.0)
    runs = []

    def compute() -> dict[str, str]:
        runs.append(None)
        return {"a-test": f"run {len(runs)}"}

    return compute


def test_the_same_texts_are_computed_once(compute):
    assert [verdicts.verdict(["seed", "answer"], compute) for _ in range(2)] == [{"a-test": "run 1"}] * 2
    assert verdicts.verdict(["seed", "another"], compute) == {"a-test": "run 2"}
    assert verdicts.verdict(["seedan", "swer"], compute) == {"a-test": "run 3"}
    assert verdicts.taken == 1


def test_other_code_is_computed_anew(compute, monkeypatch, tmp_path):
    monkeypatch.setattr(verdicts, "COURSE", tmp_path)
    (tmp_path / "warplab").mkdir()
    (tmp_path / "kernels" / "a_lab").mkdir(parents=True)
    plain, of_a_lab = ["x = 1"], ["from kernels.a_lab import x"]
    expected = []
    for changed in ("warplab/a.py", "kernels/a_lab/a.cu", "kernels/b.py"):
        (tmp_path / changed).write_text("changed")
        verdicts._hash.cache_clear()
        expected.append([verdicts.verdict(texts, compute)["a-test"] for texts in (plain, of_a_lab)])
    verdicts._hash.cache_clear()
    assert expected == [["run 1", "run 2"], ["run 1", "run 3"], ["run 1", "run 3"]]


def test_a_lab_is_known_however_a_cell_imports_it():
    every = [verdicts._folders(cell) for cell in ("import kernels.a_lab.x", "from kernels import a_lab", "n = 1")]
    assert every == [{"warplab", "warpcourse", f} for f in ("kernels/a_lab", "kernels")] + [{"warplab"}]
    assert verdicts._folders("from warpcourse.bench import timing") == {"warplab", "warpcourse"}


def test_none_is_kept_of_code_that_was_edited_during_the_run(compute, monkeypatch, tmp_path):
    """Its module may have been imported before the edit, and the hash be of the file after it."""
    monkeypatch.setattr(verdicts, "COURSE", tmp_path)
    monkeypatch.setattr(verdicts, "BEGUN", 0.0)
    (tmp_path / "warplab").mkdir()
    verdicts._hash.cache_clear()
    assert [verdicts.verdict(["a"], compute)["a-test"] for _ in range(2)] == ["run 1", "run 1"]
    (tmp_path / "warplab" / "a.py").write_text("edited")
    assert [verdicts.verdict(["b"], compute)["a-test"] for _ in range(2)] == ["run 2", "run 3"]
    verdicts._hash.cache_clear()


def test_ctrl_c_in_a_cell_is_no_verdict():
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    with pytest.raises(KeyboardInterrupt):
        Session.run(SimpleNamespace(shell=shell), "raise KeyboardInterrupt")
    assert Session.run(SimpleNamespace(shell=shell), "1 / 0") == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(("name", "value"), [("WARPLAB_VERDICTS", "off"), ("CI", "true")])
def test_none_is_wanted_where_all_shall_run(monkeypatch, name, value):
    for off in ("WARPLAB_VERDICTS", "CI"):
        monkeypatch.delenv(off, raising=False)
    assert verdicts._wanted.__wrapped__() == (backend.name() == "simulator")
    monkeypatch.setenv(name, value)
    assert not verdicts._wanted.__wrapped__()


def test_what_a_kept_verdict_took_is_told_once(compute):
    verdicts.verdict(["a text"], lambda: sum(range(10**6)) and {})
    verdicts.verdict(["a text"], compute)
    assert verdicts.seconds_saved() > 0
    assert verdicts.seconds_saved() == 0
