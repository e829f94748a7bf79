"""Lab 03's benchmark: prints what branches cost, the tables of histograms and selections, and one line of JSON.

`--record` measures all that the notebook shows and writes `recordings.json`. Without a GPU: exit code 2.
"""

from __future__ import annotations

import argparse
from typing import Any

from kernels.warp_divergence import recordings
from kernels.warp_divergence.measurements import MEASUREMENTS
from warplab.bench import timing

HEADERS = ("µs", "GB/s", "of the copy", "ratio to CUB", "ratio to CuPy", "equal to NumPy")
BEST = {"histogram_table": "cuda_histogram_columns", "selection_table": "cuda_pipelined"}


def library_table(result: dict[str, Any], by: str) -> str:
    """A table of histograms or selections as text; `by`: what rows differ in beside the kernel, "data" or "share"."""
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
    """What K ways cost, by lane and by warp, as text."""
    headers = ("ways", "by lane, µs", "efficiency", "by warp, µs", "efficiency")
    rows = [
        (row["ways"], *(x for by in ("lane", "warp") for x in _time_and_efficiency(row, f"by_{by}_")))
        for row in result["rows"]
    ]
    return timing.table(headers, rows)


def tasks_table(rows: list[dict[str, Any]]) -> str:
    """Tasks of unlike length and their cures as text."""
    headers = ("tasks", "how", "µs", "efficiency", "right")
    return timing.table(
        headers, [(row["group"], row["name"], *_time_and_efficiency(row), row["correct"]) for row in rows]
    )


def _time_and_efficiency(row: dict[str, Any], prefix: str = "") -> tuple[float, float]:
    return row[f"{prefix}seconds"] * 1e6, row[f"{prefix}warp_efficiency"]


def text(values: dict[str, Any]) -> str:
    """The order of the sides and all tables as text."""
    paths, histograms, selections = (values[key] for key in ("path_costs", "histogram_table", "selection_table"))
    no_cub = "no nvcc to compile CUB with"
    return "\n\n".join(
        (
            "order of the sides: "
            + ", ".join(f"{row['kernel']} {row['sequence']}" for row in values["order_of_sides"]),
            f"{paths['n']:,} threads, K ways of {paths['steps']} steps\n" + paths_table(paths),
            "tasks of unlike length\n" + tasks_table(values["task_times"]),
            f"histogram of {histograms['n']:,} bytes; {histograms['cub'] or no_cub}\n"
            + library_table(histograms, "data"),
            f"selection from {selections['n']:,} float32; {selections['cub'] or no_cub}\n"
            "bytes: all elements read once, those kept written once\n" + library_table(selections, "share"),
        )
    )


def figures(values: dict[str, Any]) -> dict[str, Any]:
    """What the final line holds."""
    found: dict[str, Any] = {"correct": correct(values)}
    for key, name in BEST.items():
        table = values[key]
        rows = [row for row in table["rows"] if row["name"] == name]
        found[key] = {
            "n": table["n"],
            "best": name,
            "cub": table["cub"],
            "gbps": [row["gbps"] for row in rows],
            "ratio_to_cub": [row["ratio_to_cub"] for row in rows],
            "ratio_to_cupy": [row["ratio_to_cupy"] for row in rows],
        }
    last = values["path_costs"]["rows"][-1]
    found["paths"] = {"ways": last["ways"], "cost_by_lane": last["by_lane_seconds"] / last["by_warp_seconds"]}
    return found


def correct(values: dict[str, Any]) -> bool:
    """Whether every output of the tables was right."""
    rows = [*values["histogram_table"]["rows"], *values["selection_table"]["rows"], *values["task_times"]]
    return all(row["correct"] for row in rows)


def main() -> int:
    """Returns the exit code: 0, 1 when an output was wrong; ends with 2 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m kernels.warp_divergence.benchmark", description=__doc__)
    parser.add_argument("--record", action="store_true", help="measure everything and write recordings.json")
    arguments = parser.parse_args()
    timing.require_gpu()
    if arguments.record:
        values = recordings.record(MEASUREMENTS)
    else:
        values = {key: timing.rounded(function()) for key, function in MEASUREMENTS.items()}
    print(text(values))
    print(timing.last_line("warp_divergence", figures(values)))
    return 0 if correct(values) else 1


if __name__ == "__main__":
    raise SystemExit(main())
