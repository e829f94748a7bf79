"""`TrustedExecute`: a notebook's test cells run here, its other cells in the student's kernel.

It replaces nbgrader's Execute. Test cells see stand-ins (`stand_ins`) for the student's names, so none of the student's
code runs in this process, and nothing of this process is in the kernel. Locked cells without points run in both. The
outputs are those of an ordinary run: a test that fails has an error, one that returns a number gives partial credit.
"""

import contextlib
import hashlib
import hmac
import json
import os
import random
import secrets
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.utils import compute_checksum, is_locked
from traitlets import Bytes, Dict, Unicode

from warpcourse.grading.exchange import artefacts
from warpcourse.grading.judge import framework_cells, inert, outputs, verdicts
from warpcourse.grading.judge.agent_client import GIVE_UP_SECONDS
from warpcourse.grading.judge.cells import CellRunner, OutOfTime, TrustedCell
from warpcourse.grading.judge.hidden_tests import without_hidden_tests
from warpcourse.grading.judge.jobs import SEED_VARIABLE
from warpcourse.grading.judge.stand_ins import Notebook
from warpcourse.grading.judge.student_process import StudentProcess
from warpcourse.grading.judge.verdicts import Verdict
from warpcourse.grading.sandbox.limits import WIDE
from warplab import simulator
from warplab.checks import session
from warplab.checks.errors import CheckFailed

_SLOW = 5.0  # seconds; a kernel that took longer to be refused is not read a second time


class TrustedExecute(StudentProcess):
    """The preprocessor described above. Nothing that a student's code does makes it fail.

    After `preprocess`: `verdicts` by id of the test cell, `ended` (None if the process lived until the end), `kernels`
    (PTX of each kernel that a test ran, by name and argument types), `cell_timed_out`, `notes` (for student and
    instructor), `child_seconds` (wall clock).
    """

    tests = Dict(
        default_value=None,
        allow_none=True,
        help="The instructor's text of each test cell, by nbgrader's id. None: as in the gradebook.",
    )
    setup = Dict(
        {}, help="Text of each locked code cell without points, by id; it runs here and in the student's kernel."
    )
    answers = Dict({}, help="Given text of each answer cell, by id: what a test takes is that of its last answer cell.")
    seed = Bytes(b"", help=f"The course's secret, from which inputs are drawn. Empty: {SEED_VARIABLE}.")
    assignment = Unicode("", help="Name of the assignment, on which the inputs depend.")
    submission = Unicode("", help="Hash of the submission, on which the inputs depend. Empty: hash of its cells.")
    folder = Unicode("", help="Folder of the instructor's files for the assignment, in which test cells run.")

    def preprocess(self, nb: NotebookNode, resources: Any = None, km: Any = None) -> tuple[NotebookNode, Any]:
        """Run all code cells of `nb` and put their outputs into it. Raises what goes wrong in the grader itself."""
        self.begin()
        self.verdicts: dict[str, Verdict] = {}
        tests, setup, self._given = self._trusted(resources)
        self._tests = {name: TrustedCell(name, source) for name, source in tests.items()}
        self._setup = {name: TrustedCell(name, source) for name, source in setup.items()}
        self._leave_frameworks_to_student()
        self._secret = self.seed or os.environ.get(SEED_VARIABLE, "").encode() or secrets.token_bytes(32)
        self._digest = self.submission or _digest(nb)
        self._assignment = self.assignment or ((resources or {}).get("nbgrader") or {}).get("assignment", "")
        self._runner = CellRunner(self.limits.output_bytes_cell, self.limits.memory_bytes)
        self._notebook = Notebook(self.ask)
        self._redefined: set[str] = set()
        self._judged = 0.0  # seconds of this process for tests
        self._odd: set[str] = set()
        # Two devices: a kernel under test must not reach the arrays of a test cell.
        checked, launched = simulator.Device(), simulator.Device()
        checked.echo = launched.echo = False
        self._draws = 0
        try:
            with (
                session.using(session.Session(self._draw, checked)),
                simulator.using_device(launched),
                _repeatable_randomness(),
            ):
                return super().preprocess(nb, resources, km)
        finally:
            self.close()
            self._runner.close()

    @property
    def child_seconds(self) -> float:
        return self.clock.used

    @property
    def kernels(self) -> dict[str, str]:
        return self._notebook.kernels

    @property
    def exhausted(self) -> str:
        """Return what is told of tests that were not run, "" if there is time for more."""
        if self._judged < self.limits.judge_seconds:
            return ""
        most = self.limits.judge_seconds
        return f"The tests of this notebook took {most:g} s of processor time in all; no more of them were run."

    @property
    def notes(self) -> list[str]:
        return [
            f"{name} was defined again after a test had taken it; all tests of one answer judge the same kernel."
            for name in sorted(self._redefined)
        ] + [
            f"What the notebook's process said of {name} changed, or could not be read, after a test had taken it, as "
            "no cell does by defining it again; all tests of one answer judge the same kernel."
            for name in sorted(self._odd)
        ]

    def _trusted(self, resources: Any) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        """Return the text of test cells, of locked cells without points, and the given text of answers, by id."""
        if self.tests is not None:
            return dict(self.tests), dict(self.setup), dict(self.answers)
        about = (resources or {}).get("nbgrader")
        if not about:
            raise ValueError("TrustedExecute needs `tests`, or nbgrader's resources, which name its gradebook")
        with Gradebook(about["db_url"]) as gradebook:
            notebook = gradebook.find_notebook(about["notebook"], about["assignment"])
            graded = {cell.name for cell in notebook.grade_cells}
            solutions = {cell.name for cell in notebook.solution_cells}
            cells = {
                cell.name: cell.source
                for cell in notebook.source_cells
                if cell.cell_type == "code" and cell.locked and cell.name not in solutions
            }
        return (
            {name: source for name, source in cells.items() if name in graded},
            {name: source for name, source in cells.items() if name not in graded},
            {cell.name: cell.source for cell in notebook.source_cells if cell.name in solutions},
        )

    def _leave_frameworks_to_student(self) -> None:
        """Take what needs a framework out of the locked cells that run here. Raises ValueError for tests that need it.

        What those statements define is then the student's, as an answer is: a test that uses it asks the student's
        process, and must not compare with what that says.
        """
        modules, others = framework_cells.left_to_student(cell.tree for cell in self._setup.values())
        self._restores, self._definitions = bool(modules or others), ""
        for cell in self._setup.values():
            cell.find_names()
        for cell in self._tests.values():
            used = sorted(modules.keys() & cell.names)
            framework = modules[used[0]] if used else framework_cells.imported(cell.tree)
            if framework is not None:
                raise ValueError(
                    f"the test cell {cell.name!r} uses {', '.join(used) or framework.name}, which the grader does not "
                    f"import; let the test take and compare NumPy arrays, and use {framework.name} in a locked cell "
                    "without points or in the answer"
                )

    def ask(self, wishes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self.ended is None and self._runner.in_hidden_tests and any(wish["op"] == "call" for wish in wishes):
            self.knows = self._runner.silent = True
        return super().ask(wishes)

    # -- cells -------------------------------------------------------------------------------------------------

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.cell_type == "code" and name in self._tests:
            cell.source = self._tests[name].source
            self._test(cell, self._tests[name])
        elif cell.cell_type == "code" and name in self._setup:
            cell.source = self._setup[name].source
            self._set_up(self._setup[name])
            self.run_there(cell, index)
            if self._restores:
                self._definitions += framework_cells.definitions(cell.source) + "\n"
        elif cell.cell_type == "code" and cell.source.strip():
            self.run_there(cell, index)
            if name in self._given:
                self._notebook.release(self._given[name])
        elif cell.cell_type in ("markdown", "raw"):
            self._make_inert(cell)
        return cell, resources

    def _make_inert(self, cell: NotebookNode) -> None:
        """Replace a student's text by what shows the same and does nothing in a browser."""
        attachments = cell.get("attachments", {})
        about = cell.metadata.get("nbgrader", {})
        if is_locked(cell) or (about.get("checksum") and about["checksum"] == compute_checksum(cell)):
            if attachments:  # the text is the instructor's; these may not be
                cell.attachments = inert.inert_attachments(attachments)
            return
        cell.pop("attachments", None)
        if cell.cell_type == "raw":
            cell.cell_type, cell.source = "markdown", inert.literally(cell.source)
        else:
            cell.source = self.reading.markdown(cell.source, attachments)

    def _test(self, cell: NotebookNode, trusted: TrustedCell) -> None:
        self.code_cells_executed += 1
        cell.execution_count, cell.outputs = self.code_cells_executed, []
        visible = without_hidden_tests(trusted.source)
        if self.ended is None:
            verdict = self._run_test(cell, trusted, visible)
        if self.ended is not None:
            verdict = verdicts.gone(self.ended.reason)
        self.verdicts[trusted.name] = verdict
        if verdict.kind:
            evalue = verdict.message
            lines = list(verdict.traceback)
            cell.outputs.append(new_output("error", ename=verdict.ename, evalue=evalue, traceback=lines))

    def _run_test(self, cell: NotebookNode, trusted: TrustedCell, visible: str) -> Verdict:
        if self.exhausted:
            return verdicts.gone(self.exhausted)
        seconds = float(super()._get_timeout(cell) or self.limits.wall_seconds)
        began = time.process_time()
        left = self.limits.judge_seconds - self._judged
        self._begin(trusted)
        self.unheard = False
        try:
            with self.clock.until(seconds):
                if self._definitions:  # a test asks for what these do, and the notebook may have replaced them
                    self.ask([{"op": "define", "source": self._definitions}])
                names = self._notebook.fetch(self._runner.missing(trusted))
                if not self.knows:
                    self._redefined |= self._notebook.redefined
                    self._odd |= self._notebook.odd
                with self._in_folder():
                    # Later than the client, which gives up waiting for an answer first.
                    outcome = self._runner.run(trusted, names, WIDE * seconds + GIVE_UP_SECONDS, min(seconds, left))
        except CheckFailed as error:  # the process ended when asked for the names
            return verdicts.gone(str(error))
        finally:
            took = time.process_time() - began
            self._judged += took
        if left <= seconds and isinstance(outcome.error, OutOfTime) and "processor" in str(outcome.error):
            self._judged = self.limits.judge_seconds  # the timer of a test that had all that was left may be early
        text = artefacts.clean_text(outcome.printed)
        text += f"[{outputs.UNHEARD}]\n" * self.unheard + f"[{outputs.WITHHELD}]\n" * outcome.muted
        if text:
            cell.outputs.append(new_output("stream", name="stdout", text=text))
        if outcome.error is None and outcome.result is not None:
            cell.outputs += _result(outcome.result, cell)
        verdict = verdicts.verdict(outcome, visible, self.knows, self.broken)
        if took > _SLOW and verdict.kind in ("endless", "unknown instruction"):
            self._notebook.give_up()
        if verdict.trace:
            self.log.warning("the simulator failed in the test cell %r:\n%s", trusted.name, verdict.trace)
        return verdict

    def _set_up(self, trusted: TrustedCell) -> None:
        """Run a cell that both sides need. As it is the instructor's, an error is the grader's own."""
        self._begin(trusted)
        with self._in_folder():
            seconds = self.limits.wall_seconds  # long: the first notebook imports
            outcome = self._runner.run(trusted, {}, WIDE * seconds, seconds)
        if outcome.error is not None:
            raise RuntimeError(f"the locked cell {trusted.name!r} fails: {outcome.error}") from outcome.error

    def _begin(self, trusted: TrustedCell) -> None:
        """Seed all random draws of a cell from the secret, the assignment, the submission and the cell."""
        self._drawing, self._draws = trusted.name, 0
        random.seed(self._draw())
        np.random.seed(self._draw() % 2**32)  # noqa: NPY002 - a test may use the global generator

    def _draw(self) -> int:
        self._draws += 1
        message = json.dumps([self._assignment, self._drawing, self._digest, self._draws]).encode()
        return int.from_bytes(hmac.digest(self._secret, message, "sha256")[:6], "big")

    def _in_folder(self) -> contextlib.AbstractContextManager:
        return contextlib.chdir(self.folder) if self.folder else contextlib.nullcontext()


@contextlib.contextmanager
def _repeatable_randomness() -> Iterator[None]:
    """Restore the global random generators, which test cells seed."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


def _digest(nb: NotebookNode) -> str:
    digest = hashlib.sha256()
    for cell in nb.cells:
        digest.update(json.dumps([cell.cell_type, cell.source]).encode())
    return digest.hexdigest()


def _result(value: Any, cell: NotebookNode) -> list[NotebookNode]:
    """Return the output for a test cell's last expression: partial credit if it is a number in range."""
    points = float(cell.metadata.get("nbgrader", {}).get("points", 0))
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        number = float(value)
        if 0 <= number <= points:
            return [
                new_output("execute_result", data={"text/plain": repr(number)}, execution_count=cell.execution_count)
            ]
    return []
