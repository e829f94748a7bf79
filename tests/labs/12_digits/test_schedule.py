"""Rate policies against the formulas that DIGITS drew them by, worked out by hand; what is wrong is named."""

from __future__ import annotations

import math

import pytest

from digits.files import DigitsError
from digits.training.schedule import POLICIES, checked, rate


@pytest.mark.parametrize(
    ("policy", "step", "wanted"),
    [
        ({"name": "fixed"}, 999, 0.5),
        ({"name": "step", "size": 25, "gamma": 0.1}, 249, 0.5),
        ({"name": "step", "size": 25, "gamma": 0.1}, 250, 0.05),
        ({"name": "step", "size": 25, "gamma": 0.1}, 999, 0.0005),
        ({"name": "multistep", "values": [85, 50], "gamma": 0.5}, 499, 0.5),
        ({"name": "multistep", "values": [85, 50], "gamma": 0.5}, 500, 0.25),
        ({"name": "multistep", "values": [85, 50], "gamma": 0.5}, 850, 0.125),
        ({"name": "exponential", "gamma": 0.95}, 200, 0.5 * 0.95**20),
        ({"name": "inverse", "gamma": 0.1, "power": 0.5}, 300, 0.5 / math.sqrt(4)),
        ({"name": "polynomial", "power": 3}, 500, 0.5 / 8),
        ({"name": "sigmoid", "middle": 50, "gamma": 0.1}, 500, 0.25),
        ({"name": "sigmoid", "middle": 50, "gamma": 0.1}, 600, 0.5 / (1 + math.e)),
        ({"name": "cosine"}, 0, 0.5),
        ({"name": "cosine"}, 500, 0.25),
        ({"name": "cosine"}, 1000, 0.0),
    ],
)
def test_rate_of_a_step(policy, step, wanted):
    assert rate(0.5, checked(policy), step, 1000) == pytest.approx(wanted, abs=1e-15)


def test_defaults_are_those_of_digits():
    assert checked({"name": "step"}) == {"name": "step", "size": 33, "gamma": 0.1, "warm_up": 0}
    assert POLICIES["multistep"].options == {"values": [50, 85], "gamma": 0.5}


def test_warm_up_rises_to_the_base_and_leaves_the_policy_its_form():
    policy = checked({"name": "cosine", "warm_up": 10})
    rising = [rate(1.0, policy, step, 1000) for step in range(100)]
    assert rising == sorted(rising)
    assert rising[0] == pytest.approx(1 / 101)
    assert rate(1.0, policy, 100, 1000) == 1.0
    assert rate(1.0, policy, 550, 1000) == pytest.approx(0.5)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("steps", [1, 2, 7, 1000])
@pytest.mark.parametrize("warm_up", [0, 5, 100])
def test_every_rate_of_a_training_is_a_number_of_the_right_size(name, steps, warm_up):
    policy = checked({"name": name, "warm_up": warm_up})
    rates = [rate(0.1, policy, step, steps) for step in range(steps + 1)]
    assert all(0 <= one <= 0.1 for one in rates)
    assert rates[0] > 0


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"name": "triangle"}, "no learning-rate policy 'triangle'"),
        ("step", "no learning-rate policy 'step'"),
        ({}, "no learning-rate policy None"),
        ({"name": []}, r"no learning-rate policy \[\]"),
        ({"name": "step", "sise": 3}, "no option 'sise'"),
        ({"name": "step", "size": 0}, "size of the policy step must be a number from 0.1 to 100"),
        ({"name": "step", "gamma": "0.1"}, "gamma of the policy step"),
        ({"name": "step", "gamma": math.nan}, "gamma of the policy step"),
        ({"name": "multistep", "values": []}, "list of per cents"),
        ({"name": "multistep", "values": "50,85"}, "list of per cents"),
        ({"name": "multistep", "values": [50, 101]}, "from 0 to 100"),
        ({"name": "cosine", "warm_up": -1}, "warm_up of the policy cosine"),
        ({"name": "exponential", "gamma": True}, "gamma of the policy exponential"),
    ],
)
def test_what_is_wrong_is_named(policy, told):
    with pytest.raises(DigitsError, match=told):
        checked(policy)
