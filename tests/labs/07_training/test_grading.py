"""Exercise 07 as a class is graded: given functions that call the student's run in the student's process, in which the
tests put other functions in the place of some. What a test gets back must still be what it put in.
"""

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_answers import cell_id, is_grade, is_solution, source_notebook, wrong_answers
from tests.support.grading_harness import WIDE, Cells
from warpcourse.grading.frameworks import TENSORFLOW
from warpcourse.grading.judge.judge import trusted_cells
from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import Zygotes

WRONG = {wrong.id: wrong for wrong in wrong_answers("07_training")}
WITH_TENSORFLOW = ("op", "loop")  # the two problems


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find(), warmth="tensorflow") as found:
        yield found


def graded(zygotes, **answers):
    """Grade the two problems, with the solutions where `answers` gives no other; return the failures."""
    notebook, cells = source_notebook("07_training"), Cells()
    kept = []
    for cell in notebook.cells:
        name = cell_id(cell)
        if cell.cell_type == "code" and (name.startswith(WITH_TENSORFLOW) or not (is_grade(cell) or is_solution(cell))):
            kept.append(cell)
    notebook.cells = cells.notebook.cells = kept
    cells.tests, cells.setup = trusted_cells(notebook)
    cells.answers = {cell_id(cell): cell.source for cell in kept if is_solution(cell)}
    for cell in kept:
        cell.source = answers.get(cell_id(cell), cell.source)
    return cells.run(zygotes, WIDE.for_framework(TENSORFLOW)).failed


def test_the_solution_gets_every_point(zygotes):
    assert graded(zygotes) == {}


@pytest.mark.parametrize(
    ("op", "loop"),
    [("op/through_numpy_alone", "loop/in_numpy"), ("op/launched_for_show", "loop/traced_for_show")],
)
def test_forgeries_lose_their_points(zygotes, op, loop):
    failed = graded(zygotes, op=WRONG[op].cell, loop=WRONG[loop].cell)
    assert failed.keys() == WRONG[op].loses | WRONG[loop].loses
