"""Notebooks that lost the names of their cells: whatever was done to them, the same answers are graded."""

from __future__ import annotations

import copy
import functools
import os
import random

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.utils import is_locked

from tests.support.class_harness import tiny_cell
from tests.support.exercise_answers import cells_by_id, is_solution, source_notebook, wrong_answers
from tests.support.sample import sample_release, sample_source, sample_wrong
from warpcourse.exercises import release, score
from warpcourse.exercises.recognise import Recognised, recognise, restore
from warpcourse.exercises.score import cell_id

TOPICS = release.topics()
released = functools.cache(release.release_notebook)


def stripped(notebook: NotebookNode, ids: bool = True) -> NotebookNode:
    """Return a notebook as Colab and VS Code have saved it. `ids`: also without the ids of its cells."""
    notebook = copy.deepcopy(notebook)
    notebook.metadata = {}
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        cell.source = cell.source.replace("\n", "\r\n") + "  \n"
        if ids:
            cell.pop("id", None)
    return notebook


def named(notebook: NotebookNode, given: NotebookNode) -> tuple[NotebookNode, Recognised]:
    """Return a notebook with its names back, and what was found."""
    found = recognise(notebook, given)
    restore(notebook, given, found)
    return notebook, found


def texts(notebook: NotebookNode, given: NotebookNode) -> list[tuple[str | None, str]]:
    """Return what is graded: the cells of the assembled notebook, in order."""
    cells = score.assemble(notebook, given).cells
    return [(cell_id(cell), "\n".join(line.rstrip() for line in cell.source.splitlines()).strip()) for cell in cells]


def answered(given: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    notebook = copy.deepcopy(given)
    for name, text in answers.items():
        cells_by_id(notebook)[name].source = text
    return notebook


def solutions(source: NotebookNode) -> dict[str, str]:
    return {cell_id(cell): cell.source for cell in source.cells if is_solution(cell)}


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("topic", TOPICS)
def test_solutions_and_blanks_are_recognised_in_every_exercise(topic, ids):
    given = released(topic)
    names = [cell_id(cell) for cell in given.cells if cell_id(cell)]
    for notebook in (given, answered(given, solutions(source_notebook(topic)))):
        back, found = named(stripped(notebook, ids), given)
        assert found.nameless
        assert found.by_text == names
        assert texts(back, given) == texts(notebook, given)


@pytest.mark.parametrize("topic", TOPICS)
def test_wrong_answers_are_recognised_in_every_exercise(topic):
    """Each of them in place of an answer, most others blank."""
    given = released(topic)
    for one in wrong_answers(topic):
        notebook = answered(given, {one.problem: one.cell})
        back, _ = named(stripped(notebook), given)
        assert texts(back, given) == texts(notebook, given), one.id


@pytest.mark.parametrize("topic", TOPICS)
def test_no_exercise_is_taken_for_another(topic):
    given = released(topic)
    others = {other: released(other) for other in TOPICS if other != topic}
    for other, notebook in others.items():
        assert "setup" in cells_by_id(notebook)
        if cells_by_id(notebook).keys() & cells_by_id(given).keys() <= {"setup"}:  # skeletons of labs are all alike
            for each in (stripped(notebook), notebook):  # the second has a cell of this name
                found = recognise(each, given)
                assert (found.nameless, found.by_text, found.by_place) == (True, [], []), other


def test_what_was_done_to_a_notebook_beside_losing_names_changes_nothing():
    """Random notebooks: answers right, wrong or blank; cells of the student's own; names left, lost, or others."""
    seed = int(os.environ.get("WARPLAB_SEED", "20261122"))
    print("WARPLAB_SEED", seed)
    rng = random.Random(seed)
    given, right, wrong = sample_release(), solutions(sample_source()), {}
    for one in sample_wrong():
        wrong.setdefault(one.problem, []).append(one.cell)
    for _ in range(300):
        notebook = copy.deepcopy(given)
        for name, cell in cells_by_id(notebook).items():
            if is_solution(cell):
                cell.source = rng.choice([right[name], cell.source, rng.choice(wrong[name])])
        for _ in range(rng.randrange(4)):
            own = rng.choice([new_markdown_cell("my notes"), new_code_cell(f"print({rng.random()})")])
            behind = rng.randrange(len(notebook.cells) + 1)
            # Beside an answer, a cell of one's own may be the answer as well.
            if not any(is_solution(cell) for cell in notebook.cells[max(0, behind - 1) : behind + 1]):
                notebook.cells.insert(behind, own)
        lost = stripped(notebook, rng.random() < 0.5)
        if rng.random() < 0.5:  # only some cells have lost their names, or have others
            for cell, whole in zip(lost.cells, notebook.cells, strict=True):
                if rng.random() < 0.5:
                    cell.metadata = copy.deepcopy(whole.metadata)
                elif cell_id(whole) and rng.random() < 0.5:
                    cell.metadata["nbgrader"] = nbformat.from_dict({"grade_id": f"mine-{rng.random()}"})
        back, _ = named(lost, given)
        assert texts(back, given) == texts(notebook, given)


SAMPLE_TEXTS = [cell.source for cell in sample_source().cells]
PIECES = sorted({line for text in SAMPLE_TEXTS for line in text.split("\n")})
SAMPLE = sample_release()
NAMES = [cell_id(cell) for cell in SAMPLE.cells if cell_id(cell)]
ODD_CELLS = st.builds(
    lambda make, text, name: make(text, metadata={"nbgrader": {"grade_id": name}} if name else {}),
    st.sampled_from([new_code_cell, new_markdown_cell]),
    st.sampled_from(SAMPLE_TEXTS) | st.lists(st.sampled_from(PIECES), max_size=6).map("\n".join) | st.text(max_size=9),
    st.none() | st.sampled_from([*NAMES, "mine"]),
)


@settings(max_examples=int(os.environ.get("WARPLAB_EXAMPLES", "300")), suppress_health_check=list(HealthCheck))
@given(st.lists(ODD_CELLS, max_size=40))
def test_no_notebook_gets_more_in_than_its_answers(cells):
    """However odd: the instructor's cells are what they were, each cell of a student's is there once, in one place."""
    given = SAMPLE
    before = [(cell.cell_type, cell.source) for cell in cells]
    back, found = named(new_notebook(cells=cells), given)
    assert [(cell.cell_type, cell.source) for cell in back.cells] == before
    assert len(set(found.places.values())) == len(found.places)
    assembled = score.assemble(back, given)
    locked = [(cell_id(cell), cell.source) for cell in given.cells if is_locked(cell)]
    assert [(cell_id(cell), cell.source) for cell in assembled.cells if is_locked(cell)] == locked
    names = [cell_id(cell) for cell in assembled.cells if cell_id(cell)]
    assert names == [name for name in NAMES if name in names]
    for note in found.notes():
        note.encode()


def exercise() -> NotebookNode:
    cells = [
        new_markdown_cell("# Title"),
        tiny_cell("setup", "import numpy as np", locked=True),
        new_markdown_cell("## 1. Double"),
        tiny_cell("double", "def double(x):\n    ", solution=True),
        tiny_cell("test-double", "assert double(2) == 4", 1, grade=True, locked=True),
        new_markdown_cell("## 2. Triple"),
        tiny_cell("triple", "def triple(x):\n    ", solution=True),
        tiny_cell("test-triple", "assert triple(2) == 6", 1, grade=True, locked=True),
    ]
    return new_notebook(cells=cells)


def test_an_answer_that_keeps_no_line_is_recognised_by_its_place():
    notebook = stripped(exercise())
    notebook.cells[3].source = "double = lambda x: 2 * x"
    notebook, found = named(notebook, exercise())
    assert found.by_place == ["double"]
    assert found.by_text == ["setup", "test-double", "triple", "test-triple"]


def test_an_answer_in_a_new_cell_is_recognised_and_one_that_is_gone_is_not():
    notebook = exercise()
    notebook.cells[3] = new_code_cell("def double(x):\n    return 2 * x")
    del notebook.cells[6]
    notebook, found = named(notebook, exercise())
    assert (found.by_text, found.by_place, found.nameless) == (["double"], [], False)
    assert "triple" not in cells_by_id(notebook)


def test_a_name_that_was_changed_is_told():
    notebook = exercise()
    notebook.cells[3].metadata.nbgrader.grade_id = "mine"
    notebook, found = named(notebook, exercise())
    assert found.renamed == {"double": "mine"}
    assert cells_by_id(notebook)["double"].metadata.nbgrader.solution


def test_answers_out_of_order_are_recognised():
    notebook = stripped(exercise())
    notebook.cells[3].source = "def double(x):\n    return 2 * x"
    notebook.cells.append(notebook.cells.pop(3))
    notebook, _ = named(notebook, exercise())
    assert cells_by_id(notebook)["double"].source.startswith("def double")


def test_cells_with_names_keep_them():
    """Whatever their text: nobody can take a test's place by its text."""
    notebook = exercise()
    notebook.cells[4].source, notebook.cells[3].source = notebook.cells[3].source, notebook.cells[4].source
    before = copy.deepcopy(notebook)
    notebook, found = named(notebook, exercise())
    assert (found.by_text, found.by_place, found.renamed) == ([], [], {})
    assert notebook == before


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [new_code_cell("")] * 3,
        [new_code_cell("import numpy as np")],
        [new_code_cell("assert double(2) == 4")],
        [new_markdown_cell("def double(x):")],
    ],
)
def test_too_little_is_nothing(cells):
    found = recognise(new_notebook(cells=copy.deepcopy(cells)), exercise())
    assert (found.nameless, found.by_text, found.by_place) == (True, [], [])


def test_it_takes_as_many_cells_as_a_notebook_may_have():
    """Each of them could be any answer."""
    notebook = stripped(exercise())
    everything = "\n".join(cell.source for cell in exercise().cells)
    notebook.cells = [*notebook.cells, *(new_code_cell(everything) for _ in range(2000))]
    assert recognise(notebook, exercise()).by_text == ["setup", "double", "test-double", "triple", "test-triple"]
