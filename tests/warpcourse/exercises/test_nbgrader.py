"""nbgrader's own commands on a course of the sample exercise: release, grade, return. Then the course's own."""

from __future__ import annotations

import html
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from nbgrader.utils import is_grade

from tests.support.exercise_answers import Answer, cells_by_id
from tests.support.sample import SAMPLE, SAMPLE_COURSE, sample_release, sample_source, sample_wrong
from tests.support.waiting import HANG
from warpcourse.exercises import release
from warpcourse.grading.judge.hidden_tests import marked_lines
from warpcourse.paths import COURSE

LOOKS = "from pathlib import Path\nprint('found', [str(path) for path in Path().rglob('*')])"
WRONG = ("multiply/no_guard", "multiply-cuda/local_index")  # one costs some points of its problem, the other all of them


# What `nbgrader COMMAND` does, for one command after the other: importing it takes longer than most of them.
NBGRADER = """
import contextlib, sys
from jupyter_core.application import NoStart
from nbgrader.apps.nbgraderapp import NbGraderApp
for command in sys.argv[1:]:
    app = NbGraderApp()
    app.initialize(command.split())
    with contextlib.suppress(NoStart):  # once the subcommand is done
        app.start()
    app.subapp.clear_instance()
"""


def nbgrader(course: Path, *commands: str) -> str:
    return run(course, "-c", NBGRADER, *commands)


def run(course: Path, *arguments: str) -> str:
    """Run Python in `course`, with no help from the environment to find warplab. Return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=course,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_class_is_released_graded_and_returned(tmp_path):
    """One test, since pytest-xdist would have each of its workers grade the class again for a shared fixture."""
    course = course_with_submissions(tmp_path)
    nbgrader(
        course,
        f"generate_assignment {SAMPLE}",
        f"autograde {SAMPLE} --student wrong",
        f"generate_feedback {SAMPLE} --student wrong",
    )
    generate_assignment_wrote_the_courses_release(course)
    answers_lose_their_own_points_only(course)
    hidden_tests_are_not_where_the_submission_runs(course)
    feedback_says_what_is_wrong(course, ["wrong"])
    nothing_else_was_written(course)

    by_nbgrader = points(course, "wrong")
    shutil.move(course / "grading" / "gradebook.db", course / "nbgrader.db")
    for folder in ("autograded", "feedback"):
        shutil.rmtree(course / "grading" / folder)
    summary = run(course, "-m", "warplab", "grade", SAMPLE, "--workers", "1")
    assert f"{SAMPLE}: 3 submissions\n  3 graded\n" in summary
    assert points(course, "wrong") == by_nbgrader
    assert version(course / "grading" / "gradebook.db") == version(course / "nbgrader.db")
    solution_scores_everything(course)
    blank_scores_nothing(course)
    feedback_says_what_is_wrong(course, ["solution", "blank", "wrong"])


def course_with_submissions(course: Path) -> Path:
    """Make a course of the sample exercise and hand in for three students."""
    shutil.copy(COURSE / "nbgrader_config.py", course)
    shutil.copytree(SAMPLE_COURSE / "solutions", course / "solutions")
    for name in ("warplab", "warpcourse"):
        shutil.copytree(COURSE / name, course / name, ignore=shutil.ignore_patterns("__pycache__"))

    submit(course, "solution", sample_source())
    submit(course, "blank", sample_release())
    wrong = sample_source()
    for answer in chosen():
        cells_by_id(wrong)[answer.problem].source = answer.cell
    wrong.cells.insert(0, nbformat.v4.new_code_cell(LOOKS))
    submit(course, "wrong", wrong)
    return course


def chosen() -> list[Answer]:
    found = [answer for answer in sample_wrong() if answer.id in WRONG]
    assert len(found) == len(WRONG)
    return found


def submit(course: Path, student: str, notebook) -> None:
    folder = course / "grading" / "submitted" / student / SAMPLE
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{SAMPLE}.ipynb")


def points(course: Path, student: str) -> dict[str, tuple[float, float]]:
    """(score, possible) by test cell, from the gradebook."""
    with Gradebook(f"sqlite:///{course}/grading/gradebook.db") as gradebook:
        notebook = gradebook.find_submission_notebook(SAMPLE, SAMPLE, student)
        assert not notebook.needs_manual_grade
        return {grade.name: (grade.score, grade.max_score) for grade in notebook.grades}


def generate_assignment_wrote_the_courses_release(course):
    wanted = release.release_text(SAMPLE_COURSE / "solutions" / SAMPLE / f"{SAMPLE}.ipynb")
    assert (course / "exercises" / SAMPLE / f"{SAMPLE}.ipynb").read_text(encoding="utf-8") == wanted


def solution_scores_everything(course):
    grades = points(course, "solution")
    assert len(grades) == sum(is_grade(cell) for cell in sample_source().cells)
    assert all(score == possible for score, possible in grades.values()), grades
    assert sum(possible for _, possible in grades.values()) == 25


def blank_scores_nothing(course):
    assert [score for score, _ in points(course, "blank").values()] == [0] * 13


def answers_lose_their_own_points_only(course):
    lost = {test for test, (score, possible) in points(course, "wrong").items() if score != possible}
    assert lost == frozenset.union(*(answer.loses for answer in chosen()))
    assert 0 < len(lost) < 13


def hidden_tests_are_not_where_the_submission_runs(course):
    """nbgrader writes them into the folder in which it would run."""
    notebook = (course / "grading" / "autograded" / "wrong" / SAMPLE / f"{SAMPLE}.ipynb").read_text()
    assert "BEGIN HIDDEN TESTS" in notebook
    looked = nbformat.reads(notebook, as_version=4).cells[0]
    assert looked.source == LOOKS
    assert [output.text for output in looked.outputs] == ["found []\n"]


def feedback_says_what_is_wrong(course, students):
    """And shows no line of a hidden test."""
    lines = [marked for cell in sample_source().cells for marked in marked_lines(cell.source)]
    visible = "\n".join(line for line, hidden in lines if not hidden)
    secret = {
        line.strip() for line, hidden in lines if hidden and len(line.strip()) > 10 and line.strip() not in visible
    }
    assert len(secret) > 30
    reasons = {"solution": None, "blank": "not written yet", "wrong": "past the end"}
    for student in students:
        page = (course / "grading" / "feedback" / student / SAMPLE / f"{SAMPLE}.html").read_text()
        text = html.unescape(re.sub("<[^>]*>", "", page))
        assert "Score:" in text
        assert ("CheckFailed" in text) == (reasons[student] is not None)
        assert reasons[student] is None or reasons[student] in text
        assert "checks.kernel(multiply, product" in text
        assert [line for line in secret if line in text] == []


def version(gradebook: Path) -> str:
    """The version of nbgrader's tables, of which `nbgrader db upgrade` starts."""
    with sqlite3.connect(gradebook) as database:
        return database.execute("select version_num from alembic_version").fetchone()[0]


def nothing_else_was_written(course):
    expected = {"nbgrader_config.py", "solutions", "warplab", "warpcourse", "exercises", "grading"}
    assert {path.name for path in course.iterdir()} - {".nbgrader.log"} == expected
