"""Lab 01's benchmark: the table of kernels, beside a copy and cupy.multiply."""

from __future__ import annotations

from typing import Any

from kernels.vector_multiply import recordings
from kernels.vector_multiply.measurements import MEASUREMENTS
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table

HEADERS = ("kernel", "µs", "GB/s", "ratio to copy", "ratio to cupy.multiply", "equal to NumPy")


def _text(value: dict[str, Any]) -> str:
    rows = [
        (
            row["kernel"],
            row["seconds"] * 1e6,
            row["gbps"],
            row["ratio_to_copy"],
            row["ratio_to_cupy"],
            row["correct"],
        )
        for row in value["rows"]
    ]
    return (
        f"vector multiply, n = {value['n']:,} float32\n"
        "bytes: a copy's are those read and written, a multiplication's 12 per element\n" + timing.table(HEADERS, rows)
    )


def _summary(value: dict[str, Any]) -> dict[str, Any]:
    best = max((row for row in value["rows"] if row["language"] != "library"), key=lambda row: row["gbps"])
    return {
        "n": value["n"],
        "gbps": {row["kernel"]: row["gbps"] for row in value["rows"]},
        "best": best["kernel"],
        "best_ratio_to_copy": best["ratio_to_copy"],
        "best_ratio_to_cupy": best["ratio_to_cupy"],
    }


BENCHMARK = Benchmark(recordings, MEASUREMENTS, {"kernel_table": Table(_text, _summary)}, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
