"""A student's kernels in the place of the solution's, in the release's tests: what the class's board estimates.

Runs inside the sandbox, as a script (`script.run`), and answers with the time of each right kernel.
"""

import contextlib
import functools
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbgrader.utils import is_grade, is_solution

from warpcourse.exercises.score import cell_id
from warplab import simulator
from warplab.checks.kernel_run import KernelRun
from warplab.compile import ptx_assembler
from warplab.dropin import magic
from warplab.estimating.estimate import estimate
from warplab.launch import numba_arguments
from warplab.launch.kernel_source import BoundKernel, source_of
from warplab.simulator import LaunchProfile


def main(job_file: str) -> None:
    """Answer with the estimated seconds of each right kernel's largest launch, and with what limits it."""
    job = json.loads(Path(job_file).read_text("utf-8"))
    source, given = (nbformat.reads(job[name], 4) for name in ("source", "release"))
    tests = {str(cell_id(cell)): cell for cell in given.cells if is_grade(cell)}
    found = {}
    for kernel, launches in _replay(source.cells, tests, {*job["right"]}, job["kernels"]):
        # By what tests choose: a student's kernel could do needless work where there is little to do.
        *_, largest = max(launches, key=lambda launch: launch[:2])
        made = estimate(largest, job["card"], blocks=job["blocks"])
        found[kernel] = [made.time.seconds, made.time.limit]
    with os.fdopen(int(sys.argv[1]), "w") as answer:
        json.dump(found, answer)


def _replay(
    cells: list, tests: Mapping[str, Any], right: set[str], kernels: Mapping[str, str]
) -> Iterator[tuple[str, list]]:
    """Run the solution's cells and the release's tests with a student's PTX; yield each kernel's launches, as in
    `_recorded`, if all of its tests are in `right` and pass."""
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
                launches.setdefault(launch[-1].kernel, []).append(launch)
        elif mine:
            wrong |= mine
        if is_solution(cell):
            for name in names & shell.user_ns.keys():
                _give(shell.user_ns[name], name, kernels)
    for name in sorted((names - wrong) & launches.keys()):
        yield name, launches[name]


@contextlib.contextmanager
def _recorded() -> Iterator[list[tuple[int, int, LaunchProfile]]]:
    """Collect the launches that checks make, with their counters: elements of all arguments, threads, launch."""
    made: list[tuple[int, int, LaunchProfile]] = []
    simulated = KernelRun.simulate

    def simulate(run: KernelRun, args: tuple, **options: Any) -> LaunchProfile:
        profile = simulated(run, args, **{**options, "counters": True})
        made.append((sum(map(np.size, args)), run.threads, profile))
        return profile

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
