"""Measurements and tables of all modules of lab 11, gathered."""

import pytest

from kernels.serving import measurements


def test_keys_are_those_of_all_modules():
    assert len(measurements.MEASUREMENTS) == sum(len(module.MEASUREMENTS) for module in measurements.MODULES)
    assert set(measurements.TABLES) <= set(measurements.MEASUREMENTS)
    assert {"sharing_ways", "utilisation"} <= set(measurements.MEASUREMENTS)


def test_a_key_in_two_modules_is_refused():
    with pytest.raises(ValueError, match="two modules measure b; give each measurement a key of its own"):
        measurements.gathered([{"a": 1, "b": 2}, {"b": 3}])
