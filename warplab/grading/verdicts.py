"""What a student is told of a test cell.

Of a visible test the whole message. Of a hidden one a sentence of a fixed set, with the line of the student's own
kernel or the counter that is over its limit: no input, no size, no expected value, nothing of the cell's text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from warplab.checks.errors import CheckFailed, kind_of, line_of
from warplab.grading.artefacts import clean_text
from warplab.grading.cells import Outcome, OutOfTime
from warplab.grading.outputs import WITHHELD
from warplab.simulator import SimulatorError
from warplab.simulator.counters import COUNTERS

MAX_MESSAGE = 4000  # characters
_COUNTERS = {counter.name: counter.description for counter in COUNTERS}
SENTENCES = {
    "wrong result": "the result is wrong",
    "wrong type": "the result has the wrong type, shape or dtype",
    "not finite": "a result is not a finite number",
    "not written": "a result, or a part of it, is missing",
    "input modified": "an input was modified",
    "exception": "an error was raised",
    "no function": "a function is expected",
    "no kernel": "a kernel is expected",
    "wrong language": "the kernel is in the wrong language",
    "arguments": "the kernel cannot be launched with the arguments of the test",
    "outside": "an access outside an array",
    "misaligned": "a misaligned access",
    "uninitialized": "a read of memory that nothing wrote",
    "race": "a data race",
    "barrier": "threads wait for others that never come",
    "assertion": "an assertion does not hold",
    "endless": "it does not come to an end",
    "unknown instruction": "an instruction that the simulator does not know",
    "stopped": "the kernel is stopped by the simulator",
    "limit": "a counter is over its limit",
    "memory": "it takes more memory than there is",
    "name": "a name is missing that the tests use",
}


@dataclass(frozen=True)
class Verdict:
    """`kind`: a key of SENTENCES or "process"; "" for a test that passed. `message`: for the student.

    `hidden`: it failed in hidden tests. `detail`: the whole message, for instructors only.
    """

    kind: str = ""
    message: str = ""
    detail: str = ""
    hidden: bool = False
    ename: str = ""
    traceback: tuple[str, ...] = ()


def verdict(outcome: Outcome, visible: str, knows: bool = False) -> Verdict:
    """The verdict on a test cell that ran. `visible`: the text of the cell without its hidden tests.

    `knows`: the student's process knows inputs of hidden tests. Then nothing that it may have chosen is shown.
    """
    error = outcome.error
    if error is None:
        return Verdict()
    kind, line, counter = _facts(error)
    ename = "CheckFailed" if isinstance(error, CheckFailed) else type(error).__name__
    text = _text(error)
    detail = _short(f"{ename}: {text}")
    if kind == "process":
        return Verdict(kind, text, detail, outcome.hidden, "CheckFailed", (f"CheckFailed: {text}",))
    if not outcome.hidden and knows:
        return _in_our_own_words(outcome, kind, detail)
    if not outcome.hidden:
        if isinstance(error, OutOfTime):
            ename, text = "CheckFailed", f"The test did not come to an end in time ({text})."
        lines = () if isinstance(error, CheckFailed) else tuple(_short(place) for place in outcome.place)
        return Verdict(
            kind, _short(text), detail, False, ename, (*lines, _short(f"{ename}: {text}" if text else ename))
        )
    message = f"A hidden test fails: {SENTENCES[kind]}."
    if (
        kind == "name"
        and (missing := getattr(error, "name", None))
        and re.search(rf"\b{re.escape(missing)}\b", visible)
    ):
        message = f"A hidden test fails: there is no {missing}."
    if counter:
        message = f"A hidden test fails: too many {counter.replace('_', ' ')}"
        message += f" ({_COUNTERS[counter]})." if counter in _COUNTERS else "."
    if line and not knows:
        message += f"\n  at {line}"
    return Verdict(kind, _short(message), detail, True, "CheckFailed", (_short(f"CheckFailed: {message}"),))


def _in_our_own_words(outcome: Outcome, kind: str, detail: str) -> Verdict:
    """Of a visible test that fails: what the test says, and nothing of what the notebook answered."""
    lines = [f"A test fails: {SENTENCES[kind]}.", *outcome.place]
    if isinstance(outcome.error, CheckFailed) and outcome.error.where:
        lines.append(f"input {outcome.error.where}")
    lines.append(f"What your code gave is left out. {WITHHELD} Run this test in your notebook to see it.")
    message = _short("\n  ".join(lines))
    return Verdict(kind, message, detail, False, "CheckFailed", (f"CheckFailed: {message}",))


def gone(reason: str) -> Verdict:
    """The verdict on a test cell whose notebook has no process any more."""
    return Verdict("process", reason, f"CheckFailed: {reason}", False, "CheckFailed", (f"CheckFailed: {reason}",))


def _facts(error: BaseException) -> tuple[str, str, str]:
    """Kind, line of the student's kernel, counter."""
    if isinstance(error, CheckFailed):
        return error.kind, error.line, error.counter
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
        return clean_text(str(error))
    except Exception:
        return ""


def _short(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} …"
