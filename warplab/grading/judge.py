"""The judge: a trusted process that grades one submission after another.

    python -m warplab.grading.judge      reads jobs on its standard input, writes results to its standard output

It knows hidden tests and seeds, and has no gradebook. The student's cells run in a sandbox that it starts; whatever
comes from there is data. It ends when its standard input does, and with it everything it started.
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import signal
import sys
import threading
import time
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import determine_grade, is_grade

from ..checks.grade import cell_id
from . import submissions
from .jobs import Job, Result, pack, unpack
from .kernel_manager import SandboxedKernelManager, Zygotes
from .sandbox import find

MAX_REASON = 500  # characters of one failure in a result


class Judge:
    """Grades jobs; keeps a warm sandbox between them. Use as a context manager, on the main thread."""

    def __enter__(self) -> Judge:
        self._zygotes = Zygotes(find())
        self._zygotes.take()  # warm before the first job
        return self

    def __exit__(self, *_: object) -> None:
        self._zygotes.close()

    @property
    def protection(self) -> str:
        """Kind of the sandbox, as in `sandbox.Sandbox`."""
        return self._zygotes.sandbox.kind

    def grade(self, job: Job) -> Result:
        """The result of one submission; of a failure of the grader's own too."""
        started = time.monotonic()
        try:
            fields = self._grade(job)
        except submissions.Unusable as error:
            master = nbformat.reads(job.master, as_version=4)
            fields = outcome(error.status, str(error), submissions.refused(master, str(error)))
        except Exception as error:
            fields = {"status": "infra_error", "reason": f"{type(error).__name__}: {error}"[:MAX_REASON]}
        return Result(
            job.key,
            **fields,
            seconds=round(time.monotonic() - started, 3),
            sandbox=self.protection,
            memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )

    def _grade(self, job: Job) -> dict[str, Any]:
        if job.require_sandbox and self.protection != "bubblewrap":
            raise RuntimeError(f"a sandbox is required. {self._zygotes.sandbox.describe()}")
        master = nbformat.reads(job.master, as_version=4)
        assembled = submissions.assemble(job.key.assignment, master, job.files)
        status, reason, kernels = self._execute(assembled.notebook, job)
        return {**outcome(status, reason, assembled.notebook), "notes": assembled.notes, "kernels": kernels}

    def _execute(self, notebook: NotebookNode, job: Job) -> tuple[str, str, dict[str, str]]:
        """Run all cells, outputs into `notebook`. Returns status, reason, and PTX by kernel."""
        from nbclient.exceptions import DeadKernelError
        from nbgrader.preprocessors import Execute
        from traitlets.config import Config

        config = Config()
        config.Execute.timeout, config.Execute.kernel_name = 30, "python3"
        with SandboxedKernelManager(self._zygotes, {**job.files, **job.given}, job.limits) as manager:
            try:
                Execute(config=config).preprocess(notebook, {"metadata": {"path": "."}}, km=manager)
            except DeadKernelError:
                for cell in notebook.cells:
                    if is_grade(cell) and cell.execution_count is None:
                        reason = "The Python process of the notebook ended before this cell ran."
                        cell.outputs = [
                            nbformat.v4.new_output("error", ename="NotGraded", evalue=reason, traceback=[reason])
                        ]
                return "student_crash", "The Python process of the notebook ended before its last cell.", {}
        return "graded", "", {}


def outcome(status: str, reason: str, notebook: NotebookNode) -> dict[str, Any]:
    """Fields of a `Result` that follow from an executed notebook."""
    scores, failures = {}, {}
    for cell in notebook.cells:
        if is_grade(cell):
            points, possible = determine_grade(cell)
            if points is not None:  # None waits for a person
                scores[cell_id(cell)] = (float(points), possible)
                if points < possible:
                    failures[cell_id(cell)] = _failure(cell)
    return {
        "status": status,
        "reason": reason,
        "scores": scores,
        "failures": failures,
        "notebook": nbformat.writes(notebook),
    }


def _failure(cell: NotebookNode) -> str:
    """First line of what a test cell says went wrong."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            text = output.evalue if output.ename in ("CheckFailed", "NotGraded") else f"{output.ename}: {output.evalue}"
            return (text.strip() or output.ename).splitlines()[0][:MAX_REASON]
        if output.output_type == "stream" and output.name == "stderr":
            return f"stderr: {output.text.strip()}".splitlines()[0][:MAX_REASON]
    return "partial credit"


def main() -> None:
    # Prints of test cells, or of libraries, must not come between the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's to handle
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    with Judge() as judge:
        threading.Thread(target=_read, args=(jobs, waiting), daemon=True).start()
        _write(answers, {"ready": True, "sandbox": judge.protection})
        while True:
            _write(answers, judge.grade(Job.from_message(waiting.get())).as_message())


def _read(jobs: Any, waiting: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Runs beside the grading, so that the end of the coordinator is seen at any moment."""
    with contextlib.suppress(ValueError, OSError):
        while (message := unpack(jobs)) is not None:
            waiting.put(message)
    os._exit(0)  # sandboxes die with their parent


def _write(answers: Any, message: dict[str, Any]) -> None:
    answers.write(pack(message))
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
