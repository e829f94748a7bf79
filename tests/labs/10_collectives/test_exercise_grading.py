"""Exercise 10 as a class is graded: in the sandbox, where the judge imports the lab's checks, as the student's does."""

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_answers import wrong_answers
from tests.support.grading_harness import failures_of_exercise
from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import Zygotes

WRONG = {wrong.id: wrong for wrong in wrong_answers("10_collectives")}
SHOWN = ("broadcast/star", "sums/both_at_once", "run/reads_while_it_writes", "add/one_thread", "forward/narrow_fences")


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find()) as found:
        yield found


def test_the_solution_gets_every_point(zygotes):
    assert failures_of_exercise("10_collectives", zygotes, {}) == {}


def test_wrong_answers_lose_what_they_lose_at_home(zygotes):
    """And checks that the student replaces: its process imports the same module, which changes no verdict."""
    wrong = {WRONG[name].problem: WRONG[name] for name in SHOWN}
    answers = {problem: answer.cell for problem, answer in wrong.items()}
    answers["broadcast"] = (
        "import kernels.collectives.answer_checks as answer_checks\n"
        "import kernels.collectives.forward_checks as forward_checks\n"
        "answer_checks.check_messages = check_messages = lambda *_, **__: None\n"
        "forward_checks.check_forward = check_forward = lambda *_, **__: None\n" + answers["broadcast"]
    )
    failed = failures_of_exercise("10_collectives", zygotes, answers)
    assert failed.keys() == frozenset().union(*(answer.loses for answer in wrong.values()))


def test_an_answer_taken_from_the_course_is_refused_with_a_sentence(zygotes):
    """In the first problem, since nothing that a student chose is shown once hidden tests have called a function."""
    one = WRONG["slices/from_the_course"]
    failed = failures_of_exercise("10_collectives", zygotes, {one.problem: one.cell})
    assert failed.keys() == one.loses
    sentence = "The answers of an exercise are your own work, and kernels.collectives.model is the course's."
    assert f"ended with an error: NotYourOwn: {sentence}" in failed["slices-time"]
