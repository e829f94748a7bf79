"""What a script in the sandbox answers: a plain Python program (`student.script`) that writes to a pipe."""

import os
import select
import time
from collections.abc import Callable

from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.grading.sandbox.zygote_client import Ended, ZygoteClient


def answer_of(
    zygote: ZygoteClient,
    files: dict[str, bytes],
    script: str,
    limits: SubmissionLimits,
    most_bytes: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[bytes, Ended]:
    """Return what `script`, one of `files`, wrote to the descriptor that its one argument names, and how it ended.

    It is ended after one byte too many, and once `cancelled`, asked ten times a second, says True. Believe nothing of
    what it wrote. Raises SandboxError.
    """
    reading, writing = os.pipe()
    try:
        try:
            zygote.start(files, limits, {"script": script}, [writing], program="script")
        finally:
            os.close(writing)
        answer = _read(reading, zygote, most_bytes, cancelled)
    finally:
        os.close(reading)
    return answer, zygote.status() or zygote.kill()


def _read(pipe: int, zygote: ZygoteClient, most_bytes: int, cancelled: Callable[[], bool]) -> bytes:
    """Return all that is written to `pipe`, until its end, the program's end, or one byte too many."""
    found = bytearray()
    while len(found) <= most_bytes and not cancelled():
        if select.select([pipe], [], [], 0.1)[0]:
            data = os.read(pipe, 1 << 16)
            if not data:
                time.sleep(0.05)  # it wrote its last, and is about to end by itself
                break
            found += data
        elif zygote.status() is not None:
            break
    return bytes(found)
