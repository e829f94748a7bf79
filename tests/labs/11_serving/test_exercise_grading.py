"""Exercise 11 as a class is graded: in the sandbox, where the judge imports the lab's checks, as the student's does."""

import pytest

pytest.importorskip("nbgrader")  # a GPU machine that only measures may lack it

from tests.support.exercise_answers import wrong_answers
from tests.support.grading_harness import failures_of_exercise
from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import Zygotes

# Of each part: answers that lose points, and the check that the first of them replaces in vain.
PARTS = {
    "11_busy": (("figures/overlaps_counted_twice", "centre/no_barrier_between_requests"), "ragged_checks.check_ragged"),
    "11_overlap": (("crop/border_repeated", "stages/latest_copy_out_waited_for"), "operation_checks.check_operations"),
    "11_serving": (("batcher/one_place_more", "little/limit_rounded"), "batch_checks.check_serving"),
}


@pytest.fixture(scope="module")
def zygotes():
    with Zygotes(find()) as found:
        yield found


@pytest.mark.parametrize("part", PARTS)
def test_the_solution_gets_every_point(part, zygotes):
    assert failures_of_exercise(part, zygotes, {}) == {}


@pytest.mark.parametrize("part", PARTS)
def test_wrong_answers_lose_what_they_lose_at_home(part, zygotes):
    """And checks that the student replaces: its process imports the same modules, which changes no verdict."""
    names, check = PARTS[part]
    wrong = {answer.problem: answer for answer in wrong_answers(part) if answer.id in names}
    assert len(wrong) == len(names)
    answers = {problem: answer.cell for problem, answer in wrong.items()}
    module, name = check.split(".")
    answers[names[0].split("/")[0]] = (
        f"import kernels.serving.{module} as {module}\n"
        f"{check} = {name} = lambda *_, **__: None\n" + answers[names[0].split("/")[0]]
    )
    failed = failures_of_exercise(part, zygotes, answers)
    assert failed.keys() == frozenset().union(*(answer.loses for answer in wrong.values()))


def test_an_answer_taken_from_the_course_is_refused_with_a_sentence(zygotes):
    """In the first problem, since nothing that a student chose is shown once hidden tests have called a function."""
    (one,) = (answer for answer in wrong_answers("11_busy") if answer.id == "figures/from_the_course")
    failed = failures_of_exercise("11_busy", zygotes, {one.problem: one.cell})
    assert failed.keys() == one.loses
    sentence = "The answers of an exercise are your own work, and kernels.serving.utilisation.virtual is the course's."
    assert f"ended with an error: NotYourOwn: {sentence}" in failed["figures-nvml"]
