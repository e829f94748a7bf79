"""The parts of the measurement of the grading's speed, without a class."""

from __future__ import annotations

import sys

import pytest

from evidence import grading_speed
from tests.support.class_harness import generated_class
from warpcourse.grading.course.nbgrader_course import Course


def test_stock_nbgrader_has_nothing_of_the_courses(tmp_path):
    generated_class(tmp_path, 1)
    assert "Autograde" in Course(tmp_path).config
    grading_speed.make_stock(tmp_path)
    assert not {"Autograde", "GenerateFeedback"} & Course(tmp_path).config.keys()


def test_a_command_that_fails_ends_the_measurement_with_what_it_said(tmp_path):
    assert grading_speed.timed([sys.executable, "-c", "import warplab"], tmp_path) > 0
    with pytest.raises(SystemExit, match="ended with status 3:\nno good"):
        grading_speed.timed([sys.executable, "-c", "print('no good'); raise SystemExit(3)"], tmp_path)


def test_the_table_of_seconds():
    text = grading_speed.table(("what", "s", "per minute"), [("ours", 30.0), ("theirs", 120.0)], 60)
    assert text.splitlines()[2:] == ["| `ours` | 30 | 120 |", "| `theirs` | 120 | 30 |"]
