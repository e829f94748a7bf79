"""Lab 01's benchmark: prints the table of kernels and one line of JSON.

`--record` measures all that the notebook shows and writes `recordings.json`. Without a GPU: exit code 2.
"""

from __future__ import annotations

import argparse
from typing import Any

from kernels.vector_multiply import recordings
from kernels.vector_multiply.measurements import MEASUREMENTS, kernel_table
from warplab.bench import timing

HEADERS = ("kernel", "µs", "GB/s", "ratio to copy", "ratio to cupy.multiply", "equal to NumPy")


def text(result: dict[str, Any]) -> str:
    """The table of kernels as text."""
    rows = [
        (
            row["kernel"],
            row["seconds"] * 1e6,
            row["gbps"],
            row["ratio_to_copy"],
            row["ratio_to_cupy"],
            row["correct"],
        )
        for row in result["rows"]
    ]
    return timing.table(HEADERS, rows)


def figures(result: dict[str, Any]) -> dict[str, Any]:
    """What the final line holds."""
    kernels = [row for row in result["rows"] if row["language"] != "library"]
    best = max(kernels, key=lambda row: row["gbps"])
    return {
        "n": result["n"],
        "gbps": {row["kernel"]: row["gbps"] for row in result["rows"]},
        "best": best["kernel"],
        "best_ratio_to_copy": best["ratio_to_copy"],
        "best_ratio_to_cupy": best["ratio_to_cupy"],
        "correct": all(row["correct"] for row in result["rows"]),
    }


def main() -> int:
    """Returns the exit code: 0, 1 when an output was wrong; ends with 2 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m kernels.vector_multiply.benchmark", description=__doc__)
    parser.add_argument("--record", action="store_true", help="measure everything and write recordings.json")
    arguments = parser.parse_args()
    timing.require_gpu()
    result = recordings.record(MEASUREMENTS)["kernel_table"] if arguments.record else kernel_table()
    print(f"vector multiply, n = {result['n']:,} float32")
    print("bytes: a copy's are those read and written, a multiplication's 12 an element")
    print(text(result))
    print(timing.last_line("vector_multiply", figures(result)))
    return 0 if all(row["correct"] for row in result["rows"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
