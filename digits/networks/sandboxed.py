"""A Python program in the grader's sandbox: no network, no files but its own, limits on time, memory and processes."""

import signal
from collections.abc import Callable

from digits.files import DigitsError
from warpcourse.grading.sandbox.isolation import Bubblewrap, find
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.grading.sandbox.scripts import answer_of
from warpcourse.grading.sandbox.zygote_client import Ended, SandboxError, ZygoteClient

_MEBIBYTE = 1 << 20
# Importing TensorFlow took 4 s and 25 threads on two cores of an x86-64 machine, 2026-11-23. Each process can map
# `memory_bytes`, and all of them together hold so much at most.
LIMITS = SubmissionLimits(
    wall_seconds=120,
    cpu_seconds=40,
    memory_bytes=3072 * _MEBIBYTE,
    processes=96,
    processors=2,
    file_bytes=4 * _MEBIBYTE,
    disk_bytes=32 * _MEBIBYTE,
)
MOST_BYTES = 2 * _MEBIBYTE  # of an answer
ADVICE = (
    "Install bubblewrap (Debian, Ubuntu: sudo apt install bubblewrap; Fedora: sudo dnf install bubblewrap), or choose "
    "one of the other networks."
)
_REASONS = {
    "wall": "It took longer than {wall_seconds:g} seconds.",
    "cpu": "It used more than {cpu_seconds:g} seconds of processor time. Is there an endless loop?",
    "memory": "It used more than {memory} MiB of memory.",
}


class ProgramEnded(DigitsError):
    """A program in the sandbox was ended, or answered too much: the message says why."""


def unavailable() -> str:
    """Return why no code of other people can be run here, and what to do; "" if it can."""
    sandbox = find()
    return "" if isinstance(sandbox, Bubblewrap) else f"Your code runs in a sandbox only, and {sandbox.why}. {ADVICE}"


def run(
    files: dict[str, bytes],
    script: str,
    limits: SubmissionLimits = LIMITS,
    cancelled: Callable[[], bool] = lambda: False,
) -> bytes:
    """Return what the program `script`, one of `files`, wrote to the file descriptor that its one argument names.

    `cancelled` is asked ten times a second; the program is ended once it says True. Believe nothing of what it wrote.
    Raises ProgramEnded for a program that goes beyond `limits` or answers more than MOST_BYTES, DigitsError where there
    is no sandbox.
    """
    if why := unavailable():
        raise DigitsError(why)
    try:
        with ZygoteClient(find(), "nothing", disk_bytes=limits.disk_bytes) as zygote:
            answer, ended = answer_of(zygote, files, script, limits, MOST_BYTES, cancelled)
    except SandboxError as error:
        raise DigitsError(f"The sandbox failed: {error}. {ADVICE}") from error
    if ended.reason == "killed" and cancelled():
        raise ProgramEnded("Your code was ended, as you asked.")
    _judge(ended, limits, answer)
    return answer


def _judge(ended: Ended, limits: SubmissionLimits, answer: bytes) -> None:
    # Linux' own limit may come before the count that the zygote goes by.
    reason = "cpu" if ended.code == -signal.SIGXCPU else ended.reason
    if reason in _REASONS:
        told = _REASONS[reason].format(**limits.as_dict(), memory=limits.memory_bytes >> 20)
        raise ProgramEnded(f"Your code was ended. {told}")
    if len(answer) > MOST_BYTES:
        raise ProgramEnded(f"Your code answered more than {MOST_BYTES >> 20} MiB, and was ended.")
    if not answer:
        raise ProgramEnded(f"Your code ended without an answer: {ended.text}.")
