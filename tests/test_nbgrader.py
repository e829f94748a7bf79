"""nbgrader's own commands on the course's files: release, grade, return; in a copy of the course."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from exercise_harness import ROOT, Mutant, cells_by_id, committed, mutants, source_notebook
from nbgrader.api import Gradebook
from nbgrader.utils import is_grade

from warplab.checks import release

TOPIC = "01_vector_multiply"
WRONG = ("p1_no_guard", "p3_local_index")  # one costs some points of its problem, the other all of them


def nbgrader(course: Path, command: str) -> str:
    """Run an nbgrader command in `course`; the environment does not help it to find warplab."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *command.split()],
        cwd=course,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_class_is_released_graded_and_returned(tmp_path):
    """One test, since pytest-xdist would have each of its workers grade the class again for a shared fixture."""
    course = graded_class(tmp_path)
    generate_assignment_wrote_the_release_in_the_course(course)
    solution_scores_everything(course)
    blank_scores_nothing(course)
    wrong_answers_lose_their_own_points_only(course)
    feedback_says_what_is_wrong(course)
    nothing_else_was_written(course)


def graded_class(course: Path) -> Path:
    """A copy of the course in which one class has been graded: solution, blank and wrong submission."""
    shutil.copy(ROOT / "nbgrader_config.py", course)
    shutil.copytree(ROOT / "solutions", course / "solutions")
    shutil.copytree(ROOT / "warplab", course / "warplab", ignore=shutil.ignore_patterns("__pycache__"))
    nbgrader(course, f"generate_assignment {TOPIC}")

    solution, blank = source_notebook(TOPIC), release.release_notebook(TOPIC)
    submit(course, "solution", solution)
    submit(course, "blank", blank)
    wrong = source_notebook(TOPIC)
    for mutant in chosen_mutants():
        cells_by_id(wrong)[mutant.problem].source = mutant.cell
    submit(course, "wrong", wrong)
    nbgrader(course, f"autograde {TOPIC}")
    nbgrader(course, f"generate_feedback {TOPIC}")
    return course


def chosen_mutants() -> list[Mutant]:
    chosen = [mutant for mutant in mutants(TOPIC) if mutant.path.stem in WRONG]
    assert len(chosen) == len(WRONG)
    return chosen


def submit(course: Path, student: str, notebook) -> None:
    folder = course / "grading" / "submitted" / student / TOPIC
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{TOPIC}.ipynb")


def points(course: Path, student: str) -> dict[str, tuple[float, float]]:
    """(score, possible) by test cell, from the gradebook."""
    with Gradebook(f"sqlite:///{course}/grading/gradebook.db") as gradebook:
        notebook = gradebook.find_submission_notebook(TOPIC, TOPIC, student)
        assert not notebook.needs_manual_grade
        return {grade.name: (grade.score, grade.max_score) for grade in notebook.grades}


def generate_assignment_wrote_the_release_in_the_course(course):
    path = f"exercises/{TOPIC}/{TOPIC}.ipynb"
    assert (course / path).read_bytes() in (committed(path), (ROOT / path).read_bytes())


def solution_scores_everything(course):
    grades = points(course, "solution")
    assert len(grades) == sum(is_grade(cell) for cell in source_notebook(TOPIC).cells)
    assert all(score == possible for score, possible in grades.values()), grades
    assert sum(possible for _, possible in grades.values()) == 25


def blank_scores_nothing(course):
    assert [score for score, _ in points(course, "blank").values()] == [0] * 13


def wrong_answers_lose_their_own_points_only(course):
    lost = {test for test, (score, possible) in points(course, "wrong").items() if score != possible}
    assert lost == frozenset.union(*(mutant.loses for mutant in chosen_mutants()))
    assert 0 < len(lost) < 13


def feedback_says_what_is_wrong(course):
    for student, reason in (("solution", None), ("blank", "not written yet"), ("wrong", "past the end")):
        page = (course / "grading" / "feedback" / student / TOPIC / f"{TOPIC}.html").read_text()
        assert "Score:" in page
        assert ("CheckFailed" in page) == (reason is not None)
        assert reason is None or reason in page


def nothing_else_was_written(course):
    expected = {"nbgrader_config.py", "solutions", "warplab", "exercises", "grading"}
    assert {path.name for path in course.iterdir()} - {".nbgrader.log"} == expected
