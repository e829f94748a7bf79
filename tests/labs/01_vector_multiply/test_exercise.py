"""Exercise 01: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestVectorMultiply(ExerciseTests):
    topic = "01_vector_multiply"
    points: ClassVar = {
        "multiply": [2, 2],
        "multiply-any-grid": [2, 2],
        "multiply-cuda": [2, 2],
        "multiply-float4": [2, 3],
        "multiply-reversed": [2, 2],
        "numbers": [1, 1, 2],
    }
    gaps = 9
    least_wrong = 120
