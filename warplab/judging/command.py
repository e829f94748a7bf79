"""`python -m warplab judge task.py answer`: the judge in a process of its own, under one limit of time.

So an answer that has the judge read without an end, use up its memory or crash still ends in a verdict, or at least
in a sentence and an exit code; and nothing that it started goes on. This process loads nothing large. Exit code: 0
right, 1 not right, 2 bad input.
"""

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from types import FrameType
from typing import Any, NoReturn

from warplab.judging import descendants
from warplab.running.run_command import BadInput, Parser, address_space

SECONDS = 600.0
_MOST_SECONDS = 1e9  # that select takes
_NOTHING: dict[str, Any] = {"seed": None, "cases": [], "limits": [], "estimates": [], "defects": [], "kernels": []}
_WITHOUT = "the judge's process has ended without a verdict: is there too little memory?"


def parser() -> Parser:
    found = Parser(prog="python -m warplab judge", description="Is a kernel right, and how fast would it be?")
    found.add_argument("task", help="a Python file that defines task = Task(...); it is executed")
    found.add_argument("answer", help="a .cu or .py file with the task's kernels")
    found.add_argument("--card", action="append", metavar="CARD", help="estimate times for this card (H100)")
    found.add_argument("--seed", type=int, help="repeat the inputs of another verdict")
    found.add_argument("--json", metavar="FILE", help="write the verdict here instead of to standard output")
    limit = f"of the clock, for the whole ({SECONDS:g}); inf: no limit"
    found.add_argument("--max-seconds", type=float, default=SECONDS, metavar="S", help=limit)
    return found


def tell(chosen: Namespace, verdict: dict[str, Any]) -> int:
    """Write the verdict where the command line says; return the exit code."""
    from warplab.running.report_files import write

    text = json.dumps({"task": chosen.task, "answer": chosen.answer, **verdict}, indent=1) + "\n"
    wrong = chosen.json and write(chosen.json, text)
    if wrong or not chosen.json:
        print(text, end="")
    if wrong:
        print(f"error: the verdict {wrong}", file=sys.stderr)
        return 2
    said = "right" if verdict["right"] else f"not right: {_plain(verdict['reason'])}"
    print(f"{chosen.answer}: {said}", file=sys.stderr)
    return 0 if verdict["right"] else 1


def _plain(reason: str) -> str:
    """Return text of an answer so that no part of it looks like a line of the judge, or moves a terminal's cursor."""
    lines = reason.split("\n")
    return "\n  ".join("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines)


def main(arguments: list[str]) -> int:
    try:
        chosen = parser().parse_args(arguments)
        if not chosen.max_seconds > 0:
            raise BadInput(f"--max-seconds={chosen.max_seconds:g}: give more than 0, or inf for no limit")
        address_space()
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    descendants.adopt()
    signal.signal(signal.SIGTERM, _terminated)
    tempfile.tempdir = tempfile.mkdtemp(prefix="warplab-judge-")  # the judge may be killed, and leave its files
    ours, theirs = os.pipe()
    parent, judge = os.getpid(), os.fork()
    if not judge:
        _judge(arguments, parent, theirs)
    os.close(theirs)
    code = b""
    try:
        with descendants.hidden():
            limit = chosen.max_seconds if chosen.max_seconds < _MOST_SECONDS else None
            ended, _, _ = select.select([ours], [], [], limit)
            code = os.read(ours, 1) if ended else b""
            if code:
                os.waitpid(judge, 0)
    except KeyboardInterrupt:
        return 130
    finally:
        descendants.end_children()
        subprocess.run(["rm", "-rf", "--", tempfile.tempdir], stderr=subprocess.DEVNULL, check=False)
    if code:
        return code[0]
    if ended:
        print(f"error: {_WITHOUT}", file=sys.stderr)
        return 2
    reason = f"not judged within {chosen.max_seconds:g} s; --max-seconds gives more, inf has no limit"
    return tell(chosen, {"right": False, "reason": reason, **_NOTHING})


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _judge(arguments: list[str], parent: int, told: int) -> NoReturn:
    """Judge in this process, and tell the exit code as the one byte that is written to `told`."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        descendants.end_with(parent)
        from warplab.judging.judge_command import main as judge

        try:
            code = judge(arguments)
        except (MemoryError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.ENOMEM:
                raise
            print(f"error: {_WITHOUT}", file=sys.stderr)
            code = 2
        with contextlib.suppress(OSError):  # nobody reads it
            sys.stdout.flush()
        os.write(told, bytes([code]))
    except KeyboardInterrupt:
        pass
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)
