"""Exercise 13: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestAttention(ExerciseTests):
    topic = "13_attention"
    points: ClassVar = {
        "traffic": [1, 1, 1, 1],
        "log_sum": [1, 2, 1],
        "attend": [1, 2, 1, 1],
        "causal": [1, 2, 1, 1],
        "repair": [1, 1, 1],
        "decode": [2, 1, 1],
        "backward": [1, 1, 1, 1],
    }
    gaps = 14
    least_wrong = 156
