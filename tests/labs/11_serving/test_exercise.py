"""Exercise 11: the release, the solution, and the wrong answers that its tests must reject."""

from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.exercise_harness import ExerciseTests


class TestServing(ExerciseTests):
    topic = "11_serving"
    points: ClassVar = {
        "figures": [1, 1, 1, 1],
        "shares": [1],
        "centre": [2, 2, 1],
        "crop": [2, 1, 1],
        "overlap": [2, 1],
        "stages": [1, 2],
        "batcher": [2, 2, 2],
        "little": [1, 1, 1, 1],
    }
    gaps = 15
    least_mutants = 340

    @pytest.mark.parametrize(
        "answer", sorted((Path(__file__).parent / "other_answers").glob("p*")), ids=lambda path: path.stem
    )
    def test_a_right_answer_of_another_kind_gets_every_point(self, session, answer):
        problem = answer.stem.split("_")[1]
        source = answer.read_text()
        assert session.failures(problem, "%%cuda\n" + source if answer.suffix == ".cu" else source) == {}
