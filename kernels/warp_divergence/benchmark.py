"""Lab 03's benchmark: what branches cost, and its histograms and selections beside CUB and CuPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernels.warp_divergence import recordings
from kernels.warp_divergence.measurements import MEASUREMENTS
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table

HEADERS = ("µs", "GB/s", "of the copy", "ratio to CUB", "ratio to CuPy", "equal to NumPy")


def library_table(result: dict[str, Any], by: str) -> str:
    """Return a table of histograms or selections as text; `by`: what rows differ in beside the kernel, "data" or
    "share"."""
    rows = [
        (
            row["name"],
            row[by],
            row["seconds"] * 1e6,
            row["gbps"],
            row["gbps"] / result["copy_gbps"],
            "" if row["ratio_to_cub"] is None else row["ratio_to_cub"],
            row["ratio_to_cupy"],
            row["correct"],
        )
        for row in result["rows"]
    ]
    return timing.table(("kernel", by, *HEADERS), rows)


def paths_table(result: dict[str, Any]) -> str:
    """Return what K ways cost, by lane and by warp, as text."""
    headers = ("ways", "by lane, µs", "efficiency", "by warp, µs", "efficiency")
    rows = [
        (row["ways"], *(x for by in ("lane", "warp") for x in _time_and_efficiency(row, f"by_{by}_")))
        for row in result["rows"]
    ]
    return timing.table(headers, rows)


def tasks_table(rows: list[dict[str, Any]]) -> str:
    """Return tasks of different length and their cures as text."""
    headers = ("tasks", "how", "µs", "efficiency", "right")
    return timing.table(
        headers, [(row["group"], row["name"], *_time_and_efficiency(row), row["correct"]) for row in rows]
    )


def _time_and_efficiency(row: dict[str, Any], prefix: str = "") -> tuple[float, float]:
    return row[f"{prefix}seconds"] * 1e6, row[f"{prefix}warp_efficiency"]


def _of_library(heading: Callable[[dict[str, Any]], str], by: str, best: str) -> Table:
    """Return a table beside CUB and CuPy; its summary: the kernel `best` on each kind of data."""

    def text(value: dict[str, Any]) -> str:
        return f"{heading(value)}; {value['cub'] or 'no nvcc to compile CUB with'}\n{library_table(value, by)}"

    def summary(value: dict[str, Any]) -> dict[str, Any]:
        rows = [row for row in value["rows"] if row["name"] == best]
        ratios = {key: [row[key] for row in rows] for key in ("gbps", "ratio_to_cub", "ratio_to_cupy")}
        return {"n": value["n"], "best": best, "cub": value["cub"], **ratios}

    return Table(text, summary)


def _paths_summary(value: dict[str, Any]) -> dict[str, Any]:
    last = value["rows"][-1]
    return {"ways": last["ways"], "cost_by_lane": last["by_lane_seconds"] / last["by_warp_seconds"]}


def _order(rows: list[dict[str, Any]]) -> str:
    return "order of the sides: " + ", ".join(f"{row['kernel']} {row['sequence']}" for row in rows)


BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        "order_of_sides": Table(_order),
        "path_costs": Table(
            lambda value: f"{value['n']:,} threads, K ways of {value['steps']} steps\n{paths_table(value)}",
            _paths_summary,
        ),
        "task_times": Table(lambda rows: f"tasks of different length\n{tasks_table(rows)}"),
        "histogram_table": _of_library(
            lambda value: f"histogram of {value['n']:,} bytes", "data", "cuda_histogram_columns"
        ),
        "selection_table": _of_library(
            lambda value: (
                f"selection from {value['n']:,} float32 (bytes: all elements read once, those kept written once)"
            ),
            "share",
            "cuda_pipelined",
        ),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
