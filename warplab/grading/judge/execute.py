"""`TrustedExecute`: a notebook's test cells run here, its other cells in the student's kernel.

It replaces nbgrader's Execute. Test cells see stand-ins (`stand_ins`) for the student's names, so none of the student's
code runs in this process, and nothing of this process is in the kernel. Locked cells without points run in both. The
outputs are those of an ordinary run: a test that fails has an error, one that returns a number gives partial credit.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import random
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jupyter_core.utils import ensure_async, run_sync
from nbclient.exceptions import CellExecutionComplete, DeadKernelError
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import Execute
from nbgrader.utils import compute_checksum, is_locked
from traitlets import Bytes, Dict, Instance, Unicode

from warplab import simulator
from warplab.checks import session
from warplab.checks.errors import CheckFailed
from warplab.grading.exchange import artefacts
from warplab.grading.judge import frameworks, inert, outputs, verdicts
from warplab.grading.judge.agent_client import GIVE_UP_SECONDS, AgentClient, NoAnswer
from warplab.grading.judge.cells import CellRunner, TrustedCell
from warplab.grading.judge.hidden_tests import without_hidden_tests
from warplab.grading.judge.stand_ins import Notebook
from warplab.grading.judge.untrusted import Reading
from warplab.grading.judge.verdicts import BrokenCell, Verdict
from warplab.grading.sandbox.limits import SubmissionLimits

SEED_VARIABLE = "WARPLAB_GRADING_SEED"
_RESPONSE_SECONDS = 5.0  # for a kernel whose time is up to show that it is alive
_FLOOD_SECONDS = 30.0  # the same for a kernel interrupted because of its output, much of which is still under way
_REASONS = {
    "ended": "The process of the notebook ended by itself. Later tests found nothing that it had defined.",
    "silent": "The process of the notebook did not stop when its time was up, and was ended.",
    "wall": "The cells of the notebook together took longer than allowed; its process was ended.",
    "broken": "The process of the notebook sent messages that no notebook sends, and was ended.",
}


@dataclass(frozen=True)
class EarlyEnd:
    """The end of a student's process before the end of its notebook.

    `status`: "student_crash", "timeout" or "limit". `reason`: for the student.
    """

    status: str
    reason: str


class TrustedExecute(Execute):
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
    limits = Instance(SubmissionLimits, (), help="Limits of the submission.")
    reading = Instance(Reading, (), help="What reads the submission's outputs and its text.")

    # nbclient would keep the state of a student's widgets, which is neither graded nor bounded.
    store_widget_state = False
    raise_on_iopub_timeout = False
    code_cells_executed: int

    def preprocess(self, nb: NotebookNode, resources: Any = None, km: Any = None) -> tuple[NotebookNode, Any]:
        """Run all code cells of `nb` and put their outputs into it. Raises what goes wrong in the grader itself."""
        self.verdicts: dict[str, Verdict] = {}
        self.ended: EarlyEnd | None = None
        self.cell_timed_out = False
        self.child_seconds = 0.0
        tests, setup, self._given = self._trusted(resources)
        self._tests = {name: TrustedCell(name, source) for name, source in tests.items()}
        self._setup = {name: TrustedCell(name, source) for name, source in setup.items()}
        self._leave_tensorflow_to_student()
        self._secret = self.seed or os.environ.get(SEED_VARIABLE, "").encode() or secrets.token_bytes(32)
        self._digest = self.submission or _digest(nb)
        self._assignment = self.assignment or ((resources or {}).get("nbgrader") or {}).get("assignment", "")
        self._runner = CellRunner(self.limits.output_bytes_cell, self.limits.memory_bytes)
        self._notebook = Notebook(self._ask)
        self._allowance = outputs.Allowance(self.limits.output_bytes_cell, self.limits.output_bytes_notebook)
        self._client: AgentClient | None = None
        # Does the student's process know inputs of hidden tests? Then nothing of its choice is shown any more.
        self._knows = False
        self._unheard = False  # did a function print in the current test, before that?
        self._broken: list[BrokenCell] = []
        self._redefined: set[str] = set()
        self._counted = 0  # the number of the kernel's last cell
        self._deadline: float | None = None
        self._interrupted = self._timed_out = False
        self._interruption: asyncio.Future | None = None
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
            if self._client is not None:
                self._client.close()
            self._runner.close()

    @property
    def kernels(self) -> dict[str, str]:
        return self._notebook.kernels

    @property
    def notes(self) -> list[str]:
        return [
            f"{name} was defined again after a test had taken it; all tests of one answer judge the same kernel."
            for name in sorted(self._redefined)
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

    def _leave_tensorflow_to_student(self) -> None:
        """Take what needs TensorFlow out of the locked cells that run here. Raises ValueError for tests that need it.

        What those statements define is then the student's, as an answer is: a test that uses it asks the student's
        process, and must not compare with what that says.
        """
        modules, _ = frameworks.left_to_student(cell.tree for cell in self._setup.values())
        for cell in self._setup.values():
            cell.find_names()
        for cell in self._tests.values():
            used = sorted(modules.intersection(cell.names))
            if used or any(map(frameworks.imported, ast.walk(cell.tree))):
                raise ValueError(
                    f"the test cell {cell.name!r} uses {', '.join(used) or 'TensorFlow'}, which the grader does not "
                    "import; let the test take and compare NumPy arrays, and use TensorFlow in a locked cell without "
                    "points or in the answer"
                )

    # -- cells -------------------------------------------------------------------------------------------------

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.cell_type == "code" and name in self._tests:
            cell.source = self._tests[name].source
            self._test(cell, self._tests[name])
        elif cell.cell_type == "code" and name in self._setup:
            cell.source = self._setup[name].source
            self._set_up(self._setup[name])
            self._in_kernel(cell, index)
        elif cell.cell_type == "code" and cell.source.strip():
            self._in_kernel(cell, index)
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
        seconds = float(super()._get_timeout(cell) or self.limits.wall_seconds)
        self._deadline = time.monotonic() + seconds
        self._begin(trusted)
        self._unheard = False
        try:
            names = self._notebook.fetch(self._runner.missing(trusted))
            if not self._knows:
                self._redefined |= self._notebook.redefined
            with self._in_folder():
                # Later than the client, which gives up waiting for an answer first.
                outcome = self._runner.run(trusted, names, seconds + GIVE_UP_SECONDS)
        except CheckFailed as error:  # the process ended when asked for the names
            return verdicts.gone(str(error))
        finally:
            self._deadline = None
        if isinstance(outcome.error, simulator.SimulatorFailure):
            raise outcome.error
        text = artefacts.clean_text(outcome.printed)
        text += f"[{outputs.UNHEARD}]\n" * self._unheard + f"[{outputs.WITHHELD}]\n" * outcome.muted
        if text:
            cell.outputs.append(new_output("stream", name="stdout", text=text))
        if outcome.error is None and outcome.result is not None:
            cell.outputs += _result(outcome.result, cell)
        return verdicts.verdict(outcome, visible, self._knows, self._broken)

    def _set_up(self, trusted: TrustedCell) -> None:
        """Run a cell that both sides need. As it is the instructor's, an error is the grader's own."""
        self._begin(trusted)
        with self._in_folder():
            outcome = self._runner.run(trusted, {}, self.limits.wall_seconds)  # long: the first notebook imports
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

    # -- the student's kernel ----------------------------------------------------------------------------------

    async def async_start_new_kernel(self, **options: Any) -> None:
        # A student's process must not find the secret in its environment.
        options.setdefault("env", {name: value for name, value in os.environ.items() if name != SEED_VARIABLE})
        await super().async_start_new_kernel(**options)

    start_new_kernel = run_sync(async_start_new_kernel)

    def _in_kernel(self, cell: NotebookNode, index: int) -> None:
        """Run a cell in the student's process.

        Once that knows inputs of hidden tests, every cell looks the same afterwards, whether it failed, printed or
        never ran: which of many cells fail, and how, would tell the inputs as well as words.
        """
        number = 1 + int(self.code_cells_executed)
        self._execute_there(cell, index)
        if self._knows:
            self.code_cells_executed = cell.execution_count = number
            cell.outputs = outputs.withheld()
        for output in cell.outputs:
            if output.output_type == "error":
                self._broken.append(BrokenCell(cell.execution_count, cell.source, output.ename, output.evalue))

    def _execute_there(self, cell: NotebookNode, index: int) -> None:
        cell.outputs, cell.execution_count = [], None
        if self.ended is None and self._seconds_left() <= 0:
            self._end("timeout", "wall")
        if self.ended is not None:
            return
        self._count_on()
        if self.ended is not None:
            return
        self._allowance.begin()
        self._interrupted = self._timed_out = False
        began = time.monotonic()
        try:
            self.execute_cell(cell, index, store_history=True)
        except DeadKernelError:
            self._end("student_crash", "ended")
        except Exception as error:  # of nbclient or jupyter_client, over a message of unexpected form
            self.log.warning("a student's kernel sent something unexpected: %r", error)
            self._end("student_crash", "broken")
        finally:
            self.child_seconds += time.monotonic() - began
        if self._interruption is not None:  # where the cell ended first, it has not begun; it must not strike the next
            with contextlib.suppress(Exception):
                run_sync(ensure_async)(self._interruption)
            self._interruption = None
        stopped = self.ended is None and (self._timed_out or self._interrupted)
        if stopped and not self._agent().responds(_RESPONSE_SECONDS if self._timed_out else _FLOOD_SECONDS):
            self._end("timeout", "silent")
        cell.execution_count = self.code_cells_executed
        kept = [outputs.cleaned(output, self.code_cells_executed, self.reading) for output in cell.outputs]
        cell.outputs = outputs.coalesced([output for output in kept if output is not None])
        self._note_what_is_left_out(cell)

    def _count_on(self) -> None:
        """Number the kernel's next cell as the page does, test cells included, since messages name cells by it.

        Every request to the agent sets the number. Without one since the last test cell, send one.
        """
        if self._counted != self.code_cells_executed:
            with contextlib.suppress(CheckFailed):  # if the process ended, `ended` says why
                self._ask([])
        self._counted = self.code_cells_executed + 1

    def _note_what_is_left_out(self, cell: NotebookNode) -> None:
        lost = self._allowance.lost
        if lost:
            text = f"\n[{lost:,} more bytes of output are left out]\n"
            cell.outputs.append(new_output("stream", name="stdout", text=text))

    def _seconds_left(self) -> float:
        return self.limits.wall_seconds - self.child_seconds

    def _get_timeout(self, cell: NotebookNode | None) -> int | None:
        whole = super()._get_timeout(cell)
        left = max(1, int(self._seconds_left()))
        return left if whole is None else min(whole, left)

    async def _async_handle_timeout(self, timeout: int, cell: NotebookNode | None = None) -> Any:
        self._timed_out = self.cell_timed_out = True
        return await super()._async_handle_timeout(timeout, cell)

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        try:
            return super().process_message(msg, cell, cell_index)
        except CellExecutionComplete:
            raise
        except Exception:  # a message that lacks fields of its kind
            return None

    def output(self, outs: list, msg: dict[str, Any], display_id: str | None, cell_index: int) -> NotebookNode | None:
        content = msg["content"]
        stream = msg["msg_type"] == "stream"
        size = outputs.size_of(content["text"] if stream else content)
        kept = self._allowance.take(size, divisible=stream)
        if self._allowance.received > self.limits.output_bytes_notebook and not self._interrupted:
            self._interrupted = True
            self._interruption = asyncio.ensure_future(ensure_async(self.km.interrupt_kernel()))
        if stream:
            content["text"] = content["text"][:kept]
        return super().output(outs, msg, None, cell_index) if kept else None

    def on_cell_executed(self, **kwargs: Any) -> None:
        """Give a wrong magic (UsageError) its message as a traceback: IPython sends none."""
        reply = kwargs["execute_reply"]["content"]
        if reply.get("status") == "error" and not reply.get("traceback"):
            reply["traceback"] = [f"{reply.get('ename')}: {reply.get('evalue')}"]
        super().on_cell_executed(**kwargs)

    def handle_comm_msg(self, outs: list, msg: dict[str, Any], cell_index: int) -> None:
        """Ignore widgets, which are not graded."""

    def _update_display_id(self, display_id: str, msg: dict[str, Any]) -> None:
        """Leave outputs as first shown: later changes would escape the limits."""

    # -- questions to its agent --------------------------------------------------------------------------------

    def _agent(self) -> AgentClient:
        if self._client is None:
            self._client = AgentClient(self.km, self._seconds_for_an_answer, artefacts.LIMITS)
        return self._client

    def _seconds_for_an_answer(self) -> float:
        left = self._seconds_left()
        return left if self._deadline is None else min(left, self._deadline - time.monotonic())

    def _ask(self, wishes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self.ended is not None:
            raise CheckFailed(self.ended.reason, kind="process")
        if self._runner.in_hidden_tests and any(wish["op"] == "call" for wish in wishes):
            self._knows = self._runner.silent = True
        began = time.monotonic()
        try:
            *answers, _ = self._agent().ask([*wishes, {"op": "count", "next": self.code_cells_executed + 1}])
            self._counted = self.code_cells_executed
            if not self._knows:
                self._unheard |= any(answer.get("printed") is True for answer in answers)
            return answers
        except NoAnswer as error:
            if error.reason == "time":
                raise CheckFailed("A function of the notebook did not end in time.", kind="endless") from None
            early = self._end("timeout" if error.reason == "silent" else "student_crash", error.reason)
            raise CheckFailed(early.reason, kind="process") from None
        finally:
            self.child_seconds += time.monotonic() - began

    def _end(self, status: str, reason: str) -> EarlyEnd:
        """End the student's process if it still runs, and note why."""
        text = _REASONS[reason]
        known = getattr(self.km, "ended", None)  # a sandbox knows why
        with contextlib.suppress(Exception):
            run_sync(self.km.shutdown_kernel)(now=True)
        if known is not None and known.reason == "lost":
            raise RuntimeError(f"the sandbox was lost: {known.text}")
        if known is not None and known.is_limit:
            status, text = "timeout" if known.reason == "wall" else "limit", known.text
        self.ended = EarlyEnd(status, text)
        return self.ended


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
