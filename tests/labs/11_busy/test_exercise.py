"""Exercise 11, first part: the release, the solution, and the answers that its tests must accept and reject."""

from typing import ClassVar

from tests.support.exercise_harness import ExerciseTests


class TestBusy(ExerciseTests):
    topic = "11_busy"
    points: ClassVar = {"figures": [1, 1, 1, 1], "shares": [1], "centre": [2, 2, 1]}
    gaps = 6
    least_wrong = 80

    def test_the_release_asks_for_shares_and_does_not_count_them(self, release):
        (cell,) = (cell for cell in release.release_notebook(self.topic).cells if cell.id == "shares-right")
        assert cell.source.splitlines() == ["# 1 point: seven figures of three samples.", "check_shares(prediction)"]
