"""Lab 08's benchmark: SiLU's kernels beside a copy, and steps with and without recomputation in PyTorch and JAX."""

from __future__ import annotations

from typing import Any

from kernels.recomputation import recordings
from kernels.recomputation.measurements import MEASUREMENTS
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table

MIB = 2**20


def _kernels(value: dict[str, Any]) -> str:
    rows = [(row["entry"], row["name"], row["seconds"] * 1e6, row["gbps"], row["correct"]) for row in value["rows"]]
    head = f"SiLU of {value['n']:,} float32; GB/s of what must be moved"
    return f"{head}\n" + timing.table(("kernel", "variant", "µs", "GB/s", "right"), rows)


def _kernels_summary(value: dict[str, Any]) -> dict[str, Any]:
    return {f"{row['entry']} {row['name']}": row["gbps"] for row in value["rows"]}


def _chains(value: dict[str, Any]) -> str:
    rows = [
        (row["layers"], row["segments"], row["evaluations"], row["peak_bytes"] / MIB, row["seconds"] * 1e3)
        for row in value["rows"]
    ]
    heading = f"chain of {value['width']} × {value['width']} products and SiLU, batch {value['batch']}, float32, "
    return f"{heading}PyTorch {value['torch']}\n" + timing.table(
        ("layers", "segments", "layers run", "MiB at the peak", "ms"), rows
    )


def _compiled_chains(value: dict[str, Any]) -> str:
    rows = [
        (row["layers"], row["segments"], row["temporary_bytes"] / MIB, row["seconds"] * 1e3) for row in value["rows"]
    ]
    heading = f"the same chain, JAX {value['jax']}, compiled by XLA"
    return f"{heading}\n" + timing.table(("layers", "segments", "MiB of temporaries", "ms"), rows)


def _resnet(value: dict[str, Any]) -> str:
    rows = [
        (row["precision"], row["batch"], row["way"], row["segments"], row["peak_bytes"] / MIB, row["seconds"] * 1e3)
        for row in value["rows"]
    ]
    heading = f"ResNet-{value['depth']}, forward and backward, PyTorch {value['torch']}"
    return f"{heading}\n" + timing.table(("precision", "batch", "plan", "segments", "MiB at the peak", "ms"), rows)


def _batches(value: dict[str, Any]) -> str:
    rows = [(row["precision"], row["way"], row["batch"]) for row in value["rows"]]
    size = f"{value['limit_bytes'] / 2**30:g} GiB"
    heading = f"ResNet-{value['depth']}: the largest batch in {size}, PyTorch {value['torch']}"
    return f"{heading}\n" + timing.table(("precision", "plan", "images"), rows)


TABLES = {
    "kernel_table": Table(_kernels, _kernels_summary),
    "pytorch_depth": Table(_chains),
    "jax_depth": Table(_compiled_chains),
    "pytorch_resnet": Table(_resnet),
    "pytorch_largest_batch": Table(_batches),
}
BENCHMARK = Benchmark(recordings, MEASUREMENTS, TABLES, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
