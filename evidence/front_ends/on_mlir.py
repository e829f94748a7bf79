"""The labs' own Numba kernels under numba-cuda-mlir, beside numba-cuda, and numba-cuda-mlir's own tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

MOST = 300_000  # elements of a launch's arrays
COUNTERS = ("global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors")
SHARED = ("shared_load_requests", "shared_store_requests")
FILE_SECONDS = 400
# Of 257 files of tests; "numba_cuda_tests/cudapy" and the folder itself have most.
FILES = (
    *("test_atomics", "test_dynamic_shared_memory", "test_forall", "test_flow_control", "test_matmul_sharedmem"),
    *("test_cluster_launch", "test_bool", "test_device_functions", "numba_cuda_tests/cudapy/test_array_args"),
    *("numba_cuda_tests/cudapy/test_atomics", "numba_cuda_tests/cudapy/test_sm", "numba_cuda_tests/cudapy/test_sync"),
)


def labs(clone: None) -> Iterator[tuple]:
    """Yield a program for each lab that has Numba kernels."""
    from warpcourse.bench.lab import labs as every

    for lab in every():
        if lab.launches and (lab.folder / "numba_kernels.py").exists():
            yield lab.topic, "lab", lab.topic


def lab(topic: str) -> dict:
    """Run the launches of a lab under both compilers; compare results and counters."""
    import numba_cuda_mlir.cuda as mlir
    from numba_cuda_mlir import types as mlir_types

    import warplab
    from tools import ncu
    from warplab.dropin import numba_cuda
    from warplab.dropin import numba_cuda_mlir as simulated

    simulated.install()
    done: Counter[str] = Counter()
    notes = []
    for launch in ncu.launches(topic):
        kernel = launch.kernel()
        sizes = [a.size for a in launch.arguments if isinstance(a, np.ndarray)]
        if not hasattr(kernel, "py_func") or max(sizes, default=0) > MOST:
            continue
        translated = _translated(kernel, {numba_cuda: mlir}, mlir_types, mlir.jit)
        found = []
        for one in (kernel, translated):
            args = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in launch.arguments)
            try:
                with warplab.profile() as p:
                    one[launch.grid, launch.block, 0, launch.shared_bytes](*args)
            except Exception as error:
                from evidence.front_ends.child import short

                found.append(short(error))
                continue
            found.append((args, p.counts))
        done["launches"] += 1
        before, after = found
        if isinstance(after, str):
            done["stopped"] += 1
            notes.append(f"{launch.name}: {after[:120]}")
            continue
        same = all(
            np.allclose(a, b, rtol=1e-5, equal_nan=True)
            for a, b in zip(before[0], after[0], strict=True)
            if isinstance(a, np.ndarray) and a.dtype.kind in "biufc"
        )
        done["right"] += same
        for name, counters in (("equal", COUNTERS), ("shared", SHARED)):
            apart = [c for c in counters if getattr(before[1], c) != getattr(after[1], c)]
            done[name] += not apart
            if apart:
                notes.append(f"{launch.name}: {', '.join(apart)} differ")
        if not same:
            notes.append(f"{launch.name}: other results")
    summary = (
        f"{done['right']} of {done['launches']} launches right, of {done['equal']} all four global counters and of "
        f"{done['shared']} both shared ones equal numba-cuda's"
    )
    outcome = "ran" if done["right"] == done["launches"] else "partly"
    return {"outcome": outcome, "note": "; ".join([summary, *notes]), "launches": done["launches"], **done}


def _translated(kernel: Any, modules: dict, types: ModuleType, jit: Any) -> Any:
    """Return a kernel or device function of numba-cuda compiled by the other one, with what it names."""
    made: dict[int, Any] = {}

    def again(value: Any) -> Any:
        if isinstance(value, ModuleType):
            return modules.get(value, value)
        if hasattr(value, "py_func"):
            if id(value) not in made:
                device = bool(value.targetoptions.get("device"))
                made[id(value)] = jit(function(value.py_func), **({"device": True} if device else {}))
            return made[id(value)]
        name = getattr(value, "name", None)
        if type(value).__module__.startswith("numba.") and isinstance(name, str):
            return getattr(types, name, value)
        return value

    def function(old: FunctionType) -> FunctionType:
        names = {name: again(value) for name, value in old.__globals__.items() if name in _named(old)}
        closure = old.__closure__ and tuple(type(cell)(again(cell.cell_contents)) for cell in old.__closure__)
        new = FunctionType(old.__code__, names | {"__name__": old.__module__}, old.__name__, old.__defaults__, closure)
        new.__module__ = old.__module__
        return new

    return again(kernel)


def _named(function: FunctionType) -> set[str]:
    return {*function.__code__.co_names}


def tests(clone: Path) -> Iterator[tuple]:
    """Yield a program for each of the files with numba-cuda-mlir's own tests."""
    for file in FILES:
        yield f"tests/{file}.py", "tests_in", clone / "tests", file


def tests_in(root: str, file: str) -> dict:
    """Run a file of tests in a process of its own; return what became of them."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as work:
        report = Path(work, "report")
        code = "import sys, pytest; from evidence.front_ends.on_mlir import Outcomes; "
        code += "sys.exit(pytest.main(sys.argv[2:], plugins=[Outcomes(sys.argv[1])]))"
        command = [sys.executable, "-c", code, str(report), "-q", "-c", os.devnull, f"--rootdir={root}"]
        command += ["-p", "no:cacheprovider", "--tb=short", str(Path(root, f"{file}.py"))]
        paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""), os.getcwd())))
        late = ""
        try:
            environment = {**os.environ, "PYTHONPATH": paths}
            subprocess.run(command, timeout=FILE_SECONDS, capture_output=True, env=environment, check=False)
        except subprocess.TimeoutExpired:
            late = f"; stopped after {FILE_SECONDS} s"
        outcomes.update(report.read_text().splitlines() if report.exists() else ["not read"])
    passed, skipped = outcomes.pop("passed", 0), outcomes.pop("skipped", 0)
    kinds = ", ".join(f"{count} {kind}" for kind, count in outcomes.most_common(8))
    note = f"{passed} pass, {outcomes.total()} do not{f' ({kinds})' if kinds else ''}, {skipped} skipped by themselves"
    return {"outcome": "partly" if outcomes or late else "ran", "note": note + late, "passed": passed}


class Outcomes:
    """A plugin of pytest: the stand-in, and one line for each test in the file `path`."""

    def __init__(self, path: str) -> None:
        from warplab.dropin import numba_cuda_mlir as simulated

        simulated.install()
        self.path = path

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write an outcome: of a failure, the class of its error."""
        if report.failed:
            lines = [line[1:].strip() for line in str(report.longreprtext).splitlines() if line.startswith("E ")]
            outcome = lines[0].split(":")[0].split(".")[-1][:40] if lines else "failed"
        elif report.skipped or report.when == "call":
            outcome = report.outcome
        else:
            return
        with open(self.path, "a") as file:
            print(outcome, file=file)


PROGRAMS = {"labs": labs, "mlir-tests": tests}
