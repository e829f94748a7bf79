"""Lab 07's benchmark: bias + GELU beside a copy and CuPy; XLA through JAX; DLPack through PyTorch."""

from typing import Any

from kernels.training import recordings
from kernels.training.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table


def _heading(value: dict[str, Any]) -> str:
    jax = f", JAX {value['jax']}" if "jax" in value else ""
    return f"bias + GELU, {value['rows']} × {value['columns']} float32{jax}"


def _name(row: dict[str, Any]) -> str:
    return f"{row['way']}, {row['name']}"


KERNELS = Table.of_rows(
    _heading,
    {"kernel": _name, "µs": "seconds", "GB/s": "gbps", "right": "correct"},
    lambda value: {"gbps": {_name(row): row["gbps"] for row in value["kernels"]}},
    rows="kernels",
)
TABLES = {
    "kernel_table": KERNELS,
    "xla_through_jax": KERNELS,
    "dlpack_through_pytorch": Table.of_rows(
        "a kernel on tensors of PyTorch {torch}, {rows} × {columns} float32",
        {"handed over by": "name", "µs": "seconds", "right": "correct"},
        lambda value: {"seconds": {row["name"]: row["seconds"] for row in value["ways"]}},
        rows="ways",
    ),
}
BENCHMARK = Benchmark(recordings, MEASUREMENTS, TABLES, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
