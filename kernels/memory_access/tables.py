"""Lab 02's tables of kernels: each at a size beyond the L2 cache, beside the copy and the libraries of the same run.

Keys end in their unit: `seconds`, `bytes`, `gbps` (1e9 bytes per second). Times are medians, of random data. Before
that each kernel's output is poisoned and then checked, sums on data for which they are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.memory_access import library
from kernels.memory_access.patterns import LAYOUTS
from kernels.memory_access.scanning import SCANS
from kernels.memory_access.summing import SUMS, Sum
from kernels.memory_access.transposing import TRANSPOSES, fastest
from warpcourse.bench.timing import Candidate, Timing, copy_on_device, cupy_on_gpu, fitting, native, time_together

SIDE = 2**14  # of the matrix: 1 GiB
AWKWARD = ((16380, 20004), (16381, 20011))  # multiples of 4 whose rows start inside a sector, and two primes
N = 2**28
ROUNDS, RUNS = 7, 11


def exact_vector(n: int) -> Any:
    """Return device array of n float32, zeros and random ones: so few that their sum is exact in any order, up to n =
    2^28."""
    return (cupy_on_gpu().random.random(n, dtype=np.float32) < 2.0**-5).astype(np.float32)


def transpose_table(side: int = SIDE) -> dict[str, Any]:
    """Return every transpose of a side × side matrix, beside a copy of as many bytes."""
    cupy = cupy_on_gpu()
    while fitting(side * side, 3) < side * side:
        side //= 2
    a = cupy.random.random((side, side), dtype=np.float32)
    out = cupy.empty((side, side), np.float32)
    candidates = {"copy": Candidate(copy_on_device, [(out, a)])}
    correct = {"copy": True}
    for name, kernel in TRANSPOSES.items():
        candidates[name] = Candidate(kernel.queue, [tuple(native(kernel.language, x) for x in (a, out))])
        out.fill(np.nan)
        kernel.queue(*candidates[name].arguments[0])
        correct[name] = bool((out == a.T).all())
    timings = time_together(candidates, rounds=ROUNDS, runs=RUNS)
    languages = {name: kernel.language for name, kernel in TRANSPOSES.items()}
    return {"rows": side, "columns": side, **_table(timings, 2 * a.nbytes, languages, correct)}


def transpose_shapes(shapes: tuple[tuple[int, int], ...] = ((SIDE, SIDE), *AWKWARD)) -> list[dict[str, Any]]:
    """Return the fastest transpose by shape, beside a copy of as many bytes."""
    cupy = cupy_on_gpu()
    result = []
    for rows, columns in shapes:
        a = cupy.random.random((rows, columns), dtype=np.float32)
        out = cupy.full((columns, rows), np.nan, np.float32)
        name = fastest(a, out)
        TRANSPOSES[name].queue(a, out)
        correct = bool((out == a.T).all())
        candidates = {
            "copy": Candidate(copy_on_device, [(out, a)]),
            name: Candidate(TRANSPOSES[name].queue, [(a, out)]),
        }
        timings = time_together(candidates, rounds=5, runs=RUNS)
        languages = {name: TRANSPOSES[name].language}
        table = _table(timings, 2 * a.nbytes, languages, {"copy": True, name: correct})
        result.append({"rows": rows, "columns": columns, **table["kernels"][-1]})
    return result


def sum_table(n: int = N) -> dict[str, Any]:
    """Return every sum of n floats, beside the libraries'. `relative_error`: of the sum of random numbers, to
    float64."""
    cupy = cupy_on_gpu()
    n = fitting(n, 3)
    a, out = exact_vector(n), cupy.empty(1, np.float32)
    functions = library.sums(a, out) | {name: _summing(kernel, a, out) for name, kernel in SUMS.items()}

    def results() -> dict[str, float]:
        found = {}
        for name, function in functions.items():
            out.fill(np.nan)
            function()
            found[name] = float(out[0])
        return found

    exact = int(a.sum(dtype=np.int64))
    correct = {name: result == exact for name, result in results().items()}
    a[:] = cupy.random.random(n, dtype=np.float32)
    near = float(a.sum(dtype=np.float64))
    errors = {name: abs(result - near) / near for name, result in results().items()}
    timings = time_together({name: Candidate(f) for name, f in functions.items()}, rounds=ROUNDS, runs=RUNS)
    languages = {name: kernel.language for name, kernel in SUMS.items()}
    table = _table(timings, a.nbytes, languages, correct)
    for row in table["kernels"]:
        row["relative_error"] = errors[row["kernel"]]
    return {"n": n, "cub": library.cub_version(), **table}


def _summing(kernel: Sum, a: Any, out: Any) -> Callable[[], None]:
    """Return a function that queues the sum. In Numba, too, the result is set to zero by CuPy."""

    def in_its_language(array: Any) -> Any:
        return native(kernel.language, array)

    passes = kernel.passes(in_its_language(a), in_its_language(out), in_its_language)
    return lambda: kernel.queue(passes, lambda: out.fill(0))


def scan_table(n: int = N) -> dict[str, Any]:
    """Return prefix sums of n floats, beside the libraries' and a copy of as many bytes."""
    cupy = cupy_on_gpu()
    n = fitting(n, 5)
    a, out = exact_vector(n), cupy.empty(n, np.float32)
    functions = {"copy": lambda: copy_on_device(out, a)} | library.prefix_sums(a, out)
    functions |= {name: kernel.plan(a, out) for name, kernel in SCANS.items()}
    exact = cupy.cumsum(a, dtype=np.float64).astype(np.float32)
    correct = {}
    for name, function in functions.items():
        out.fill(np.nan)
        function()
        correct[name] = bool((out == (a if name == "copy" else exact)).all())
    del exact
    a[:] = cupy.random.random(n, dtype=np.float32)
    timings = time_together({name: Candidate(f) for name, f in functions.items()}, rounds=ROUNDS, runs=RUNS)
    languages = {name: kernel.language for name, kernel in SCANS.items()}
    return {"n": n, "cub": library.cub_version(), **_table(timings, 2 * a.nbytes, languages, correct)}


def layout_table(n: int = 2**26) -> dict[str, Any]:
    """Return structures: n points of four floats. `gbps` counts what the task needs: the fields used, and out."""
    cupy = cupy_on_gpu()
    n = fitting(n, 10)
    aos = cupy.random.random((n, 4), dtype=np.float32)
    soa, out = cupy.ascontiguousarray(aos.T), cupy.empty(n, np.float32)
    expected = {1: aos[:, 0] ** 2, 4: ((aos[:, 0] ** 2 + aos[:, 1] ** 2) + aos[:, 2] ** 2) + aos[:, 3] ** 2}
    candidates, correct = {}, {}
    for name, kernel in LAYOUTS.items():
        arguments = tuple(native(kernel.language, x) for x in (soa if kernel.soa else aos, out))
        candidates[name] = Candidate(kernel.queue, [arguments])
        out.fill(np.nan)
        kernel.queue(*arguments)
        correct[name] = bool(cupy.allclose(out, expected[kernel.fields], rtol=1e-6, atol=0))
    timings = time_together(candidates, rounds=5, runs=RUNS)
    rows = []
    for name, kernel in LAYOUTS.items():
        needed = 4 * n * (kernel.fields + 1)
        rows.append(
            {
                "kernel": name,
                "language": kernel.language,
                "fields": kernel.fields,
                "needed_bytes": needed,
                "seconds": timings[name].seconds,
                "gbps": timings[name].bandwidth(needed),
                "correct": correct[name],
            }
        )
    return {"n": n, "kernels": rows}


def _table(
    timings: dict[str, Timing], nbytes: int, languages: dict[str, str], correct: dict[str, bool]
) -> dict[str, Any]:
    """Return rows of all that was timed, with ratios to the copy and to the fastest library in it."""
    libraries = {name: t.seconds for name, t in timings.items() if name not in languages and name != "copy"}
    rows = []
    for name, timing in timings.items():
        row = {
            "kernel": name,
            "language": languages.get(name, "library"),
            "seconds": timing.seconds,
            "fastest_seconds": timing.fastest,
            "slowest_seconds": timing.slowest,
            "gbps": timing.bandwidth(nbytes),
        }
        if "copy" in timings:
            row["ratio_to_copy"] = timings["copy"].seconds / timing.seconds
        if libraries:
            row["ratio_to_library"] = min(libraries.values()) / timing.seconds
        rows.append(row | {"correct": correct[name]})
    return {"bytes": nbytes, "kernels": rows}
