"""Exercise 08: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestRecomputation(ExerciseTests):
    topic = "08_recomputation"
    points: ClassVar = {
        "length": [1, 1, 1],
        "schedule": [1, 1, 2],
        "plan": [1, 1, 3],
        "accumulate": [1, 1, 1],
        "gate": [2, 1],
        "pairs": [1, 2, 1],
    }
    gaps = 11
    least_wrong = 82
