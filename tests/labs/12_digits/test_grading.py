"""Exercise 12 as a class is graded: networks are trained in the student's process, and the tests, which have no
TensorFlow, hold the losses that come back against their own.
"""

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_answers import cell_id, is_solution, source_notebook, wrong_answers
from tests.support.grading_harness import WIDE, Cells
from warpcourse.grading.frameworks import TENSORFLOW
from warpcourse.grading.judge.judge import trusted_cells
from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import Zygotes

WRONG = {wrong.id: wrong for wrong in wrong_answers("12_digits")}
SHOWN = (
    "curves/in_numpy",
    "numbers/in_bits",
    "batches/seed_plus_epoch",
    "softmax/held_by_themselves_unless_alone",
    "resume/kept_in_a_global",
    "choose/weights_for_each_image",
    "overlaps/lanes_take_turns",
    "kept/driven_out_by_all",
    "overlay/in_float64",
    "confusion/straight_to_global_memory",
)


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find(), warmth="tensorflow") as found:
        yield found


def graded(zygotes, answers):
    """Grade the exercise with the solutions where `answers`, by cell, gives no other; return the failures."""
    notebook, cells = source_notebook("12_digits"), Cells()
    kept = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = cells.notebook.cells = kept
    cells.tests, cells.setup = trusted_cells(notebook)
    cells.answers = {cell_id(cell): cell.source for cell in kept if is_solution(cell)}
    for cell in kept:
        cell.source = answers.get(cell_id(cell), cell.source)
    return cells.run(zygotes, WIDE.for_framework(TENSORFLOW)).failed


def test_the_solution_gets_every_point(zygotes):
    assert graded(zygotes, {}) == {}


def test_wrong_answers_lose_what_they_lose_at_home(zygotes):
    wrong = {WRONG[name].problem: WRONG[name] for name in SHOWN}
    failed = graded(zygotes, {problem: answer.cell for problem, answer in wrong.items()})
    assert failed.keys() == frozenset().union(*(answer.loses for answer in wrong.values()))
