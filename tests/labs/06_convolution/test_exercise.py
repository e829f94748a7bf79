"""Exercise 06: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestConvolution(ExerciseTests):
    topic = "06_convolution"
    points: ClassVar = {
        "sizes": [1, 1, 2],
        "direct": [1, 1, 1],
        "implicit": [1, 2, 1],
        "plans": [1, 2, 1],
        "border": [2, 2, 1],
        "backward": [1, 2, 1],
        "nhwc": [1, 2, 1],
    }
    gaps = 11
    least_wrong = 241
