"""Lab 02's tables of kernels: each at a size beyond the L2 cache, beside the copy and the libraries of the same run.

Keys end in their unit: `seconds`, `bytes`, `gbps` (1e9 bytes per second). Times are medians, of random data. Before
that each kernel's output is poisoned and then checked, sums on data for which they are exact in any order.
"""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.memory_access import library
from kernels.memory_access.patterns import LAYOUTS
from kernels.memory_access.scanning import SCANS
from kernels.memory_access.summing import SUMS, Sum
from kernels.memory_access.transposing import TRANSPOSES, fastest
from warpcourse.bench.timing import (
    Candidate,
    Timing,
    copy_on_device,
    cupy_on_gpu,
    empty_launch,
    fitting,
    in_new_processes,
    native,
    time_together,
)

SIDE = 2**14  # of the matrix: 1 GiB
AWKWARD = ((16380, 20004), (16381, 20011))  # multiples of 4 whose rows start inside a sector, and two primes
LONG = (
    (3, 89478485),
    (89478485, 3),
    (31, 8000003),
    (8000003, 31),
    (250, 1000003),
    (1000003, 250),
    (1, 2**28),
    (2**28, 1),
)
SMALL = ((512, 512), (1024, 1024), (2048, 2048), (4096, 4096), (1000, 1000), (1001, 1003), (3001, 3003), (600, 30000))
SHAPES = ((SIDE, SIDE), *AWKWARD, *LONG, *SMALL)
SEED, DRAWN = 679322331, 40  # of shapes drawn after the code was final
N = 2**28
LENGTHS = (*(4**power for power in range(6, 15)), 1000003, 10000019, 99999989)
SEED_OF_LENGTHS = 1018953240  # of those drawn from LENGTHS' range, after the code was final
ROUNDS, RUNS = 7, 11
ANY_SHAPE = ("cuda_sectors", "cuda_few_columns", "cuda_few_rows")  # kernels, whose times stand with shapes


def exact_vector(n: int) -> Any:
    """Return device array of n float32, zeros and random ones: whose sum is exact in any order, up to n = 2^28."""
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
    kernels = {name: kernel for name, kernel in TRANSPOSES.items() if name not in ANY_SHAPE}
    for name, kernel in kernels.items():
        candidates[name] = Candidate(kernel.queue, [tuple(native(kernel.language, x) for x in (a, out))])
        out.fill(np.nan)
        kernel.queue(*candidates[name].arguments[0])
        correct[name] = bool((out == a.T).all())
    timings = time_together(candidates, rounds=ROUNDS, runs=RUNS)
    languages = {name: kernel.language for name, kernel in kernels.items()}
    return {"rows": side, "columns": side, **_table(timings, 2 * a.nbytes, languages, correct)}


def drawn_shapes() -> list[tuple[int, int]]:
    """Return shapes of 2^16 to 2^28 elements: their number, and the share of it that is rows, uniform as logarithms."""
    random = np.random.default_rng(SEED)
    elements = 2 ** random.uniform(16, 28, DRAWN)
    rows = elements ** random.uniform(0, 1, DRAWN)
    return [(round(r), round(n / round(r))) for n, r in zip(elements, rows, strict=True)]


def transpose_drawn() -> list[dict[str, Any]]:
    """Return `transpose_shapes` of drawn shapes."""
    return transpose_shapes(tuple(drawn_shapes()))


def transpose_shapes(shapes: tuple[tuple[int, int], ...] = SHAPES) -> list[dict[str, Any]]:
    """Return by shape the chosen transpose and all from cuda_large on, beside a copy of as many bytes."""
    cupy = cupy_on_gpu()
    result = []
    for rows, columns in shapes:
        a = cupy.random.random((rows, columns), dtype=np.float32)
        out = cupy.empty((columns, rows), np.float32)
        candidates, correct = {"copy": Candidate(copy_on_device, [(out, a)])}, {"copy": True}
        for name in dict.fromkeys((fastest(rows, columns), "cuda_large", "cuda_float4", *ANY_SHAPE)):
            kernel = TRANSPOSES[name]
            if not kernel.takes(rows, columns):
                continue
            out.fill(np.nan)
            kernel.queue(a, out)
            correct[name] = bool((out == a.T).all())
            candidates[name] = Candidate(kernel.queue, [(a, out)])
        timings = time_together(candidates, rounds=5, runs=RUNS)
        table = _table(timings, 2 * a.nbytes, dict.fromkeys(TRANSPOSES, "CUDA C++"), correct)
        for row in table["kernels"][1:]:
            kept = {key: row[key] for key in ("kernel", "seconds", "gbps", "ratio_to_copy", "correct")}
            result.append({"rows": rows, "columns": columns, **kept})
        del a, out
        cupy.get_default_memory_pool().free_all_blocks()
    return result


def sum_table(n: int = N) -> dict[str, Any]:
    """Return every sum of n floats, beside the libraries'. `relative_error`: of random numbers, to float64."""
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


def drawn_lengths() -> list[int]:
    """Return DRAWN lengths, uniform as logarithms."""
    random = np.random.default_rng(SEED_OF_LENGTHS)
    return [round(2**power) for power in random.uniform(12, 28, DRAWN)]


def scan_lengths() -> list[dict[str, Any]]:
    """Return by length the pipelined prefix sum, beside a copy of as many bytes; warm in L2 where they fit."""
    cupy, result = cupy_on_gpu(), []
    for n in (*LENGTHS, *sorted(drawn_lengths())):
        a, out = exact_vector(n), cupy.empty(n, np.float32)
        scan = SCANS["cuda_pipelined"].plan(a, out)
        out.fill(np.nan)
        scan()
        correct = bool((out == cupy.cumsum(a, dtype=np.float64)).all())
        candidates = {"copy": Candidate(lambda a=a, out=out: copy_on_device(out, a)), "scan": Candidate(scan)}
        candidates |= {name: Candidate(f) for name, f in library.prefix_sums(a, out).items() if name == library.CUB}
        timings = time_together(candidates, rounds=5, runs=RUNS)
        seconds = {name: timing.seconds for name, timing in timings.items()}
        copy, ours, cub = (seconds.get(name) for name in ("copy", "scan", library.CUB))
        row = {"n": n, "seconds": ours, "copy_seconds": copy, "gbps": timings["scan"].bandwidth(2 * a.nbytes)}
        row["ratio_to_copy"] = copy / ours
        result.append(row | {"ratio_to_cub": cub and cub / ours, "correct": correct})
    return result


def chosen(shapes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return of rows of `transpose_shapes` those of the kernel that is chosen by shape."""
    return [row for row in shapes if row["kernel"] == fastest(row["rows"], row["columns"])]


def again() -> dict[str, float]:
    """Return what an empty launch takes, and the mean and least share of a copy of drawn transposes and prefix sums."""
    found = {"empty_seconds": empty_launch()["seconds"]}
    for what, rows in (("transpose", chosen(transpose_drawn())), ("scan", scan_lengths())):
        ratios = [row["ratio_to_copy"] for row in rows]
        found |= {f"{what}_mean": statistics.geometric_mean(ratios), f"{what}_least": min(ratios)}
    return found


def processes() -> list[dict[str, float]]:
    """Return `again` of three processes."""
    return in_new_processes(again, count=3)


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
