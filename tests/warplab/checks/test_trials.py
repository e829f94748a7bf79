"""`checks.trials`: each trial has its own seed, which a failure names and which repeats it."""

import re

import pytest

from warplab import checks


def test_every_trial_draws_anew(capsys):
    drawn = []
    checks.trials("double", lambda rng: drawn.append(int(rng.integers(2**32))), 7)
    assert len(set(drawn)) == 7
    assert capsys.readouterr().out == "double: right for 7 inputs.\n"


def test_the_seed_of_a_failure_repeats_it():
    def check(rng):
        if rng.random() < 0.5:
            raise checks.CheckFailed("double is wrong.", expected="2", got="1", where="x = 1", kind="not finite")

    with pytest.raises(checks.CheckFailed) as caught:
        checks.trials("double", check, 60)  # that all of them pass happens once in 2**60 runs
    failed = caught.value
    assert (failed.problem, failed.expected, failed.got, failed.kind) == ("double is wrong.", "2", "1", "not finite")
    seed = int(re.fullmatch(r"x = 1, seed (\d+)", failed.where)[1])
    with pytest.raises(checks.CheckFailed, match=f"seed {seed}"):
        checks.trials("double", check, seed=seed)


def test_what_the_answer_raises_is_its_failure():
    with pytest.raises(checks.CheckFailed, match=r"double raises ZeroDivisionError: (.|\n)*input +seed \d+") as caught:
        checks.trials("double", lambda rng: 1 / 0)
    assert caught.value.kind == "exception"


def test_no_trial_is_a_mistake_of_the_exercise():
    with pytest.raises(ValueError, match="count is 0; at least one trial must run"):
        checks.trials("double", print, 0)
