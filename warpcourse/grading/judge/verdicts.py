"""Verdicts: what a student is told about a test cell.

A visible test shows its whole message. A hidden test shows one of a fixed set of sentences, with the line of the
student's own kernel or the counter that is over its limit: no input, size, expected value or text of the cell.
"""

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpcourse.grading.exchange.artefacts import clean_text
from warpcourse.grading.judge.cells import Outcome, OutOfTime
from warpcourse.grading.judge.outputs import WITHHELD
from warplab.checks.errors import CheckFailed, kind_of, line_of
from warplab.simulator import InstructionLimit, SimulatorError, SimulatorFailure

MAX_MESSAGE = 4000  # characters
_MAX_FIRST_LINE = 300
SENTENCES = {
    "wrong result": "the result is wrong",
    "wrong type": "the result has the wrong type, shape or dtype",
    "not finite": "a result is not a finite number",
    "not written": "a result, or a part of it, is missing",
    "input modified": "an input was modified",
    "exception": "an error was raised",
    "compile": "it does not compile",
    "no function": "a function is expected",
    "no kernel": "a kernel is expected",
    "wrong language": "the kernel is in the wrong language",
    "arguments": "the kernel cannot be launched with the arguments of the test",
    "outside": "an access outside an array",
    "misaligned": "a misaligned access",
    "uninitialized": "a read of memory, or of a fragment, that nothing wrote",
    "race": "a data race",
    "barrier": "threads wait at a barrier that others never reach",
    "assertion": "an assertion does not hold",
    "endless": "it does not end",
    "unknown instruction": "an instruction that the simulator does not know or refuses",
    "stopped": "the kernel is stopped by the simulator",
    "limit": "a counter is over its limit",
    "memory": "it needs too much memory",
    "name": "a name that the tests use is missing",
}


_REFUSED = (
    "Your kernel holds an instruction that the simulator refuses. If you wrote no PTX yourself, in an asm statement, "
    "tell your instructor, who knows where the simulator failed."
)


@dataclass(frozen=True)
class Verdict:
    """The verdict on one test cell.

    `kind`: a key of SENTENCES or "process"; "" for a test that passed. `message`: for the student. `detail`: the whole
    message, for instructors only. `hidden`: it failed in hidden tests. `trace`: where the
    simulator itself failed.
    """

    kind: str = ""
    message: str = ""
    detail: str = ""
    hidden: bool = False
    ename: str = ""
    traceback: tuple[str, ...] = ()
    trace: str = ""


@dataclass(frozen=True)
class BrokenCell:
    """A cell of the notebook that ended with an error. `number` and error are as the student's page shows them."""

    number: int
    source: str
    ename: str
    evalue: str

    @property
    def compiles(self) -> bool:
        return self.ename not in ("CompileError", "SyntaxError", "IndentationError", "TabError")

    def should_define(self, name: str) -> bool:
        """Return whether `name` may be missing because of this error: not if the cell itself misses the name."""
        named = re.search(rf"\b{re.escape(name)}\b", self.source)
        return named is not None and f"name {name!r} is not defined" not in self.evalue

    def told(self) -> str:
        """Return what happened to the cell, with the first line of the error."""
        if self.ename in ("CellTimeoutError", "KeyboardInterrupt"):  # a cell is interrupted when its time is up
            return f"its cell [{self.number}] did not end in time"
        what = "ended with an error" if self.compiles else "did not compile"
        # IPython's message names a file that stands for the cell.
        first = re.sub(r" \([^()]*, (line \d+)\)$", r" (\1)", (self.evalue.strip().splitlines() or [""])[0])
        if self.ename == "CompileError":
            first = first.removeprefix(f"cell [{self.number}], ")
        else:
            first = f"{self.ename}: {first}"
        return f"its cell [{self.number}] {what}: {first[:_MAX_FIRST_LINE]}"


def verdict(outcome: Outcome, visible: str, knows: bool = False, broken: Sequence[BrokenCell] = ()) -> Verdict:
    """Return the verdict on a test cell that ran: a simulator that fails on a student's kernel refuses it.

    `visible`: the text of the cell without its hidden tests. `knows`: the student's process knows inputs of hidden
    tests, so nothing that it may have chosen is shown. `broken`: cells that failed before.
    """
    error = outcome.error
    if error is None:
        return Verdict()
    if isinstance(error, SimulatorFailure):
        trace = "".join(traceback.format_exception(error.__cause__ or error))[-MAX_MESSAGE:]
        refused = verdict(replace(outcome, error=CheckFailed(_REFUSED, kind="unknown instruction")), visible, knows)
        return replace(refused, detail=_short(_text(error)), trace=clean_text(trace))
    kind, line, missed = _facts(error)
    ename = "CheckFailed" if isinstance(error, CheckFailed) else type(error).__name__
    text = _text(error)
    detail = _short(f"{ename}: {text}")
    if kind == "process":
        return Verdict(kind, text, detail, outcome.hidden, "CheckFailed", (f"CheckFailed: {text}",))
    missing = getattr(error, "name", None) if kind == "name" else None
    named = missing is not None and re.search(rf"\b{re.escape(missing)}\b", visible) is not None
    if missing and (named or not outcome.hidden):
        cell = next((cell for cell in reversed(broken) if cell.should_define(missing)), None)
        if cell is not None:
            return _undefined(outcome, missing, cell)
    if not outcome.hidden and knows:
        return _in_our_own_words(outcome, kind, detail)
    if not outcome.hidden:
        if isinstance(error, OutOfTime):
            ename, text = "CheckFailed", f"The test did not end in time ({text})."
        lines = () if isinstance(error, CheckFailed) else tuple(_short(place) for place in outcome.place)
        return Verdict(
            kind, _short(text), detail, False, ename, (*lines, _short(f"{ename}: {text}" if text else ename))
        )
    message = f"A hidden test fails: there is no {missing}." if named else f"A hidden test fails: {SENTENCES[kind]}."
    if missed:
        message = f"A hidden test fails: {missed}."
    if line and not knows:
        message += f"\n  at {line}"
    return Verdict(kind, _short(message), detail, True, "CheckFailed", (_short(f"CheckFailed: {message}"),))


def _undefined(outcome: Outcome, name: str, cell: BrokenCell) -> Verdict:
    """Return the verdict on a test that misses a name because a cell failed. The cell's error says more."""
    message = f"There is no {name}: {cell.told()}"
    detail = f"CheckFailed: {message}"
    if outcome.hidden:
        message = f"A hidden test fails. {message}"
    kind = "name" if cell.compiles else "compile"
    return Verdict(kind, message, detail, outcome.hidden, "CheckFailed", (f"CheckFailed: {message}",))


def _in_our_own_words(outcome: Outcome, kind: str, detail: str) -> Verdict:
    """Return the verdict on a failed visible test, with nothing of what the notebook answered."""
    lines = [f"A test fails: {SENTENCES[kind]}.", *outcome.place]
    if isinstance(outcome.error, CheckFailed) and outcome.error.where:
        lines.append(f"input {outcome.error.where}")
    lines.append(f"What your code gave is left out. {WITHHELD} Run this test in your notebook to see it.")
    message = _short("\n  ".join(lines))
    return Verdict(kind, message, detail, False, "CheckFailed", (f"CheckFailed: {message}",))


def gone(reason: str) -> Verdict:
    """Return the verdict on a test cell after the notebook's process has ended."""
    return Verdict("process", reason, f"CheckFailed: {reason}", False, "CheckFailed", (f"CheckFailed: {reason}",))


def _facts(error: BaseException) -> tuple[str, str, str]:
    """Return the kind of failure, the line of the student's kernel, and what a counter missed."""
    if isinstance(error, CheckFailed):
        return error.kind, error.line, error.missed
    if isinstance(error, SimulatorError):
        return kind_of(error), line_of(error), ""
    if isinstance(error, OutOfTime):
        return "endless", "", ""
    if isinstance(error, MemoryError | RecursionError):
        return "memory", "", ""
    if isinstance(error, AssertionError):
        return "wrong result", "", ""
    if type(error) is NameError:
        return "name", "", ""
    return "exception", "", ""


def _text(error: BaseException) -> str:
    try:
        return clean_text(
            (error.without_advice() if isinstance(error, InstructionLimit) else str(error))[: MAX_MESSAGE + 1]
        )
    except Exception:
        return ""


def _short(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} …"
