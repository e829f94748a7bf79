"""`python -m warplab board ASSIGNMENT`: a class's right kernels by estimated time, for the class to look at.

A kernel counts if its student has all points of the tests that launch it. Its PTX, which the grading kept, then takes
the place of the solution's kernel in the release's tests, which must pass again; the largest launch is estimated.
No code of a student runs.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbgrader.utils import is_grade, is_solution

from warpcourse.exercises import release
from warpcourse.exercises.score import cell_id
from warpcourse.grading.course.ledger import LedgerError
from warpcourse.grading.course.nbgrader_course import CONFIG, Course, CourseError
from warpcourse.grading.course.plain_text import on_terminal
from warpcourse.grading.course.similar_command import graded
from warpcourse.paths import COURSE
from warplab import simulator
from warplab.checks.kernel_run import KernelRun
from warplab.compile import ptx_assembler
from warplab.dropin import magic
from warplab.estimating.estimate import estimate
from warplab.launch import numba_arguments
from warplab.launch.kernel_source import BoundKernel, source_of
from warplab.simulator import LaunchProfile


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
    parser.add_argument("assignment", help="its name, such as 01_vector_multiply, or its folder")
    parser.add_argument("--course", type=Path, metavar="FOLDER", help=f"the folder of {CONFIG} (default: here)")
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
    folder = options.course or (Path.cwd() if (Path.cwd() / CONFIG).is_file() else COURSE)
    try:
        course = Course(folder)
        name = course.assignment(course.name_of(options.assignment)).name
        boards = board(course, name, options.card, options.blocks)
    except (CourseError, LedgerError) as error:
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
    """Return the places for each kernel of an assignment, the fastest first."""
    path = course.source(name) / f"{name}.ipynb"
    source, given = (nbformat.reads(text, 4) for text in (path.read_text("utf-8"), release.release_text(path)))
    tests = {str(cell_id(cell)): cell for cell in given.cells if is_grade(cell)}
    found: dict[str, list[Place]] = {}
    for student, (record, kernels) in graded(course, name).items():
        right = {test for test, (points, most) in (record["scores"] or {}).items() if points == most}
        for kernel, launches in _replay(source.cells, tests, right, kernels):
            largest = max(launches, key=lambda launch: launch.counts.thread_instructions)
            made = estimate(largest, card, blocks=blocks)
            found.setdefault(kernel, []).append(Place(made.time.seconds, made.time.limit, student))
    return {kernel: sorted(places) for kernel, places in found.items()}


def _replay(
    cells: list, tests: Mapping[str, Any], right: set[str], kernels: Mapping[str, str]
) -> Iterator[tuple[str, list]]:
    """Run the solution's cells and the release's tests with a student's PTX; yield each kernel's launches if all of
    its tests are in `right` and pass."""
    shell = InteractiveShell()
    magic.register(shell)
    launches: dict[str, list] = {}
    wrong: set[str] = set()
    names = {key.partition("(")[0] for key in kernels}
    for cell in cells:
        test = tests.get(str(cell_id(cell)))
        if cell.cell_type != "code":
            continue
        mine = {name for name in names if test is not None and re.search(rf"\b{re.escape(name)}\b", test.source)}
        if test is not None and not mine:
            continue
        if mine and cell_id(cell) not in right:
            wrong |= mine
            continue
        with capture_output(), _recorded() as made:
            done = shell.run_cell((test or cell).source)
        if mine and done.success:
            for launch in made:
                launches.setdefault(launch.kernel, []).append(launch)
        elif mine:
            wrong |= mine
        if is_solution(cell):
            for name in names & shell.user_ns.keys():
                _give(shell.user_ns[name], name, kernels)
    for name in sorted((names - wrong) & launches.keys()):
        yield name, launches[name]


@contextlib.contextmanager
def _recorded() -> Iterator[list[LaunchProfile]]:
    """Collect the launches that checks make, with their counters."""
    made: list[LaunchProfile] = []
    simulated = KernelRun.simulate

    def simulate(run: KernelRun, args: tuple, **options: Any) -> LaunchProfile:
        made.append(simulated(run, args, **{**options, "counters": True}))
        return made[-1]

    with mock.patch.object(KernelRun, "simulate", simulate):
        yield made


def _give(kernel: Any, name: str, kernels: Mapping[str, str]) -> None:
    """Let a kernel of the solution run a student's PTX."""
    source = source_of(kernel)
    if not isinstance(source, _Given):
        kernel._warplab_source = _Given(source, name, kernels)


class _Given:
    """A kernel of the solution by all that is said of it, whose code is a student's."""

    def __init__(self, source: Any, name: str, kernels: Mapping[str, str]) -> None:
        self._source, self._name, self._kernels = source, name, kernels

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._source, attribute)

    def bind(self, args: tuple, arrays: Any) -> BoundKernel:
        ptx, bound = self._ptx(args), self._source.bind(args, arrays)
        (entry,) = simulator.load(ptx).entries.values()
        return bound._replace(entry=entry, assemble=functools.partial(ptx_assembler.assemble, ptx, entry.name))

    def _ptx(self, args: tuple) -> str:
        key = self._name
        if self._source.language == "Numba":
            types = numba_arguments.signature_of(self._name, self._source.parameters, self._source.signatures, args)
            key = f"{self._name}({', '.join(map(numba_arguments.short_type, types))})"
        return self._kernels[key]
