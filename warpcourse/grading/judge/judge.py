"""The judge: a trusted process that grades one submission after another.

    python -m warpcourse.grading.judge.judge      reads jobs on standard input, writes results to standard output

It knows hidden tests and seeds, but no gradebook. The student's cells run in a sandbox that it starts, and whatever
comes from there is data. It ends with its standard input, together with everything it started.
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution
from traitlets.config import Config

from warpcourse.exercises.score import cell_id
from warpcourse.grading.judge import assembly
from warpcourse.grading.judge.execute import TrustedExecute
from warpcourse.grading.judge.framework_cells import framework_of
from warpcourse.grading.judge.jobs import MAX_TEXT, Job, Result, outcome
from warpcourse.grading.judge.untrusted import Reading, Unusable
from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import SandboxedKernelManager, Zygotes
from warpcourse.grading.sandbox.preflight import preflight
from warpcourse.processes.messages import read, reply, take_over


class Judge:
    """Grades jobs, with a sandbox that stays warm between them. Use as a context manager, on the main thread."""

    def __init__(self, zygotes: Zygotes | None = None) -> None:
        """Make a judge. `zygotes`: to use instead of its own, and not to close."""
        self._sandbox = find() if zygotes is None else zygotes.sandbox
        self._zygotes, self._lent = zygotes, zygotes is not None
        self._found: dict[str, Any] | None = None  # of `look`

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        if self._zygotes is not None and not self._lent:
            self._zygotes.close()

    @property
    def protection(self) -> str:
        """Return the kind of the sandbox, as in `isolation.Sandbox`."""
        return self._sandbox.kind

    def look(self) -> dict[str, Any]:
        """Try the sandbox out, once. Return whether bubblewrap `holds`, a `refusal`, what the instructor is `told`."""
        if self._found is None:
            boxed = self.protection == "bubblewrap"
            leaks = [str(finding) for finding in preflight(self._sandbox) if not finding.holds] if boxed else []
            told = "\n".join([self._sandbox.describe(), *leaks])
            self._found = {"holds": boxed and not leaks, "refusal": self._sandbox.refusal(), "told": told}
        return self._found

    def grade(self, job: Job) -> Result:
        """Return the result of one submission, also if the grader itself fails."""
        started = time.monotonic()
        try:
            fields = self._grade(job)
        except Unusable as error:
            master = nbformat.reads(job.master, as_version=4)
            fields = outcome(error.status, str(error), assembly.refused(master, str(error)))
        except Exception as error:
            fields = {"status": "infra_error", "reason": f"{type(error).__name__}: {error}"[:MAX_TEXT]}
        return Result(
            job.key,
            **fields,
            seconds=round(time.monotonic() - started, 3),
            sandbox=self.protection,
            memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )

    def _grade(self, job: Job) -> dict[str, Any]:
        if job.require_sandbox and not self.look()["holds"]:
            raise RuntimeError(f"a sandbox is required. {self.look()['told']}")
        if self._zygotes is None:
            # Importing Numba and compiling kernels takes seconds, which an assignment without kernels does not need.
            self._zygotes = Zygotes(self._sandbox, warmth="course" if "warplab" in job.master else "kernel")
        master = nbformat.reads(job.master, as_version=4)
        reading = Reading()
        assembled = assembly.assemble(job.key.assignment, master, job.files, reading)
        notebook = assembled.notebook
        tests, setup = trusted_cells(master)
        answers = {str(cell_id(cell)): cell.source for cell in master.cells if is_solution(cell)}
        framework = framework_of(setup, answers)
        limits = job.limits.for_framework(framework) if framework else job.limits
        warmth = framework.warmth if framework else ""
        with (
            tempfile.TemporaryDirectory(prefix="warplab-judge-") as folder,
            SandboxedKernelManager(self._zygotes, {**job.files, **job.given}, limits, warmth) as manager,
        ):
            _write_files(Path(folder), job.given)
            execute = TrustedExecute(
                config=Config({"Execute": {"timeout": job.cell_seconds, "kernel_name": "python3"}}),
                tests=tests,
                setup=setup,
                answers=answers,
                seed=job.seed.encode(),
                assignment=job.key.assignment,
                submission=job.key.submission,
                limits=limits,
                folder=folder,
                reading=reading,
            )
            execute.preprocess(notebook, {"metadata": {"path": "."}}, km=manager)
        status, reason = _ending(execute, job)
        failed = {name: verdict for name, verdict in execute.verdicts.items() if verdict.kind}
        details = {name: verdict.detail for name, verdict in failed.items()}
        kinds = {name: verdict.kind for name, verdict in failed.items()}
        fields = outcome(status, reason, notebook, details, kinds)
        traces = {name: verdict.trace for name, verdict in failed.items() if verdict.trace}
        notes = [*assembled.notes, *execute.notes]
        return {**fields, "notes": notes, "kernels": execute.kernels, "traces": traces}


def trusted_cells(master: NotebookNode) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text of the code cells that the judge runs, by id: tests, and locked cells without points."""
    tests: dict[str, str] = {}
    setup: dict[str, str] = {}
    for cell in master.cells:
        if cell.cell_type == "code" and is_locked(cell):
            (tests if is_grade(cell) else setup)[str(cell_id(cell))] = cell.source
    return tests, setup


def _write_files(folder: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def _ending(execute: TrustedExecute, job: Job) -> tuple[str, str]:
    """Return status and reason of a notebook that was executed."""
    if execute.ended is not None:
        return execute.ended.status, execute.ended.reason
    if execute.exhausted:
        return "timeout", execute.exhausted
    if execute.cell_timed_out:
        return "timeout", f"A cell did not end within {job.cell_seconds} s: an endless loop?"
    return "graded", ""


def main() -> NoReturn:
    """Grade what comes in, until standard input ends."""
    jobs, answers = take_over()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's to handle
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    with Judge() as judge:
        threading.Thread(target=_read, args=(jobs, waiting), daemon=True).start()
        reply(answers, {"ready": True, "sandbox": judge.protection})
        while True:
            message = waiting.get()
            reply(answers, judge.look() if "look" in message else judge.grade(Job.from_message(message)).as_message())


def _read(jobs: Any, waiting: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Read jobs in a thread of its own, which notices the end of the coordinator at any moment."""
    with contextlib.suppress(ValueError, OSError):
        while (message := read(jobs)) is not None:
            waiting.put(message[0])
    os._exit(0)  # a sandbox ends with its judge


if __name__ == "__main__":
    main()
