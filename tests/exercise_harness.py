"""Runs cells of an exercise in this process: the answer of a mutant, then the test cells of its problem."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from nbformat.notebooknode import NotebookNode
from traitlets.config import Config

import warplab

ROOT = Path(__file__).resolve().parents[1]


# A cell's nbgrader metadata, read here so that the tests run on a GPU machine without nbgrader.


def cell_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def is_grade(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("grade", False)


def is_solution(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("solution", False)


def source_notebook(topic: str) -> NotebookNode:
    return nbformat.read(ROOT / "solutions" / topic / f"{topic}.ipynb", as_version=4)


def git(*arguments: str) -> bytes | None:
    """What a git command on the course prints; None where it fails, as without git or outside a checkout."""
    if not shutil.which("git"):
        return None
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def committed(path: str) -> bytes:
    """A file of the course as committed: a learner may have written into it. From disk where there is no commit."""
    content = git("show", f"HEAD:{path}")
    return (ROOT / path).read_bytes() if content is None else content


def cells_by_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    return {cell_id(cell): cell for cell in notebook.cells if cell_id(cell)}


def answers_and_tests(notebook: NotebookNode) -> dict[str, list[str]]:
    """Id of each answer cell -> ids of the test cells that follow it."""
    found: dict[str, list[str]] = {}
    answer = ""
    for cell in notebook.cells:
        if is_solution(cell):
            answer = cell_id(cell)
            found[answer] = []
        elif is_grade(cell):
            found[answer].append(cell_id(cell))
    return found


@dataclass(frozen=True)
class Mutant:
    """A wrong answer. `loses`: the test cells that must fail, no other; `reason`: regex of the first message."""

    path: Path
    problem: str
    loses: frozenset[str]
    reason: str
    cell: str


def mutants(topic: str) -> list[Mutant]:
    """The files of tests/mutants/<topic>: three header lines, then the source of the answer cell."""
    found = []
    for path in sorted((ROOT / "tests" / "mutants" / topic).iterdir()):
        if path.suffix not in (".py", ".cu"):
            continue
        *head, body = path.read_text().split("\n", 3)
        fields = dict(re.fullmatch(r"(?:#|//) (problem|loses|reason): (.+)", line).groups() for line in head)
        cell = "%%cuda\n" + body if path.suffix == ".cu" else body
        loses = frozenset(fields["loses"].split(", "))
        found.append(Mutant(path, fields["problem"], loses, fields["reason"], cell))
    return found


class Session:
    """One IPython shell that is emptied before each answer."""

    def __init__(self, topic: str) -> None:
        self.notebook = source_notebook(topic)
        self.cells, self.tests = cells_by_id(self.notebook), answers_and_tests(self.notebook)
        config = Config()
        config.HistoryManager.enabled = False
        self.shell = InteractiveShell.instance(config=config, colors="nocolor")
        warplab.load_ipython_extension(self.shell)  # in a notebook the import does this

    def run(self, source: str) -> str:
        """Run one cell; "" or "ErrorClass: message"."""
        result = self.shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        return "" if error is None else f"{type(error).__name__}: {error}"

    def failures(self, problem: str, answer: str) -> dict[str, str]:
        """Message of each failed test cell of a problem, when `answer` stands in its answer cell."""
        self.shell.reset(new_session=False)
        error = self.run(self.cells["setup"].source)
        assert not error, error
        self.run(answer)
        messages = {test: self.run(self.cells[test].source) for test in self.tests[problem]}
        assert messages
        return {test: message for test, message in messages.items() if message}
