"""Lab 02's benchmark: prints the tables of its kernels and one line of JSON.

`--record` measures all that the notebook shows and writes `recordings.json`. Without a GPU: exit code 2.
"""

from __future__ import annotations

import argparse
from typing import Any

from kernels.memory_access import library, recordings
from kernels.memory_access.measurements import MEASUREMENTS
from warplab.bench import timing

TABLES = ("transpose_table", "transpose_shapes", "sum_table", "scan_table", "layout_table")


def text(values: dict[str, Any]) -> str:
    """The tables as text."""
    transposes, sums, scans, layouts = (values[f"{what}_table"] for what in ("transpose", "sum", "scan", "layout"))
    shapes = [
        (f"{row['rows']} × {row['columns']}", row["kernel"], row["gbps"], row["ratio_to_copy"], row["correct"])
        for row in values["transpose_shapes"]
    ]
    needed = [
        (row["kernel"], row["fields"], row["seconds"] * 1e6, row["gbps"], row["correct"]) for row in layouts["kernels"]
    ]
    return "\n\n".join(
        (
            f"transpose of {transposes['rows']} × {transposes['columns']} float32\n" + _kernels(transposes),
            "the fastest transpose, by shape\n" + timing.table(("shape", "kernel", "GB/s", "of copy", "right"), shapes),
            f"sum of {sums['n']:,} float32; cuda-cccl {sums['cub']}\n" + _kernels(sums),
            f"prefix sum of {scans['n']:,} float32; cuda-cccl {scans['cub']}\n" + _kernels(scans),
            f"{layouts['n']:,} points of four float32; GB/s of the bytes that the task needs\n"
            + timing.table(("kernel", "fields", "µs", "GB/s", "right"), needed),
        )
    )


def _kernels(table: dict[str, Any]) -> str:
    ratios = {"ratio_to_copy": "of copy", "ratio_to_library": "of library"}
    shown = [key for key in ratios if any(key in row for row in table["kernels"])]
    rows = [
        (
            row["kernel"],
            row["seconds"] * 1e6,
            row["gbps"],
            *(row[key] for key in shown),
            row["correct"],
        )
        for row in table["kernels"]
    ]
    return timing.table(("kernel", "µs", "GB/s", *(ratios[key] for key in shown), "right"), rows)


def figures(values: dict[str, Any]) -> dict[str, Any]:
    """What the final line holds: of each table the best kernel, its bandwidth and its ratios."""
    result: dict[str, Any] = {}
    for what in ("transpose", "sum", "scan"):
        table = values[f"{what}_table"]
        own = [row for row in table["kernels"] if row["language"] != "library"]
        best = max(own, key=lambda row: row["gbps"])
        result[what] = {
            key: best[key] for key in ("kernel", "gbps", "ratio_to_copy", "ratio_to_library") if key in best
        } | {"libraries_gbps": {row["kernel"]: row["gbps"] for row in table["kernels"] if row["language"] == "library"}}
    result["cub"] = values["sum_table"]["cub"]
    result["correct"] = correct(values)
    return result


def correct(values: dict[str, Any]) -> bool:
    """Whether every output of every table was right."""
    rows = [row for what in ("transpose", "sum", "scan", "layout") for row in values[f"{what}_table"]["kernels"]]
    return all(row["correct"] for row in [*rows, *values["transpose_shapes"]])


def main() -> int:
    """Returns the exit code: 0, 1 when an output was wrong; ends with 2 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m kernels.memory_access.benchmark", description=__doc__)
    parser.add_argument("--record", action="store_true", help="measure everything and write recordings.json")
    arguments = parser.parse_args()
    timing.require_gpu()
    values = recordings.record(MEASUREMENTS) if arguments.record else {name: MEASUREMENTS[name]() for name in TABLES}
    print(text(values))
    if library.cub_version() is None:
        print(library.HINT)
    print(timing.last_line("memory_access", figures(values)))
    return 0 if correct(values) else 1


if __name__ == "__main__":
    raise SystemExit(main())
