"""Lab 01's benchmark: the table of kernels, beside a copy and cupy.multiply."""

from typing import Any

from kernels.vector_multiply import recordings
from kernels.vector_multiply.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table


def _summary(value: dict[str, Any]) -> dict[str, Any]:
    best = max((row for row in value["rows"] if row["language"] != "library"), key=lambda row: row["gbps"])
    return {
        "n": value["n"],
        "gbps": {row["kernel"]: row["gbps"] for row in value["rows"]},
        "best": best["kernel"],
        "best_ratio_to_copy": best["ratio_to_copy"],
        "best_ratio_to_cupy": best["ratio_to_cupy"],
    }


TABLE = Table.of_rows(
    "vector multiply, n = {n:,} float32\nbytes: a copy's are those read and written, a multiplication's 12 per element",
    {"kernel": "kernel", "µs": "seconds", "GB/s": "gbps", "ratio to copy": "ratio_to_copy"}
    | {"ratio to cupy.multiply": "ratio_to_cupy", "equal to NumPy": "correct"},
    _summary,
)
BENCHMARK = Benchmark(recordings, MEASUREMENTS, {"kernel_table": TABLE}, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
