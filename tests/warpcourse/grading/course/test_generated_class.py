"""Generated classes of the sample exercise."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from tests.support.class_harness import HOSTILE, generated_class, wrong_scores, wrong_statuses
from tests.support.grading_harness import HereWorkers
from tests.support.sample import SAMPLE
from warpcourse.grading.course import grade_command


@pytest.mark.sandbox
def test_a_hostile_class_has_every_attack_and_gets_its_scores(tmp_path, monkeypatch, zygotes):
    students = generated_class(tmp_path, 9, seed=3, hostile=1.0)
    monkeypatch.setattr(grade_command, "LocalWorkers", lambda count: HereWorkers(zygotes))
    assert Counter(student.hostile for student in students).keys() == HOSTILE.keys()
    assert grade_command.main([SAMPLE, "--course", str(tmp_path), "--no-feedback"]) == 0
    assert wrong_scores(tmp_path, students) == []
    assert wrong_statuses(tmp_path, students) == []
    # The checks would notice: another score, another status.
    first = dataclasses.replace(students[0], expected={**students[0].expected, "multiply-fits": 99.0}, status="limit")
    (score,) = wrong_scores(tmp_path, [first, *students[1:]])
    assert score.startswith(f"{first.name} ({first.hostile or 'honest'}): ")
    assert wrong_statuses(tmp_path, [first, *students[1:]]) == [
        f"{first.name} ({first.hostile or 'honest'}): {students[0].status}, expected limit"
    ]


def test_classes_of_one_seed_are_the_same(tmp_path):
    classes = [generated_class(tmp_path / name, 12, seed=3, hostile=0.5) for name in ("one", "two")]
    assert classes[0] == classes[1]
    assert 0 < sum(student.hostile != "" for student in classes[0]) < 12
    names = {name for student in classes[0] for name in student.answers.values()}
    assert {"solution", "blank"} < names
    assert classes[0] != generated_class(tmp_path / "three", 12, seed=4, hostile=0.5)
