"""Lab 07's benchmark: bias + GELU beside a copy and CuPy; XLA through JAX; DLPack through PyTorch."""

from __future__ import annotations

from typing import Any

from kernels.training import recordings
from kernels.training.measurements import MEASUREMENTS
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table


def _text(value: dict[str, Any]) -> str:
    rows = [
        (f"{row['way']}, {row['name']}", row["seconds"] * 1e6, row["gbps"], row["correct"]) for row in value["kernels"]
    ]
    heading = f"bias + GELU, {value['rows']} × {value['columns']} float32"
    heading += f", JAX {value['jax']}" if "jax" in value else ""
    return f"{heading}\n" + timing.table(("kernel", "µs", "GB/s", "right"), rows)


def _summary(value: dict[str, Any]) -> dict[str, Any]:
    return {"gbps": {f"{row['way']}, {row['name']}": row["gbps"] for row in value["kernels"]}}


def _dlpack_text(value: dict[str, Any]) -> str:
    rows = [(row["name"], row["seconds"] * 1e6, row["correct"]) for row in value["ways"]]
    heading = f"a kernel on tensors of PyTorch {value['torch']}, {value['rows']} × {value['columns']} float32"
    return f"{heading}\n" + timing.table(("handed over by", "µs", "right"), rows)


def _dlpack_summary(value: dict[str, Any]) -> dict[str, Any]:
    return {"seconds": {row["name"]: row["seconds"] for row in value["ways"]}}


TABLES = {
    "kernel_table": Table(_text, _summary),
    "xla_through_jax": Table(_text, _summary),
    "dlpack_through_pytorch": Table(_dlpack_text, _dlpack_summary),
}
BENCHMARK = Benchmark(recordings, MEASUREMENTS, TABLES, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
