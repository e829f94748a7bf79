"""The autotuner that labs share, with clocks that are made up."""

import json

import pytest

from warpcourse.bench import autotune, timing
from warpcourse.bench.autotune import Autotuner, rank
from warpcourse.bench.timing import Candidate, Timing

ABOUT = {"device": "a GPU", "date": "2026-11-23"}


@pytest.fixture
def clock(monkeypatch):
    """A candidate takes as many seconds as its function returns, in turns with others 100 less a tenth."""

    def together(candidates, **_):
        return {name: Timing.of([100 - one.function() / 10]) for name, one in candidates.items()}

    monkeypatch.setattr(autotune, "time_gpu", lambda function, arguments, runs: Timing.of([function()]))
    monkeypatch.setattr(autotune, "time_together", together)


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(timing, "require_gpu", lambda what: None)
    monkeypatch.setattr(timing, "machine", lambda: dict(ABOUT))


def test_the_fastest_alone_take_turns_and_turns_decide(clock):
    alone, finalists = rank(range(9), lambda i: Candidate(lambda: i), lambda i: "", alone=1, rounds=1, runs=1)
    assert alone == {i: i for i in range(9)}
    assert finalists == {i: 100 - i / 10 for i in (4, 3, 2, 1, 0)}
    assert list(finalists) == [4, 3, 2, 1, 0]


def test_a_wrong_candidate_ends_it(clock):
    wrong = ["", "it is 3"]
    with pytest.raises(RuntimeError, match="1 computes a wrong result: it is 3"):
        rank(range(2), lambda i: Candidate(lambda: i), wrong.__getitem__, alone=1, rounds=1, runs=1)


def test_the_table_has_a_line_for_each_row_and_keeps_what_was_not_named(on_gpu, tmp_path, capsys):
    path = tmp_path / "tiles.json"
    tune = {"few": lambda: 3, "rows": lambda: [{"a": [1, 2]}, {"a": [3]}], "named": lambda: {"²": {"sizes": [1 / 3]}}}
    tuner = Autotuner("made_up", path, tune, "Of nothing.")
    tuner.main([])
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[1:] == [
        ' "device": "a GPU",',
        ' "date": "2026-11-23",',
        ' "few": 3,',
        ' "rows": [',
        '  {"a": [1, 2]},',
        '  {"a": [3]}',
        " ],",
        ' "named": {',
        '  "²": {"sizes": [0.3333]}',
        " }",
        "}",
    ]
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["benchmark"] == "made_up-autotune"
    assert last["figures"]["few"] == 3
    tune["few"] = lambda: 4
    tuner.main(["few"])
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(text) | {"few": 4}
    path.write_text(text.replace("a GPU", "another"), encoding="utf-8")
    tuner.main(["few"])
    assert json.loads(path.read_text(encoding="utf-8")) == ABOUT | {"few": 4}


def test_what_no_gpu_here_can_run_is_left_as_it_was(on_gpu, tmp_path):
    tuner = Autotuner("made_up", tmp_path / "tiles.json", {"one": lambda: None}, "Of nothing.")
    with pytest.raises(SystemExit) as end:
        tuner.main([])
    assert end.value.code == timing.NO_GPU
    assert not list(tmp_path.iterdir())


def test_a_key_that_is_not_there_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        Autotuner("made_up", tmp_path / "tiles.json", {"one": lambda: None}, "Of nothing.").main(["two"])
    assert "there is nothing to tune in two; choose of one" in capsys.readouterr().err
