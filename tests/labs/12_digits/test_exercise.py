"""Exercise 12: the release, the solution, and the wrong answers that its tests must reject."""

from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.exercise_harness import ExerciseTests


class TestDigits(ExerciseTests):
    topic = "12_digits"
    points: ClassVar = {
        "curves": [1, 1, 1, 2],
        "numbers": [1],
        "batches": [1, 1],
        "softmax": [1, 1],
        "resume": [1, 1],
        "choose": [1, 2, 2],
        "overlaps": [2, 1, 1],
        "kept": [1],
        "overlay": [2, 1, 1],
        "confusion": [1, 2, 1],
    }
    gaps = 19
    least_mutants = 350

    @pytest.mark.parametrize(
        "answer", sorted((Path(__file__).parent / "other_answers").glob("p*")), ids=lambda path: path.stem
    )
    def test_a_right_answer_of_another_kind_gets_every_point(self, session, answer):
        problem = answer.stem.split("_")[1]
        source = answer.read_text()
        assert session.failures(problem, "%%cuda\n" + source if answer.suffix == ".cu" else source) == {}
