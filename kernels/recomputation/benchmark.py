"""Lab 08's benchmark: SiLU's kernels beside a copy, and steps with and without recomputation in PyTorch and JAX."""

from __future__ import annotations

from typing import Any

from kernels.recomputation import recordings
from kernels.recomputation.measurements import MEASUREMENTS
from warplab.bench import timing
from warplab.bench.benchmark import Benchmark, Table


def _kernels(value: dict[str, Any]) -> str:
    rows = [(row["entry"], row["name"], row["seconds"] * 1e6, row["gbps"], row["correct"]) for row in value["rows"]]
    head = f"SiLU of {value['n']:,} float32; GB/s of what must be moved"
    return f"{head}\n" + timing.table(("kernel", "variant", "µs", "GB/s", "right"), rows)


def _kernels_summary(value: dict[str, Any]) -> dict[str, Any]:
    return {f"{row['entry']} {row['name']}": row["gbps"] for row in value["rows"]}


BENCHMARK = Benchmark(recordings, MEASUREMENTS, {"kernel_table": Table(_kernels, _kernels_summary)}, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
