"""Problem 7 of exercise 04 as a class is graded: in the sandbox, where a student can read the recorded times."""

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_answers import wrong_answers
from tests.support.grading_harness import failures_of_exercise
from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import Zygotes

(NEVER,) = (wrong for wrong in wrong_answers("04_matrix_multiply") if wrong.id == "rule/never_divided")
LOOKED_UP = """\
    from kernels.matmul.split_regret import times
    by_parts = dict(times((bm, bn)))[m, n, k]
    return min(by_parts, key=by_parts.get)
"""
REPLACED = """\
import kernels.matmul.split_regret as split_regret
split_regret.regrets = lambda *_, **__: [1.0] * 200
split_regret.check_split = check_split = lambda *_, **__: None
"""


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find()) as found:
        yield found


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(NEVER.cell.replace("    return 1\n", LOOKED_UP), id="looked_up"),
        pytest.param(REPLACED + NEVER.cell, id="replaced", marks=pytest.mark.thorough),
    ],
)
def test_neither_looking_up_nor_replacing_the_check_earns_points(zygotes, cell):
    assert cell != NEVER.cell
    assert failures_of_exercise("04_matrix_multiply", zygotes, {NEVER.problem: cell}).keys() == NEVER.loses
