"""Exercise 11 as a class is graded: in the sandbox, where the judge imports the lab's checks, as the student's does."""

from pathlib import Path

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_harness import read_mutants
from tests.support.grading_harness import failures_of_exercise
from warplab.grading.sandbox.isolation import find
from warplab.grading.sandbox.kernel_manager import Zygotes

MUTANTS = {mutant.path.stem: mutant for mutant in read_mutants(Path(__file__).parent / "mutants")}
SHOWN = (
    "p1_figures_overlaps_counted_twice",
    "p2_centre_no_barrier_between_requests",
    "p3_crop_border_repeated",
    "p4_stages_latest_copy_out_waited_for",
    "p5_batcher_one_place_more",
    "p6_little_limit_rounded",
)


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find()) as found:
        yield found


def test_the_solution_gets_every_point(zygotes):
    assert failures_of_exercise("11_serving", zygotes, {}) == {}


def test_wrong_answers_lose_what_they_lose_at_home(zygotes):
    """And checks that the student replaces: its process imports the same modules, which changes no verdict."""
    wrong = {MUTANTS[name].problem: MUTANTS[name] for name in SHOWN}
    answers = {problem: mutant.cell for problem, mutant in wrong.items()}
    answers["figures"] = (
        "import kernels.serving.batch_checks as batch_checks\n"
        "import kernels.serving.operation_checks as operation_checks\n"
        "batch_checks.check_serving = check_serving = lambda *_, **__: None\n"
        "operation_checks.check_operations = check_operations = lambda *_, **__: None\n" + answers["figures"]
    )
    failed = failures_of_exercise("11_serving", zygotes, answers)
    assert failed.keys() == frozenset().union(*(mutant.loses for mutant in wrong.values()))


def test_an_answer_taken_from_the_course_is_refused_with_a_sentence(zygotes):
    """In the first problem, since nothing that a student chose is shown once hidden tests have called a function."""
    mutant = MUTANTS["p1_figures_from_the_course"]
    failed = failures_of_exercise("11_serving", zygotes, {mutant.problem: mutant.cell})
    assert failed.keys() == mutant.loses
    sentence = "The answers of an exercise are your own work, and kernels.serving.utilisation is the course's."
    assert f"ended with an error: NotYourOwn: {sentence}" in failed["figures-nvml"]
