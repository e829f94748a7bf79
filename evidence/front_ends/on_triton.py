"""Triton's tutorials, its own tests of the language, and Triton-Puzzles."""

from __future__ import annotations

import inspect
import random
import runpy
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from evidence.front_ends.child import words
from warplab.dropin import triton as simulated

SEED = 0
# The benchmarks at the ends ask for times, and are left out. What else is replaced makes the data smaller; the calls
# are the tutorial's own functions.
TUTORIALS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    "01-vector-add": ((), ()),
    "02-fused-softmax": ((), (("1823, 781", "123, 781"),)),
    "03-matrix-multiplication": ((), ()),
    "04-low-memory-dropout": (("torch.testing.assert_close(output, output2)",), ()),
    "05-layer-norm": ((), (("test_layer_norm(1151, 8192", "test_layer_norm(151, 1024"),)),
    "06-fused-attention": (("test_op(1, 2, 128, 64, False, False, 'bwd', 'triton-fp16')",), ()),
    "06-fused-attention, causal": (("test_op(1, 2, 128, 64, True, False, 'bwd', 'triton-fp16')",), ()),
    "06-fused-attention, fp8": (("test_op(1, 2, 128, 64, False, False, 'fwd', 'triton-fp8')",), ()),
    "07-extern-functions": (
        ("torch.testing.assert_close(output_triton, output_torch)",),
        # libdevice where the package has it
        (
            (
                "current_dir.parent.parent / 'third_party/nvidia/backend/lib'",
                "Path(triton.__path__[0], 'backends/nvidia/lib')",
            ),
        ),
    ),
    "08-grouped-gemm": ((), ()),
    "09-persistent-matmul": (
        (
            "globals().update(a=torch.randn(96, 64).half(), b=torch.randn(80, 64).half())",
            *(
                f"torch.testing.assert_close({call}, a @ b.T, rtol=1e-2, atol=5e-2)"
                for call in (
                    "matmul(a, b.T)",
                    "device_blas_matmul(a, b)",
                    "matmul_persistent(a, b.T)",
                    "matmul_tma(a, b, False)",
                    "matmul_tma_persistent(a, b, False)",
                    "matmul_descriptor_persistent(a, b, True)",
                )
            ),
        ),
        (),
    ),
    "11-programmatic-dependent-launch": (
        ("torch.testing.assert_close(add(torch.ones(999), torch.ones(999)), torch.full((999,), 2.0))",),
        (),
    ),
}
PUZZLES = 12
LANGUAGE_SECONDS = 120  # of processor time, after which no further test of the language begins


def tutorials(clone: Path) -> Iterator[tuple]:
    """Yield a program for each tutorial."""
    for name in TUTORIALS:
        yield name, "tutorial", clone / "python/tutorials", name


def older_tutorials(clone: Path) -> Iterator[tuple]:
    """Yield a program for each tutorial as it was before variants: they name torch's device "cuda" in each call."""
    for name in TUTORIALS:
        if "," not in name:
            yield name, "tutorial", clone / "python/tutorials", name


def tutorial(folder: str, name: str) -> None:
    """Run a tutorial up to its benchmark; it compares with torch itself."""
    simulated.install(torch_cuda=True)
    import triton.testing

    class NoTimes:
        def run(self, **kwargs) -> None:
            """Leave out a benchmark."""

    triton.testing.perf_report = lambda *args: lambda function: NoTimes()
    calls, smaller = TUTORIALS[name]
    text = Path(folder, f"{name.split(',')[0]}.py").read_text()
    for old, new in smaller:
        text = text.replace(old, new)
    with tempfile.TemporaryDirectory() as work:
        file = Path(work, f"{name.split(',')[0]}.py")
        file.write_text(text)
        names = runpy.run_path(str(file), run_name="tutorial")
        for call in calls:
            eval(call, names)


def puzzles(clone: Path) -> Iterator[tuple]:
    """Yield a program for each puzzle."""
    for number in range(1, PUZZLES + 1):
        yield f"puzzle {number}", "puzzle", clone, number


def puzzle(clone: str, number: str) -> None:
    """Run a puzzle's solution and compare it with its specification."""
    simulated.install(torch_cuda=True)
    sys.path.insert(0, clone)
    stand_in = ModuleType("test_puzzle")  # theirs runs Triton's interpreter
    stand_in.test = _solved  # type: ignore[attr-defined]
    sys.modules["test_puzzle"] = stand_in
    solutions = runpy.run_path(str(Path(clone, "puzzles_ans.py")), run_name="puzzles")
    solutions["run_puzzles"](type("Arguments", (), {"log": False, "device": "cpu"}), [int(number)])


def _solved(kernel: Any, specification: Any, nelem: dict, B: dict | None = None, **kwargs: Any) -> bool:
    import torch
    import triton

    generator = torch.Generator().manual_seed(SEED)
    blocks = {f"B{name[1]}": 32 for name in nelem if len(name) > 1} | (B or {})
    signature = inspect.signature(specification)
    given = []
    for parameter in signature.parameters.values():
        shape = parameter.annotation.dims
        if parameter.annotation.dtype == "int32":
            given.append(torch.randint(-100_000, 100_000, shape, generator=generator, dtype=torch.int32))
        else:
            given.append(torch.rand(shape, generator=generator) - 0.5)
    out = torch.full(signature.return_annotation.dims, float("nan"))
    names = {parameter.name for parameter in kernel.params}
    grid = tuple(triton.cdiv(nelem.get(f"N{k}", 1), blocks.get(f"B{k}", 1)) for k in range(3))
    meta = {name: value for name, value in (blocks | nelem).items() if name in names}
    kernel[grid](*given, out, **meta)
    torch.testing.assert_close(out, specification(*given), rtol=1e-3, atol=1e-3)
    return True


def own_tests(clone: Path) -> Iterator[tuple]:
    """Yield one program: the tests of the language, one drawn of each function's."""
    yield "unit/language/test_core.py, one case of each test", "language_tests", clone / "python/test"


def language_tests(folder: str) -> dict:
    """Run one case of each of Triton's tests of its language, in a drawn order; return how many did what."""
    simulated.install(torch_cuda=True)
    import pytest
    import triton._internal_testing as helpers

    if not hasattr(helpers, "is_cpu"):  # of the fork for CPUs
        helpers.is_cpu = lambda: False
    drawn = _OneOfEach()
    file = Path(folder, "unit/language/test_core.py")
    pytest.main(["-q", "-p", "no:cacheprovider", "--tb=no", f"--rootdir={folder}", str(file)], plugins=[drawn])
    if not drawn.outcomes:
        raise RuntimeError("the tests could not be read")
    return drawn.row()


class _OneOfEach:
    """A plugin of pytest that keeps one case of each test function, and what became of it."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[str]] = {}
        self.failures: dict[str, str] = {}
        self.tests = self.begun = 0

    def pytest_collection_modifyitems(self, items: list) -> None:
        """Keep one case of each function."""
        cases: dict[str, list] = {}
        for item in items:
            cases.setdefault(item.function.__name__, []).append(item)
        generator = random.Random(SEED)
        items[:] = [generator.choice(of_one) for of_one in cases.values()]
        generator.shuffle(items)
        self.tests = len(items)

    def pytest_runtest_logstart(self) -> None:
        """Count a test."""
        self.begun += 1

    def pytest_runtest_teardown(self, item: Any) -> None:
        """End where the time is over; how many are left is told in the row."""
        if time.process_time() > LANGUAGE_SECONDS:
            item.session.shouldstop = "the time is over"

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep an outcome: of a failure, the class of its error."""
        name = report.nodeid.split("::")[-1]
        if report.failed:
            lines = [line[1:].strip() for line in str(report.longreprtext).splitlines() if line.startswith("E ")]
            last = next((line for line in lines if "Error" in line or "Race" in line or "Registers" in line), "failed")
            self.failures[name] = words(last)
            self.outcomes.setdefault(last.split(":")[0].split(".")[-1], []).append(name)
        elif report.skipped or report.when == "call":
            self.outcomes.setdefault(report.outcome, []).append(name)

    def row(self) -> dict:
        """Return the row of the page."""
        other = {kind: names for kind, names in self.outcomes.items() if kind not in ("passed", "skipped")}
        passed, left_out = len(self.outcomes.get("passed", ())), len(self.outcomes.get("skipped", ()))
        count = sum(map(len, other.values()))
        note = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(other.items()))
        summary = f"{passed} pass, {count} do not, {left_out} skipped by themselves"
        if self.begun < self.tests:
            summary += f"; {self.tests - self.begun} not begun in {LANGUAGE_SECONDS} s of processor time"
        return {
            "outcome": "partly" if count or self.begun < self.tests else "ran",
            "note": f"{summary}. {note}".strip(),
            "passed": passed,
            "failures": self.failures,
        }


PROGRAMS = {"tutorials": tutorials, "tutorials-2024": older_tutorials, "puzzles": puzzles, "triton-tests": own_tests}
