"""Exercise 11 as a class is graded: in the sandbox, where the judge imports the lab's checks, as the student's does."""

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_answers import wrong_answers
from tests.support.grading_harness import failures_of_exercise
from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import Zygotes

WRONG = {wrong.id: wrong for wrong in wrong_answers("11_serving")}
SHOWN = (
    "figures/overlaps_counted_twice",
    "centre/no_barrier_between_requests",
    "crop/border_repeated",
    "stages/latest_copy_out_waited_for",
    "batcher/one_place_more",
    "little/limit_rounded",
)


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find()) as found:
        yield found


def test_the_solution_gets_every_point(zygotes):
    assert failures_of_exercise("11_serving", zygotes, {}) == {}


def test_wrong_answers_lose_what_they_lose_at_home(zygotes):
    """And checks that the student replaces: its process imports the same modules, which changes no verdict."""
    wrong = {WRONG[name].problem: WRONG[name] for name in SHOWN}
    answers = {problem: answer.cell for problem, answer in wrong.items()}
    answers["figures"] = (
        "import kernels.serving.batch_checks as batch_checks\n"
        "import kernels.serving.operation_checks as operation_checks\n"
        "batch_checks.check_serving = check_serving = lambda *_, **__: None\n"
        "operation_checks.check_operations = check_operations = lambda *_, **__: None\n" + answers["figures"]
    )
    failed = failures_of_exercise("11_serving", zygotes, answers)
    assert failed.keys() == frozenset().union(*(answer.loses for answer in wrong.values()))


def test_an_answer_taken_from_the_course_is_refused_with_a_sentence(zygotes):
    """In the first problem, since nothing that a student chose is shown once hidden tests have called a function."""
    one = WRONG["figures/from_the_course"]
    failed = failures_of_exercise("11_serving", zygotes, {one.problem: one.cell})
    assert failed.keys() == one.loses
    sentence = "The answers of an exercise are your own work, and kernels.serving.utilisation.virtual is the course's."
    assert f"ended with an error: NotYourOwn: {sentence}" in failed["figures-nvml"]
