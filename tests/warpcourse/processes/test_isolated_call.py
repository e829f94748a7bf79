"""A function in a process of its own: its result, its failure, its time limit."""

import os
import subprocess

import pytest

from warpcourse.processes import isolated_call

HERE = "tests.support.isolated"


def test_the_result_comes_back():
    found = isolated_call.call(f"{HERE}:echo", 1, [2.5, "x"])
    assert found["arguments"] == [1, [2.5, "x"]]
    assert found["process"] != os.getpid()


def test_a_process_that_dies_is_an_error_with_its_words():
    with pytest.raises(RuntimeError, match=rf"{HERE}:die ended with code 3 and without a result:\nlast words"):
        isolated_call.call(f"{HERE}:die")


def test_a_process_that_hangs_is_ended():
    with pytest.raises(subprocess.TimeoutExpired):
        isolated_call.call(f"{HERE}:hang", limit=2)
