"""Generated classes of the sample exercise, and the functions of grading_speed on a class small enough for a test."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter

import pytest

from tests.support.class_harness import HOSTILE, generated_class
from tests.support.grading_harness import HereWorkers
from tests.support.sample import SAMPLE
from tools import grading_speed
from warplab.grading.course import grade_command
from warplab.grading.course.nbgrader_course import Course


@pytest.mark.sandbox
def test_a_hostile_class_has_every_attack_and_gets_its_scores(tmp_path, monkeypatch, zygotes):
    students = generated_class(tmp_path, 9, seed=3, hostile=1.0)
    monkeypatch.setattr(grade_command, "LocalWorkers", lambda count: HereWorkers(zygotes))
    assert Counter(student.hostile for student in students).keys() == HOSTILE.keys()
    assert grade_command.main([SAMPLE, "--course", str(tmp_path), "--no-feedback"]) == 0
    assert grading_speed.wrong_scores(tmp_path, students) == []
    assert grading_speed.wrong_statuses(tmp_path, students) == []
    # The checks would notice: another score, another status.
    first = dataclasses.replace(students[0], expected={**students[0].expected, "multiply-fits": 99.0}, status="limit")
    (score,) = grading_speed.wrong_scores(tmp_path, [first, *students[1:]])
    assert score.startswith(f"{first.name} ({first.hostile or 'honest'}): ")
    assert grading_speed.wrong_statuses(tmp_path, [first, *students[1:]]) == [
        f"{first.name} ({first.hostile or 'honest'}): {students[0].status}, expected limit"
    ]


def test_classes_of_one_seed_are_the_same(tmp_path):
    classes = [generated_class(tmp_path / name, 12, seed=3, hostile=0.5) for name in ("one", "two")]
    assert classes[0] == classes[1]
    assert 0 < sum(student.hostile != "" for student in classes[0]) < 12
    names = {name for student in classes[0] for name in student.answers.values()}
    assert {"solution", "blank"} < names
    assert classes[0] != generated_class(tmp_path / "three", 12, seed=4, hostile=0.5)


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
