"""The tests' own exercise, so that the tests of releasing, checking and grading depend on no lab.

`SAMPLE_COURSE` is laid out like the course: the instructor's notebook is solutions/sample/sample.ipynb. Wrong answers
to its problems are in exercise_answers/.
"""

from __future__ import annotations

from pathlib import Path

from nbformat.notebooknode import NotebookNode

from tests.support.exercise_answers import FOLDER, Answer, read_answers, source_notebook
from warpcourse.exercises import release

SAMPLE = "sample"
SAMPLE_COURSE = Path(__file__).parent / "sample_course"


def sample_source() -> NotebookNode:
    """Return the instructor's notebook, with solutions and hidden tests."""
    return source_notebook(SAMPLE, SAMPLE_COURSE)


def sample_release() -> NotebookNode:
    """Return what a student starts from."""
    return release.release_notebook(SAMPLE, SAMPLE_COURSE)


def sample_wrong() -> list[Answer]:
    """Return the wrong answers, in the order of the tables."""
    return read_answers(SAMPLE_COURSE / FOLDER, sample_source())
