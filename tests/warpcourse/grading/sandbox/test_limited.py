"""Calls under limits of processor time and memory: what exceeds them costs one process, not the caller."""

from __future__ import annotations

import os

import pytest

from warpcourse.grading.sandbox.limited import Limited, TooCostly

HERE = "tests.warpcourse.grading.sandbox.limited_functions"


@pytest.fixture
def limited():
    with Limited(HERE, seconds=1, memory_bytes=256 << 20) as calls:
        yield calls


def test_calls_share_one_process_until_one_is_too_costly(limited):
    first = limited("pid")
    assert first == limited("pid") != os.getpid()
    with pytest.raises(TooCostly, match="more than 1 s of processor time"):
        limited("spin")
    second = limited("pid")
    assert second != first
    with pytest.raises(TooCostly, match="256 MiB of memory"):
        limited("grab", 1 << 30)
    assert limited("pid") not in (first, second)
    with pytest.raises(TooCostly, match="could not be done"):
        limited("abort")
    assert limited("echo", ["\ud800 é", 1.5, None]) == ["\ud800 é", 1.5, None]


def test_memory_below_the_limit_is_there(limited):
    assert limited("grab", 100 << 20) == 100 << 20


def test_time_is_counted_and_can_be_shortened(limited):
    limited("pid")
    assert 0 <= limited.used < 1
    with pytest.raises(TooCostly, match="no processor time is left"):
        limited("pid", seconds=0)


def test_what_a_function_raises_is_told_and_ends_nothing(limited):
    first = limited("pid")
    with pytest.raises(RuntimeError, match="ZeroDivisionError: division by zero"):
        limited("divide", 1, 0)
    assert limited("pid") == first


def test_prints_do_not_come_between_the_answers(limited):
    assert limited("print_and_return", 7) == 7


def test_a_process_that_does_not_start_is_the_graders_fault():
    with Limited("tests.no_such_module", 1, 1 << 28) as calls, pytest.raises(RuntimeError, match="No module named"):
        calls("pid")
