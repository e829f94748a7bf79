"""Lab 03's benchmark: what branches cost, and its histograms and selections beside CUB and CuPy."""

from collections.abc import Callable
from typing import Any

from kernels.warp_divergence import recordings
from kernels.warp_divergence.measurements import MEASUREMENTS
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table


def library_table(result: dict[str, Any], by: str) -> str:
    """Return a table of histograms or selections as text; `by`: in what rows differ too, "data" or "share"."""
    columns = {
        "kernel": "name",
        by: by,
        "µs": "seconds",
        "GB/s": "gbps",
        "of the copy": lambda row: row["gbps"] / result["copy_gbps"],
        "ratio to CUB": "ratio_to_cub",
        "ratio to CuPy": "ratio_to_cupy",
        "equal to NumPy": "correct",
    }
    return timing.rows_table(tuple(columns), tuple(columns.values()), result["rows"])


def paths_table(result: dict[str, Any]) -> str:
    """Return what K ways cost, by lane and by warp, as text."""
    headers = ("ways", "by lane, µs", "efficiency", "by warp, µs", "efficiency")
    keys = ("ways", *(f"by_{by}_{what}" for by in ("lane", "warp") for what in ("seconds", "warp_efficiency")))
    return timing.rows_table(headers, keys, result["rows"])


def tasks_table(rows: list[dict[str, Any]]) -> str:
    """Return tasks of different length and their cures as text."""
    headers = ("tasks", "how", "µs", "efficiency", "right")
    return timing.rows_table(headers, ("group", "name", "seconds", "warp_efficiency", "correct"), rows)


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
