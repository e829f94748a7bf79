"""Lab 13's benchmark: the skeleton's kernels beside a copy."""

from __future__ import annotations

from typing import Any

from kernels.attention import recordings
from kernels.attention.measurements import MEASUREMENTS
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table


def _text(value: dict[str, Any]) -> str:
    rows = [(row["kernel"], row["seconds"] * 1e6, row["gbps"], row["correct"]) for row in value["rows"]]
    return f"{value['n']:,} float32 times a number\n" + timing.table(("kernel", "µs", "GB/s", "right"), rows)


def _summary(value: dict[str, Any]) -> dict[str, Any]:
    return {"gbps": {row["kernel"]: row["gbps"] for row in value["rows"]}}


BENCHMARK = Benchmark(recordings, MEASUREMENTS, {"kernel_table": Table(_text, _summary)}, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
