"""Which notebook of a submission is graded, and the names of its cells: found under limits, whatever is handed in."""

from __future__ import annotations

import json

import nbformat
import pytest

from tests.support.class_harness import RIGHT, TINY, answered, tiny_course, tiny_source
from warpcourse.exercises.score import cell_id
from warpcourse.grading.judge import untrusted
from warpcourse.grading.judge.assembly import assemble, parse
from warpcourse.grading.judge.untrusted import Reading, Unusable
from warpcourse.grading.sandbox.limited import Limited

MASTER = tiny_source()


def nameless(root) -> bytes:
    notebook = answered(tiny_course(root), RIGHT)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        del cell["id"]
    return nbformat.writes(notebook).encode()


def test_names_are_found_in_a_process_of_its_own(tmp_path, monkeypatch):
    def here(*_):
        raise AssertionError("in the judge's own process")

    monkeypatch.setattr(untrusted, "recognise", here)
    assembled = assemble(TINY, MASTER, {f"{TINY}.ipynb": nameless(tmp_path)}, Reading())
    assert [cell.source for cell in assembled.notebook.cells if cell_id(cell) == "double"] == [RIGHT]
    assert "lost the names" in assembled.notes[0]


def test_another_notebook_without_names_is_found_by_its_text(tmp_path):
    files = {"homework.ipynb": nameless(tmp_path), "notes.ipynb": nbformat.writes(nbformat.v4.new_notebook()).encode()}
    notes = assemble(TINY, MASTER, files, Reading()).notes
    assert notes[0] == f"{TINY}.ipynb is missing; homework.ipynb has its cells and was graded."
    assert "lost the names" in notes[1]
    with pytest.raises(Unusable, match=r"several notebooks have its cells: a.ipynb, homework.ipynb"):
        assemble(TINY, MASTER, {**files, "a.ipynb": files["homework.ipynb"]}, Reading())


def test_cells_that_take_too_long_to_recognise_are_a_limit(tmp_path):
    reading = Reading()
    notebook = parse(nameless(tmp_path), reading)
    reading._left = 0.0
    with pytest.raises(Unusable, match="cannot be recognised") as raised:
        reading.names(notebook, MASTER)
    assert raised.value.status == "limit"


def test_many_notebooks_share_one_allowance(monkeypatch):
    """Before, each of 500 could keep the judge busy for a second."""
    calls = []
    call = Limited.__call__

    def counted(self, function, *arguments, **options):
        answer = call(self, function, *arguments, **options)
        calls.append(function)
        return answer

    monkeypatch.setattr(Limited, "__call__", counted)
    monkeypatch.setattr(untrusted, "SECONDS", 0.5)
    cells = [{"cell_type": "code", "source": "aa\n" * 10}] * untrusted.MAX_CELLS
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()
    with pytest.raises(Unusable, match="is missing"):
        assemble(TINY, MASTER, {f"{number}.ipynb": text for number in range(300)}, Reading())
    assert "recognised" in calls
    assert len(calls) < 300


def test_a_notebook_in_latin_1_is_read_with_a_note(tmp_path):
    notebook = answered(tiny_course(tmp_path), f"{RIGHT}  # für später")
    text = json.dumps(notebook, ensure_ascii=False).encode("latin-1")
    assembled = assemble(TINY, MASTER, {f"{TINY}.ipynb": text}, Reading())
    assert "The notebook is not UTF-8 and was read as Latin-1: check its accents." in assembled.notes
    assert [c.source for c in assembled.notebook.cells if cell_id(c) == "double"] == [f"{RIGHT}  # für später"]
    with pytest.raises(Unusable, match="not a Jupyter notebook"):
        assemble(TINY, MASTER, {f"{TINY}.ipynb": b"\xff\xfe\x80"}, Reading())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32-be"])
def test_a_notebook_in_any_unicode_is_read(tmp_path, encoding):
    """PowerShell's `>` writes UTF-16."""
    notebook = answered(tiny_course(tmp_path), f"{RIGHT}  # für später")
    text = json.dumps(notebook, ensure_ascii=False).encode(encoding)
    assembled = assemble(TINY, MASTER, {f"{TINY}.ipynb": text}, Reading())
    assert assembled.notes == []
    assert [c.source for c in assembled.notebook.cells if cell_id(c) == "double"] == [f"{RIGHT}  # für später"]


@pytest.mark.parametrize("name", ["test-tw,o", "é", "a" * 65, "", "\u2028", "\ud800", "a\n", 7])
def test_an_id_that_nbformat_refuses_costs_its_cell_only_that_id(tmp_path, name):
    """Such an id was an infra_error: no score, whenever it was graded again."""
    notebook = answered(tiny_course(tmp_path), RIGHT)
    for cell in notebook.cells[1:4]:
        cell["id"] = name
    content = json.dumps(notebook).encode()
    assembled = assemble(TINY, MASTER, {f"{TINY}.ipynb": content}, Reading())
    assert [c.source for c in assembled.notebook.cells if cell_id(c) == "double"] == [RIGHT]
    nbformat.validate(assembled.notebook)
