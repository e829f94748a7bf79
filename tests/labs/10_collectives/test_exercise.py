"""Exercise 10: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestCollectives(ExerciseTests):
    topic = "10_collectives"
    points: ClassVar = {
        "slices": [1, 2, 1],
        "broadcast": [2, 2],
        "sums": [2, 1, 1],
        "run": [2, 2],
        "bandwidth": [1, 1, 1, 1],
        "add": [2, 1],
        "forward": [2, 2],
        "stuck": [1],
        "programs": [1, 1],
        "shares": [1, 1, 1],
    }
    gaps = 20
    least_wrong = 259
