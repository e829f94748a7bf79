"""Notebooks with test cells, made and graded cell by cell in the sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import nbformat
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.utils import determine_grade, is_grade

from tests.support.exercise_answers import cell_id, is_solution, source_notebook
from tests.support.waiting import HANG
from warpcourse.grading.judge.execute import TrustedExecute
from warpcourse.grading.judge.jobs import Job, Result
from warpcourse.grading.judge.judge import Judge, trusted_cells
from warpcourse.grading.sandbox.kernel_manager import SandboxedKernelManager, Zygotes
from warpcourse.grading.sandbox.limits import SubmissionLimits

CANARY = "canary_5f1c"  # in hidden tests only
WIDE = SubmissionLimits(wall_seconds=HANG, cpu_seconds=HANG)  # for a busy machine
SETUP = "import numpy as np\nfrom warplab import checks, cp, cuda"


class Cells:
    """A notebook in the making."""

    def __init__(self) -> None:
        self.notebook, self.tests, self.setup, self.answers = new_notebook(), {}, {}, {}
        self.locked("setup", SETUP)

    def locked(self, name: str, source: str) -> Cells:
        self.setup[name] = source
        return self._add(source, {"grade_id": name, "grade": False, "solution": False, "locked": True})

    def student(self, source: str) -> Cells:
        return self._add(source, None)

    def answer(self, name: str, source: str, given: str) -> Cells:
        """Add an answer cell. `given`: its text in the release."""
        self.answers[name] = given
        return self._add(source, {"grade_id": name, "grade": False, "solution": True, "locked": False})

    def test(self, name: str, source: str, points: float = 2) -> Cells:
        self.tests[name] = source
        about = {"grade_id": name, "grade": True, "solution": False, "locked": True, "points": points}
        return self._add(source, about)

    def hidden(self, name: str, visible: str, hidden: str) -> Cells:
        return self.test(name, f"{visible}\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS")

    def _add(self, source: str, about: dict | None) -> Cells:
        self.notebook.cells.append(new_code_cell(source, metadata={"nbgrader": about} if about else {}))
        return self

    def run(self, zygotes: Zygotes, limits: SubmissionLimits = WIDE, seconds: int = int(HANG), **options) -> Graded:
        """Grade the notebook. `seconds`: for cells whose text contains "# endless"; others have all the time."""
        settings = {"seed": b"secret", "assignment": "a"} | options
        execute = TrustedExecute(tests=self.tests, setup=self.setup, answers=self.answers, limits=limits, **settings)
        execute.timeout_func = lambda cell: seconds if "# endless" in cell.source else int(HANG)
        with SandboxedKernelManager(zygotes, {"data.txt": b"the student's"}, limits) as manager:
            execute.preprocess(self.notebook, {"metadata": {"path": "."}}, km=manager)
        nbformat.validate(self.notebook)
        json.dumps(self.notebook).encode()
        return Graded(execute, self.notebook)


def failures_of_exercise(topic: str, zygotes: Zygotes, answers: dict[str, str]) -> dict[str, str]:
    """Grade an exercise of the course with the solutions where `answers`, by cell, gives no other.

    Return the failures: the text of each failed test cell.
    """
    cells = Cells()
    cells.notebook = source_notebook(topic)
    cells.tests, cells.setup = trusted_cells(cells.notebook)
    kept = [cell for cell in cells.notebook.cells if cell.cell_type == "code"]
    cells.notebook.cells = kept
    cells.answers = {cell_id(cell): cell.source for cell in kept if is_solution(cell)}
    for cell in kept:
        cell.source = answers.get(cell_id(cell), cell.source)
    return cells.run(zygotes).failed


class HereWorkers:
    """An executor: one judge, in this process, with warm zygotes. In place of `LocalWorkers`, whose judges start."""

    def __init__(self, zygotes: Zygotes) -> None:
        self._zygotes = zygotes

    def look(self) -> dict:
        return Judge(self._zygotes).look()

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        with Judge(self._zygotes) as judge:
            for job in jobs:
                yield judge.grade(job)


class Graded:
    """A notebook that was run. `failed`: messages of the test cells that lost points."""

    def __init__(self, execute: TrustedExecute, notebook: NotebookNode) -> None:
        self.execute, self.notebook = execute, notebook
        self.verdicts, self.ended = execute.verdicts, execute.ended
        self.failed = {name: verdict.message for name, verdict in self.verdicts.items() if verdict.kind}
        self.points = {c.metadata.nbgrader.grade_id: determine_grade(c)[0] for c in notebook.cells if is_grade(c)}
        for name, points in self.points.items():
            assert points == 0 or name not in self.failed
            assert points > 0 or name in self.failed

    def text(self, number: int) -> str:
        """What a cell printed, its results and errors."""
        parts = []
        for output in self.notebook.cells[number].outputs:
            parts.append(output.get("text", "") + str(output.get("data", "")) + output.get("evalue", ""))
        return "".join(parts)

    def everything(self) -> str:
        """All that a student can get to see: outputs of all cells, and the text of those that are not hidden."""
        return json.dumps([[cell.outputs, cell.source if not is_grade(cell) else ""] for cell in self.notebook.cells])
