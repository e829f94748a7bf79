"""`python -m warplab board ASSIGNMENT`: a class's right kernels by estimated time, for the class to look at.

A kernel counts if its student has all points of the tests that launch it. Its PTX, which the grading kept, then takes
the place of the solution's kernel in the release's tests, which must pass again; the largest launch is estimated.
That runs in the sandbox of the grading, each student's apart; no other code of a student runs.
"""

import argparse
import json
import math
import sys
from typing import NamedTuple

from warpcourse.exercises import release
from warpcourse.grading.course.ledger import LedgerError
from warpcourse.grading.course.nbgrader_course import Course, CourseError, add_assignment
from warpcourse.grading.course.plain_text import on_terminal
from warpcourse.grading.course.similar_command import graded
from warpcourse.grading.sandbox.kernel_manager import Zygotes
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.grading.sandbox.scripts import answer_of
from warpcourse.grading.sandbox.zygote_client import SandboxError
from warplab.hardware import cards

LIMITS, MOST_BYTES = SubmissionLimits(), 1 << 20  # of a student's replay, and of its answer
JOB, SCRIPT = "board.json", "board.py"


class Place(NamedTuple):
    """A student's time for a kernel: estimated seconds of its largest launch, and what limits it."""

    seconds: float
    limit: str
    student: str


def main(argv: list[str] | None = None) -> int:
    """Print the board. Return 0, or 2 for wrong use."""
    parser = argparse.ArgumentParser(
        prog="python -m warplab board",
        description="List the right kernels of a class by the time that each is estimated to take. An estimate is "
        "arithmetic, not a measurement (docs/trust.md): places that differ by less than its error mean nothing.",
    )
    add_assignment(parser)
    parser.add_argument("--card", default="H100", help="the card whose time is estimated (default: H100)")
    parser.add_argument(
        "--blocks",
        type=float,
        default=4096,
        metavar="N",
        help="as if the launch, which is small, had N times the blocks (default: 4096)",
    )
    parser.add_argument("--top", type=int, default=10, metavar="N", help="places per kernel (default: 10)")
    parser.add_argument("--names", action="store_true", help="show students' ids, which a class should agree to")
    options = parser.parse_args(argv)
    try:
        course = Course(options.course)
        name = course.assignment(course.name_of(options.assignment)).name
        cards.card(options.card)
        boards = board(course, name, options.card, options.blocks)
    except (CourseError, LedgerError, SandboxError, ValueError) as error:
        print(on_terminal(f"error: {error}"), file=sys.stderr)
        return 2
    print(f"{name}: estimated times on {options.card}, of launches with {options.blocks:g} times a test's blocks.")
    print("What differs by less than the error of estimates (docs/trust.md) is equally fast.")
    for kernel, places in boards.items():
        print(f"\n{kernel}")
        for one in places[: options.top]:
            above = sum(f"{other.seconds:.3g}" != f"{one.seconds:.3g}" for other in places[: places.index(one)])
            who = one.student if options.names else ""
            print(on_terminal(f"{above + 1:4}  {1e6 * one.seconds:9.3g} µs  {one.limit:16} {who}".rstrip()))
    return 0


def board(course: Course, name: str, card: str, blocks: float) -> dict[str, list[Place]]:
    """Return the places for each kernel of an assignment, the fastest first. Raises `CourseError`, `SandboxError`."""
    path = course.source(name) / f"{name}.ipynb"
    job = {"source": path.read_text("utf-8"), "release": release.release_text(path), "card": card, "blocks": blocks}
    files, of_class, found = course.assignment(name).files, graded(course, name), dict[str, list[Place]]()
    with Zygotes() as zygotes:
        if zygotes.sandbox.kind != "bubblewrap":
            print(f"*** WARNING *** {zygotes.sandbox.describe()}", file=sys.stderr)
        for student, (record, kernels) in of_class.items():
            right = [test for test, (points, most) in (record["scores"] or {}).items() if points == most]
            own = json.dumps({**job, "right": right, "kernels": kernels}).encode()
            given = {
                **files,
                JOB: own,
                SCRIPT: f"from warpcourse.grading.student.replay import main\nmain({JOB!r})".encode(),
            }
            answer, ended = answer_of(zygotes.take(LIMITS), given, SCRIPT, LIMITS, MOST_BYTES)
            try:
                places = _places(answer, student, {key.partition("(")[0] for key in kernels})
            except (ValueError, TypeError, AttributeError, RecursionError):
                print(on_terminal(f"{student} is left out: {ended.text}."), file=sys.stderr)
                continue
            for kernel, place in places.items():
                found.setdefault(kernel, []).append(place)
    return {kernel: sorted(places) for kernel, places in found.items()}


def _places(answer: bytes, student: str, own: set[str]) -> dict[str, Place]:
    """Return a student's places by kernel, from what the sandbox answered.

    Raises ValueError, TypeError, AttributeError or RecursionError for any other answer.
    """
    found = {}
    for kernel, (seconds, limit) in json.loads(answer).items():
        if kernel not in own or not (type(seconds) is float and 0 < seconds < math.inf and type(limit) is str):
            raise ValueError(f"no time of a kernel: {kernel}")
        found[kernel] = Place(seconds, limit, student)
    return found
