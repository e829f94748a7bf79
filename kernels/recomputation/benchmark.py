"""Lab 08's benchmark: SiLU's kernels beside a copy, and steps with and without recomputation in PyTorch and JAX."""

from kernels.recomputation import recordings
from kernels.recomputation.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table

TABLES = {
    "kernel_table": Table.of_rows(
        "SiLU of {n:,} float32; GB/s of what must be moved",
        {"kernel": "entry", "variant": "name", "µs": "seconds", "GB/s": "gbps", "right": "correct"},
        lambda value: {f"{row['entry']} {row['name']}": row["gbps"] for row in value["rows"]},
    ),
    "pytorch_depth": Table.of_rows(
        "chain of {width} × {width} products and SiLU, batch {batch}, float32, PyTorch {torch}",
        {"layers": "layers", "segments": "segments", "layers run": "evaluations"}
        | {"MiB at the peak": "peak_bytes", "ms": "seconds"},
    ),
    "jax_depth": Table.of_rows(
        "the same chain, JAX {jax}, compiled by XLA",
        {"layers": "layers", "segments": "segments", "MiB of temporaries": "temporary_bytes", "ms": "seconds"},
    ),
    "pytorch_resnet": Table.of_rows(
        "ResNet-{depth}, forward and backward, PyTorch {torch}",
        {"precision": "precision", "batch": "batch", "plan": "way", "segments": "segments"}
        | {"MiB at the peak": "peak_bytes", "ms": "seconds"},
    ),
    "pytorch_largest_batch": Table.of_rows(
        lambda value: (
            f"ResNet-{value['depth']}: the largest batch in {value['limit_bytes'] / 2**30:g} GiB, "
            f"PyTorch {value['torch']}"
        ),
        {"precision": "precision", "plan": "way", "images": "batch"},
    ),
}
BENCHMARK = Benchmark(recordings, MEASUREMENTS, TABLES, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
