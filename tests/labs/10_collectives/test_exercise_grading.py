"""Exercise 10 as a class is graded: in the sandbox, where the judge imports the lab's checks, as the student's does."""

from pathlib import Path

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_harness import read_mutants
from tests.support.grading_harness import failures_of_exercise
from warplab.grading.sandbox.isolation import find
from warplab.grading.sandbox.kernel_manager import Zygotes

MUTANTS = {mutant.path.stem: mutant for mutant in read_mutants(Path(__file__).parent / "mutants")}
SHOWN = ("p2_star", "p3_both_at_once", "p4_reads_while_it_writes", "p6_one_thread", "p6_forward_narrow_fences")


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find()) as found:
        yield found


def test_the_solution_gets_every_point(zygotes):
    assert failures_of_exercise("10_collectives", zygotes, {}) == {}


def test_wrong_answers_lose_what_they_lose_at_home(zygotes):
    """And checks that the student replaces: its process imports the same module, which changes no verdict."""
    wrong = {MUTANTS[name].problem: MUTANTS[name] for name in SHOWN}
    answers = {problem: mutant.cell for problem, mutant in wrong.items()}
    answers["broadcast"] = (
        "import kernels.collectives.answer_checks as answer_checks\n"
        "import kernels.collectives.forward_checks as forward_checks\n"
        "answer_checks.check_messages = check_messages = lambda *_, **__: None\n"
        "forward_checks.check_forward = check_forward = lambda *_, **__: None\n" + answers["broadcast"]
    )
    failed = failures_of_exercise("10_collectives", zygotes, answers)
    assert failed.keys() == frozenset().union(*(mutant.loses for mutant in wrong.values()))


def test_an_answer_taken_from_the_course_is_refused_with_a_sentence(zygotes):
    """In the first problem, since nothing that a student chose is shown once hidden tests have called a function."""
    mutant = MUTANTS["p1_from_the_course"]
    failed = failures_of_exercise("10_collectives", zygotes, {mutant.problem: mutant.cell})
    assert failed.keys() == mutant.loses
    sentence = "The answers of an exercise are your own work, and kernels.collectives.model is the course's."
    assert f"ended with an error: NotYourOwn: {sentence}" in failed["slices-time"]
