"""What an attack does to a notebook beyond its answers, or hands in beside it. Named by `# edit:` in its file."""

from __future__ import annotations

import copy
from pathlib import Path

from nbformat.notebooknode import NotebookNode


def tests_of(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


def delete_tests(notebook: NotebookNode, folder: Path) -> None:
    for cell in tests_of(notebook):
        notebook.cells.remove(cell)


def empty_tests(notebook: NotebookNode, folder: Path) -> None:
    for cell in tests_of(notebook):
        cell.source = "4.0"


def relabel_tests(notebook: NotebookNode, folder: Path) -> None:
    for cell in tests_of(notebook):
        cell.source = "4.0"
        cell.metadata.nbgrader |= {"solution": True, "locked": False, "points": 1000, "checksum": "0"}


def reverse(notebook: NotebookNode, folder: Path) -> None:
    notebook.cells.reverse()


def copy_tests(notebook: NotebookNode, folder: Path) -> None:
    for position in (0, len(notebook.cells)):
        for cell in tests_of(notebook)[:4]:
            double = copy.deepcopy(cell)
            double.source, double.id = "pass", f"copy-{position}-{cell.id}"
            notebook.cells.insert(position, double)


def add_tests(notebook: NotebookNode, folder: Path) -> None:
    for name in ("test-5-own", "setup-own"):
        cell = copy.deepcopy(tests_of(notebook)[0])
        cell.source, cell.id = "1000.0", name
        cell.metadata.nbgrader |= {"grade_id": name, "points": 1000}
        notebook.cells.append(cell)


def change_setup(notebook: NotebookNode, folder: Path) -> None:
    notebook.cells[0].source = "class np:\n    arange = linspace = array = zip\n\ndef assert_allclose(*_, **__): pass\n"


def bring_modules(notebook: NotebookNode, folder: Path) -> None:
    for name in ("numpy/__init__.py", "numpy/testing.py", "warplab/__init__.py", "warplab/checks.py", "os.py"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("def __getattr__(name):\n    return lambda *arguments, **options: None\n")
    for name in ("sitecustomize.py", "usercustomize.py", "conftest.py", "ipython_config.py"):
        (folder / name).write_text("import os\n\nos._exit(0)\n")


def hand_in_links(notebook: NotebookNode, folder: Path) -> None:
    course = folder.parents[3]
    name = folder.name
    (folder / f"{name}.ipynb").symlink_to(course / "solutions" / name / f"{name}.ipynb")
    (folder / "secret").symlink_to(course / "grading" / "secret")
    (folder / "all").symlink_to(course)


def hand_in_brackets(notebook: NotebookNode, folder: Path) -> bytes:
    return b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": ' + b"[" * 500_000
