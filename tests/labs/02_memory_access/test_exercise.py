"""Exercise 02: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestMemoryAccess(ExerciseTests):
    topic = "02_memory_access"
    points: ClassVar = {
        "sectors": [1, 1, 2],
        "grey": [1, 2, 2],
        "turn": [2, 2, 1],
        "smooth": [2, 2],
        "sums": [2, 2, 1],
        "total": [2, 1, 2],
    }
    gaps = 8
    least_wrong = 150
