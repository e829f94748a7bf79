"""`python -m evidence.fuzz`: a seed makes the same cases again, the grading survives some, and failures are seen."""

from __future__ import annotations

import os
import random
import types

import pytest

from evidence.fuzz import __main__ as fuzz
from evidence.fuzz import descriptions, notebooks, ptx


@pytest.mark.parametrize("target", [descriptions, notebooks, ptx])
def test_a_seed_makes_the_same_cases_again(target):
    made, again, others = ([target.make(random.Random(f"{seed}:{n}")) for n in range(20)] for seed in (1, 1, 2))
    assert repr(made) == repr(again)
    assert repr(made) != repr(others)


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_some_cases_of_each_kind_cost_no_more_than_their_test(target, capsys):
    found = fuzz.tried(target, seed=5, first=0, count=15, seconds=None, show=False)
    assert [found[what] for what in fuzz.FAILURES] == [0, 0, 0], capsys.readouterr().out
    assert sum(found["ends"].values()) == found["cases"] == 15


def test_an_exception_a_crash_and_a_hang_are_told_with_the_command_that_repeats_them(monkeypatch, capsys):
    def attempt(case: int) -> tuple[str, str]:
        if case == 1:
            raise KeyError("window_None")
        if case == 2:
            os._exit(3)
        while case == 3:
            pass
        return "right", ""

    broken = types.SimpleNamespace(prepare=lambda: None, attempt=attempt, shown=str)
    broken.make = lambda text: int(text.partition(":")[2])
    monkeypatch.setattr(fuzz, "HANG", 0.3)
    monkeypatch.setattr(fuzz.random, "Random", lambda text: text)
    monkeypatch.setattr(fuzz.importlib, "import_module", lambda name: broken)
    found = fuzz.tried("broken", seed=9, first=0, count=6, seconds=None, show=False)
    assert [found[what] for what in fuzz.FAILURES] == [1, 1, 1]
    assert found["ends"] == {"right": 3}
    told = capsys.readouterr().out
    assert "window_None" in told
    for number in (1, 2, 3):
        assert f"python -m evidence.fuzz broken --seed 9 --first {number} --count 1 --show" in told
