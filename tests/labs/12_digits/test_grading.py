"""Exercise 12 as a class is graded: networks are trained in the student's process, and the tests, which have no
TensorFlow, hold the losses that come back against their own.
"""

from pathlib import Path

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_harness import cell_id, is_solution, read_mutants, source_notebook
from tests.support.grading_harness import WIDE, Cells
from warplab.grading.judge.judge import trusted_cells
from warplab.grading.sandbox.isolation import find
from warplab.grading.sandbox.kernel_manager import Zygotes
from warplab.grading.sandbox.limits import for_tensorflow

MUTANTS = {mutant.path.stem: mutant for mutant in read_mutants(Path(__file__).parent / "mutants")}
SHOWN = (
    "p1_curves_in_numpy",
    "p1_numbers_in_bits",
    "p2_batches_seed_plus_epoch",
    "p2_softmax_held_by_themselves_unless_alone",
    "p2_resume_kept_in_a_global",
    "p3_choose_weights_for_each_image",
    "p4_overlaps_lanes_take_turns",
    "p4_kept_driven_out_by_all",
    "p5_overlay_in_float64",
    "p6_confusion_straight_to_global_memory",
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
    return cells.run(zygotes, for_tensorflow(WIDE)).failed


def test_the_solution_gets_every_point(zygotes):
    assert graded(zygotes, {}) == {}


def test_wrong_answers_lose_what_they_lose_at_home(zygotes):
    wrong = {MUTANTS[name].problem: MUTANTS[name] for name in SHOWN}
    failed = graded(zygotes, {problem: mutant.cell for problem, mutant in wrong.items()})
    assert failed.keys() == frozenset().union(*(mutant.loses for mutant in wrong.values()))
