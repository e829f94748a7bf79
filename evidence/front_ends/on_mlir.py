"""The labs' own Numba kernels under numba-cuda-mlir, beside numba-cuda, and numba-cuda-mlir's own tests."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from evidence.front_ends.child import short, words
from warplab.running import startup as startup_folder

MOST = 300_000  # elements of a launch's arrays
COUNTERS = ("global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors")
SHARED = ("shared_load_requests", "shared_store_requests")
FILE_SECONDS = 100  # of processor time for a file of tests
# Those of kernels and of what kernels call, the short files first. What is left out tests the driver, the compiler's
# inner parts, other packages, or takes long.
FILES = (
    *("test_forall", "test_dynamic_shared_memory", "test_flow_control", "test_bool", "test_matmul_sharedmem"),
    *("test_bitwise", "test_range", "test_literals", "test_loop_early_return", "test_captured_constants"),
    *("test_integer_division", "test_device_functions", "test_array_reductions", "test_inline_ptx", "test_slicing"),
    *("test_type_conversions", "test_tuple", "test_enum", "test_iterators", "test_warp_ops", "test_cluster_launch"),
    *(
        f"numba_cuda_tests/cudapy/test_{name}"
        for name in (
            *("boolean", "freevar", "idiv", "globals", "matmul", "mandel", "transpose", "montecarlo", "slicing"),
            *("localmem", "constmem", "minmax", "powi", "reduction", "lang", "nondet", "sync", "array_args", "laplace"),
            *(
                "warp_ops",
                "sm",
                "casting",
                "complex_kernel",
                "frexp_ldexp",
                "const_string",
                "atomics",
                "array_alignment",
            ),
            *("alignment", "array", "array_methods", "array_reductions", "blackscholes", "cache_hints", "complex"),
            *("cooperative_groups", "cuda_array_interface", "datetime", "device_array_capture", "device_func", "enums"),
            *("exception", "extending", "fastmath", "flow_control", "forall", "gufunc", "gufunc_scalar", "intrinsics"),
            *("iterators", "libdevice", "math", "multithreads", "operator", "overload", "print", "py2_div_issue"),
            *("record_dtype", "recursion", "ufuncs", "userexc", "vector_type", "vectorize", "vectorize_complex"),
            *("vectorize_decor", "vectorize_device", "vectorize_scalar_arg"),
        )
    ),
    *("test_atomics", "test_kernel_exceptions", "test_varargs", "test_array_view", "test_ptr_ops", "test_complex"),
    *("test_record_dtype", "test_half_precision", "test_large_smem"),
    *("test_array", "test_array_methods", "test_builtin_broadcasted_binops", "test_captured_array_constants"),
    *("test_cmath_signed_zeros", "test_coop_sync", "test_cuda_builtins", "test_custom_dtype", "test_datetime"),
    *("test_device_default_args", "test_dtype_attributes", "test_examples", "test_exotic_float_types", "test_inlining"),
    *("test_intrinsics", "test_libdevice", "test_math", "test_matmul", "test_narrow_float_types", "test_numpy"),
    *("test_nvvm_intrinsics", "test_printf", "test_string_types", "test_ufunc_memory", "test_vector_types"),
    *("test_vector_types_ops", "test_vector_type_complex_cast", "test_value_storage_runtime"),
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
    """Run a file of tests in a process of its own; return what became of them, and the messages of those that fail."""
    with tempfile.TemporaryDirectory() as work:
        report = Path(work, "report")
        code = "import sys, pytest; from evidence.front_ends.on_mlir import Outcomes; "
        code += "sys.exit(pytest.main(sys.argv[2:], plugins=[Outcomes(sys.argv[1])]))"
        command = [sys.executable, "-c", code, str(report), "-q", "-c", os.devnull, f"--rootdir={root}"]
        command += ["-p", "no:cacheprovider", "--tb=short", str(Path(root, f"{file}.py"))]
        startup = str(Path(startup_folder.__file__).parent)  # some tests start a Python of their own
        paths = os.pathsep.join(filter(None, (startup, root, os.environ.get("PYTHONPATH", ""), os.getcwd())))
        environment = {**os.environ, "PYTHONPATH": paths}
        ran = subprocess.run(command, capture_output=True, env=environment, check=False, preexec_fn=_limit)
        lines = report.read_text().splitlines() if report.exists() else ["not read\t\t"]
    found = [line.split("\t") for line in lines]
    outcomes = Counter(outcome for outcome, *_ in found)
    passed, skipped = outcomes.pop("passed", 0), outcomes.pop("skipped", 0)
    kinds = ", ".join(f"{count} {kind}" for kind, count in outcomes.most_common(8))
    note = f"{passed} pass, {outcomes.total()} do not{f' ({kinds})' if kinds else ''}, {skipped} skipped by themselves"
    late = ran.returncode == -signal.SIGXCPU
    return {
        "outcome": "partly" if outcomes or late else "ran",
        "note": note + f"; stopped after {FILE_SECONDS} s of processor time" * late,
        "passed": passed,
        "failures": {name: message for outcome, name, message in found if outcome in outcomes},
    }


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (FILE_SECONDS, FILE_SECONDS + 5))


class Outcomes:
    """A plugin of pytest: the stand-in, and one line for each test in the file `path`."""

    def __init__(self, path: str) -> None:
        from warplab.dropin import numba_cuda_mlir as simulated

        simulated.install()
        os.environ["WARPLAB"] = "1"  # for processes that tests start
        self.path = path

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write an outcome, the test and the first line of its error; the outcome of a failure is the error's class."""
        message = ""
        if report.failed:
            lines = [line[1:].strip() for line in str(report.longreprtext).splitlines() if line.startswith("E ")]
            message = words(lines[0]) if lines else "failed"
            outcome = message.split(":")[0].split(".")[-1][:40]
        elif report.skipped or report.when == "call":
            outcome = report.outcome
        else:
            return
        with open(self.path, "a") as file:
            print(outcome, report.nodeid.split("::", 1)[-1], message, sep="\t", file=file)

    def pytest_collectreport(self, report: Any) -> None:
        """Write what cannot be collected."""
        if not report.passed:
            self.pytest_runtest_logreport(report)


PROGRAMS = {"labs": labs, "mlir-tests": tests}
