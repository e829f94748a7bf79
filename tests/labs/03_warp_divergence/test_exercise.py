"""Exercise 03: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestWarpDivergence(ExerciseTests):
    topic = "03_warp_divergence"
    points: ClassVar = {
        "efficiency": [1, 1, 2],
        "mixed": [2, 2, 1],
        "warps": [1, 2, 2],
        "pack": [2, 1, 1],
        "meet": [2, 2, 1],
        "kinds": [1, 3, 1],
    }
    gaps = 9
    least_wrong = 141
