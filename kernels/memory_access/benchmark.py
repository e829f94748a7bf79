"""Lab 02's benchmark: its kernels beside a copy and the libraries."""

import statistics
from collections.abc import Callable, Iterable
from typing import Any

from kernels.memory_access import recordings
from kernels.memory_access.measurements import MEASUREMENTS
from kernels.memory_access.tables import SEED, SEED_OF_LENGTHS, chosen
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table

SMALL = ", of which an empty launch is most, so that little counts"
WAITING = (
    "below 2^18 elements blocks wait for the sums of others, 0.9 µs to memory and back; of 2^20 and 2^22 the driver "
    "copies faster than of lengths beside them (scan.cu)"
)
LONG = 2**23  # elements, of which a copy takes several times as long as a launch


def _kernels(heading: Callable[[dict[str, Any]], str]) -> Table:
    """Return the table of a measurement with a row per kernel, under a heading made of its value."""
    return Table(lambda value: f"{heading(value)}\n{_rows(value)}", _best)


def _rows(value: dict[str, Any]) -> str:
    ratios = {"ratio_to_copy": "of copy", "ratio_to_library": "of library"}
    shown = [key for key in ratios if any(key in row for row in value["kernels"])]
    headers = ("kernel", "µs", "GB/s", *(ratios[key] for key in shown), "right")
    return timing.rows_table(headers, ("kernel", "seconds", "gbps", *shown, "correct"), value["kernels"])


def _best(value: dict[str, Any]) -> dict[str, Any]:
    """Return the best kernel, its bandwidth and its ratios, and the libraries' bandwidths."""
    best = max((row for row in value["kernels"] if row["language"] != "library"), key=lambda row: row["gbps"])
    libraries = {row["kernel"]: row["gbps"] for row in value["kernels"] if row["language"] == "library"}
    shown = ("kernel", "gbps", "ratio_to_copy", "ratio_to_library")
    return {key: best[key] for key in shown if key in best} | {"libraries_gbps": libraries}


def _shapes(heading: str, why: str = "") -> Table:
    """Return a table of transposes. `why`: the least is so little."""
    columns = {"shape": lambda row: f"{row['rows']} × {row['columns']}", "kernel": "kernel", "GB/s": "gbps"}
    columns |= {"of copy": "ratio_to_copy", "right": "correct"}

    def text(value: list[dict[str, Any]]) -> str:
        rows = chosen(value)
        means = _means((row["rows"] * row["columns"], row["ratio_to_copy"]) for row in rows)
        least = min(rows, key=lambda row: row["ratio_to_copy"])
        ours = 1e6 * least["seconds"]
        at = f"{least['rows']} × {least['columns']} in {ours:.1f} µs, a copy in {ours * least['ratio_to_copy']:.1f}"
        return (
            f"{heading}: {means}\nleast: {at}{why}\n{timing.rows_table(tuple(columns), tuple(columns.values()), rows)}"
        )

    return Table(text)


def _means(found: Iterable[tuple[int, float]]) -> str:
    """Return the mean and the least share of a copy, by elements: of what fills the GPU, and of all."""
    every = list(found)
    return "; ".join(
        f"{where} {statistics.geometric_mean(ratios):.3f} of the copy in the mean, {min(ratios):.3f} at least"
        for where, least in ((f"from {LONG:,} elements on", LONG), ("of all", 0))
        if (ratios := [ratio for elements, ratio in every if elements >= least])
    )


def _lengths(value: list[dict[str, Any]]) -> str:
    columns = {"n": "n", "µs": "seconds", "copy µs": "copy_seconds", "GB/s": "gbps", "of copy": "ratio_to_copy"}
    columns |= {"of CUB": "ratio_to_cub"} if value[0]["ratio_to_cub"] else {}
    columns |= {"right": "correct"}
    heading = f"prefix sums, warm likewise, lengths drawn with seed {SEED_OF_LENGTHS} among them"
    means = _means((row["n"], row["ratio_to_copy"]) for row in value)
    return f"{heading}: {means}\n{WAITING}\n{timing.rows_table(tuple(columns), tuple(columns.values()), value)}"


def _processes(value: list[dict[str, float]]) -> str:
    headers = ("µs of an empty launch", "transposes of copy", "least", "prefix sums of copy", "least")
    keys = ("empty_seconds", "transpose_mean", "transpose_least", "scan_mean", "scan_least")
    rows = timing.rows_table(headers, keys, value)
    return f"three processes, transposes of drawn shapes and prefix sums of all lengths\n{rows}"


def _cub(value: dict[str, Any]) -> str:
    return f"cuda-cccl {value['cub']}" if value["cub"] else "without CUB: `pip install cuda-cccl` brings it"


BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        "transpose_table": _kernels(lambda value: f"transpose of {value['rows']} × {value['columns']} float32, cold"),
        "transpose_shapes": _shapes("the transpose that is chosen by shape, warm in the L2 cache where it fits"),
        "transpose_drawn": _shapes(f"of shapes drawn after the code was final, seed {SEED}, warm likewise", SMALL),
        "sum_table": _kernels(lambda value: f"sum of {value['n']:,} float32, cold; {_cub(value)}"),
        "scan_table": _kernels(lambda value: f"prefix sum of {value['n']:,} float32, cold; {_cub(value)}"),
        "scan_lengths": Table(_lengths),
        "processes": Table(_processes),
        "layout_table": Table.of_rows(
            "{n:,} points of four float32; GB/s of the bytes that the task needs",
            {"kernel": "kernel", "fields": "fields", "µs": "seconds", "GB/s": "gbps", "right": "correct"},
            rows="kernels",
        ),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
