"""A small course to copy, and an own folder for each test."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook


def lesson(number, title, *, extra=()):
    cells = [
        new_markdown_cell(f"# {number} {title}\n\nSee [counters](../docs/counters.md).", id="title"),
        new_code_cell("print(1)", id="first"),
        new_code_cell("answer = None", id="your-turn-one", metadata={"tags": ["your-turn"]}),
        new_code_cell("answer", id="check-one", metadata={"tags": ["check"]}),
        *extra,
        new_markdown_cell("The [exercise](../exercises/01_topic/01_topic.ipynb), [next](02_topic.ipynb).", id="end"),
    ]
    return new_notebook(cells=cells)


def exercise(number):
    solution = {
        "grade": False,
        "grade_id": "one",
        "locked": False,
        "schema_version": 3,
        "solution": True,
        "task": False,
    }
    cells = [
        new_markdown_cell(f"# Exercise {number}: a topic", id="title"),
        new_code_cell("", id="one", metadata={"nbgrader": solution}),
        new_code_cell("assert True", id="test-one"),
    ]
    return new_notebook(cells=cells)


def ship(course, path, notebook):
    (course / path).parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, course / path)


@pytest.fixture
def course(tmp_path):
    """A course of two lessons and an exercise."""
    folder = tmp_path / "course"
    for name in ("docs", "kernels", "warpcourse", "warplab"):
        (folder / name).mkdir(parents=True)
    (folder / "docs" / "counters.md").write_text("counters")
    ship(folder, "notebooks/01_topic.ipynb", lesson("01", "The topic"))
    ship(folder, "notebooks/02_topic.ipynb", lesson("02", "Another"))
    ship(folder, "exercises/01_topic/01_topic.ipynb", exercise("01"))
    return folder


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The learner's folder, which is not there yet."""
    monkeypatch.setenv("WARPLAB_MINE", str(tmp_path / "mine"))
    return tmp_path / "mine"
