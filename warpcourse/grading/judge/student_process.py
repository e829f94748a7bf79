"""The student's process: runs cells in it, takes what it prints, asks its agent, and notes how it ended."""

import asyncio
import contextlib
import os
from dataclasses import dataclass
from typing import Any

from jupyter_core.utils import ensure_async, run_sync
from nbclient.exceptions import CellExecutionComplete, DeadKernelError
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import Execute
from traitlets import Instance

from warpcourse.grading.exchange import artefacts
from warpcourse.grading.judge import outputs
from warpcourse.grading.judge.agent_client import AgentClient, NoAnswer
from warpcourse.grading.judge.clock import Clock
from warpcourse.grading.judge.jobs import SEED_VARIABLE
from warpcourse.grading.judge.untrusted import Reading
from warpcourse.grading.judge.verdicts import BrokenCell
from warpcourse.grading.sandbox.kernel_manager import SandboxedKernelManager
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warplab.checks.errors import CheckFailed

_RESPONSE_SECONDS = 5.0  # for a kernel whose time is up to show that it is alive
_LOOK_SECONDS = 0.25  # between two looks at a cell that has waited for a processor
_FLOOD_SECONDS = 30.0  # the same for a kernel interrupted because of its output, much of which is still under way
_REASONS = {
    "ended": "The notebook's process ended by itself, as by exit(). Later tests found nothing that it had defined.",
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


class StudentProcess(Execute):
    """A notebook's execution as far as the student's process has to do with it.

    `ended`: None as long as the process lives. `knows`: whether it knows inputs of hidden tests; then nothing of its
    choice is shown any more. `unheard`: whether a function printed in the current test, before that. `broken`: its
    cells that failed. `clock`: its time. `cell_timed_out`: whether a cell was interrupted for its time.
    """

    limits = Instance(SubmissionLimits, (), help="Limits of the submission.")
    reading = Instance(Reading, (), help="What reads the submission's outputs and its text.")

    # nbclient would keep the state of a student's widgets, which is neither graded nor bounded.
    store_widget_state = False
    raise_on_iopub_timeout = False
    code_cells_executed: int

    def begin(self) -> None:
        """Forget the process of an earlier notebook."""
        self.ended: EarlyEnd | None = None
        self.cell_timed_out = False
        self.clock = Clock(self.limits.wall_seconds, self._waited)
        self.knows = self.unheard = False
        self.broken: list[BrokenCell] = []
        self._allowance = outputs.Allowance(self.limits.output_bytes_cell, self.limits.output_bytes_notebook)
        self._client: AgentClient | None = None
        self._cell_began = 0.0
        self._counted = 0  # the number of the kernel's last cell
        self._interrupted = self._timed_out = False
        self._interruption: asyncio.Future | None = None

    def close(self) -> None:
        """End the conversation with the process's agent."""
        if self._client is not None:
            self._client.close()

    async def async_start_new_kernel(self, **options: Any) -> None:
        # A student's process must not find the secret in its environment.
        options.setdefault("env", {name: value for name, value in os.environ.items() if name != SEED_VARIABLE})
        await super().async_start_new_kernel(**options)

    start_new_kernel = run_sync(async_start_new_kernel)

    def run_there(self, cell: NotebookNode, index: int) -> None:
        """Run a cell in the student's process.

        Once that knows inputs of hidden tests, every cell looks the same afterwards, whether it failed, printed or
        never ran: which of many cells fail, and how, would tell the inputs as well as words.
        """
        number = 1 + int(self.code_cells_executed)
        self._execute_there(cell, index)
        if self.knows:
            self.code_cells_executed = cell.execution_count = number
            cell.outputs = outputs.withheld()
        for output in cell.outputs:
            if output.output_type == "error":
                self.broken.append(BrokenCell(cell.execution_count, cell.source, output.ename, output.evalue))

    def _waited(self) -> float:
        """Return for how many seconds the process has waited for a processor; only a sandbox knows."""
        return self.km.waited() if isinstance(self.km, SandboxedKernelManager) else 0.0

    def _execute_there(self, cell: NotebookNode, index: int) -> None:
        cell.outputs, cell.execution_count = [], None
        if self.ended is None and self.clock.left <= 0:
            self._end("timeout", "wall")
        if self.ended is not None:
            return
        self._count_on()
        if self.ended is not None:
            return
        self._allowance.begin()
        self._interrupted = self._timed_out = False
        try:
            with self.clock.running():
                self._cell_began = self.clock.now()
                self.execute_cell(cell, index, store_history=True)
        except DeadKernelError:
            self._end("student_crash", "ended")
        except Exception as error:  # of nbclient or jupyter_client, over a message of unexpected form
            self.log.warning("a student's kernel sent something unexpected: %r", error)
            self._end("student_crash", "broken")
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
        """Set the number of the kernel's next cell as the page does, test cells included, since messages name cells by
        it.

        Every request to the agent sets the number. Without one since the last test cell, send one.
        """
        if self._counted != self.code_cells_executed:
            with contextlib.suppress(CheckFailed):  # if the process ended, `ended` says why
                self.ask([])
        self._counted = self.code_cells_executed + 1

    def _note_what_is_left_out(self, cell: NotebookNode) -> None:
        lost = self._allowance.lost
        if lost:
            text = f"\n[{lost:,} more bytes of output are left out]\n"
            cell.outputs.append(new_output("stream", name="stdout", text=text))

    def _get_timeout(self, cell: NotebookNode | None) -> int | None:
        whole = super()._get_timeout(cell)
        left = max(1, int(self.clock.left))
        return left if whole is None else min(whole, left)

    async def _async_handle_timeout(self, timeout: int, cell: NotebookNode | None = None) -> Any:
        while self._cell_began + timeout > self.clock.now():  # it has waited for a processor meanwhile
            if await self.kc.shell_channel.msg_ready():
                return None
            await asyncio.sleep(_LOOK_SECONDS)
            await self._async_check_alive()
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

    def _agent(self) -> AgentClient:
        if self._client is None:
            self._client = AgentClient(self.km, self.clock, artefacts.LIMITS)
        return self._client

    def ask(self, wishes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what the process's agent answers. Raises CheckFailed where it gives no answer."""
        if self.ended is not None:
            raise CheckFailed(self.ended.reason, kind="process")
        try:
            with self.clock.running():
                count = {"op": "count", "next": self.code_cells_executed + 1}
                *answers, _ = self._agent().ask([*wishes, count])
            self._counted = self.code_cells_executed
            if not self.knows:
                self.unheard |= any(answer.get("printed") is True for answer in answers)
            return answers
        except NoAnswer as error:
            if error.reason == "time":
                name = next((wish["name"] for wish in wishes if "name" in wish), "A function of the notebook")
                told = f"{name} did not end in time: does a loop in it never end?"
                raise CheckFailed(told, kind="endless") from None
            early = self._end("timeout" if error.reason == "silent" else "student_crash", error.reason)
            raise CheckFailed(early.reason, kind="process") from None

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
