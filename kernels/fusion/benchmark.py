"""Lab 09's benchmark: the engine fused and unfused, by precision and batch, and beside PyTorch, cuDNN and TensorRT."""

from __future__ import annotations

from typing import Any

from kernels.fusion import recordings
from kernels.fusion.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table
from warpcourse.bench.timing import rows_table, table

# All in µs.
CLOCKS = ("gpu_seconds", lambda row: row["latency_seconds"] * 1e6, lambda row: row["steady_seconds"] * 1e6)


def _engines(value: dict[str, Any]) -> str:
    headers = ("variant", "batch", "by", "launches", "in a row", "µs on the GPU", "latency", "steady")
    keys = ("kind", "batch", "way", "launches", "in_a_row", *CLOCKS, "moved_bytes", "accuracy", "correct")
    rows = rows_table((*headers, "MB moved", "accuracy", "right"), keys, value["rows"])
    return f"The trained network in this lab's engine, tuned\n{rows}"


def _batches(value: dict[str, Any]) -> str:
    headers = ("precision", "batch", "latency in µs", "images/s")
    keys = ("kind", "batch", "latency_seconds", lambda row: row["batch"] / row["steady_seconds"])
    return f"By batch, as the faster of the two CUDA graphs\n{rows_table(headers, keys, value['rows'])}"


def _peers(value: dict[str, Any]) -> str:
    headers = ("engine", "precision", "batch", "µs on the GPU", "latency", "steady", "right")
    rows = rows_table(headers, ("name", "precision", "batch", *CLOCKS, "correct"), value["rows"])
    lacking = "".join(f"\nnot measured: {name}: {why}" for name, why in value["missing"].items())
    lines = [
        f"fastest other / ours, {name}: " + ", ".join(f"{clock} {ratio:.2f}" for clock, ratio in found.items())
        for name, found in value["ratios"].items()
    ]
    return "\n".join(["The same network by others", rows, *lines]) + lacking


def _factors(value: dict[str, Any]) -> str:
    together = table(("step", "images/s"), value["images_per_second"].items())
    return f"What “20 ×” may consist of\n{together}\n\n{table(('alone', 'factor'), value['alone'].items())}"


BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        "engines": Table(_engines, lambda value: {"fusion_speedup": value["fusion_speedup"]}),
        "batches": Table(_batches),
        "factors": Table(_factors, lambda value: value["alone"]),
        **dict.fromkeys(
            ("peers", "peers_large", "autotuned", "autotuned_large"), Table(_peers, lambda value: value["ratios"])
        ),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
