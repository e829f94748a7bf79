"""Lab 09's benchmark: the engine fused and unfused, by precision and batch, and beside PyTorch, cuDNN and TensorRT."""

from __future__ import annotations

from typing import Any

from kernels.fusion import recordings
from kernels.fusion.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table
from warpcourse.bench.timing import table

_CLOCKS = ("gpu_seconds", "latency_seconds", "steady_seconds")


def _times(row: dict[str, Any]) -> list[float]:
    return [row[key] * 1e6 for key in _CLOCKS]


def _engines(value: dict[str, Any]) -> str:
    headers = (
        "variant",
        "batch",
        "by",
        "launches",
        "in a row",
        "µs on the GPU",
        "latency",
        "steady",
        "MB moved",
        "accuracy",
        "right",
    )
    rows = [
        (
            *(row[key] for key in ("kind", "batch", "way", "launches", "in_a_row")),
            *_times(row),
            *(row["moved_bytes"] / 1e6, row["accuracy"], row["correct"]),
        )
        for row in value["rows"]
    ]
    return f"The trained network in this lab's engine, tuned\n{table(headers, rows)}"


def _engines_summary(value: dict[str, Any]) -> dict[str, Any]:
    return {"fusion_speedup": value["fusion_speedup"]}


def _batches(value: dict[str, Any]) -> str:
    headers = ("precision", "batch", "latency in µs", "images/s")
    rows = [
        (row["kind"], row["batch"], row["latency_seconds"] * 1e6, row["batch"] / row["steady_seconds"])
        for row in value["rows"]
    ]
    return f"By batch, as the faster of the two CUDA graphs\n{table(headers, rows)}"


def _peers(value: dict[str, Any]) -> str:
    headers = ("engine", "precision", "batch", "µs on the GPU", "latency", "steady", "right")
    rows = [
        (*(row[key] for key in ("name", "precision", "batch")), *_times(row), row["correct"]) for row in value["rows"]
    ]
    lacking = "".join(f"\nnot measured: {name}: {why}" for name, why in value["missing"].items())
    lines = [
        f"fastest other / ours, {name}: " + ", ".join(f"{clock} {ratio:.2f}" for clock, ratio in found.items())
        for name, found in value["ratios"].items()
    ]
    return "\n".join(["The same network by others", table(headers, rows), *lines]) + lacking


def _peers_summary(value: dict[str, Any]) -> dict[str, Any]:
    return value["ratios"]


def _factors(value: dict[str, Any]) -> str:
    together = table(("step", "images/s"), value["images_per_second"].items())
    return f"What “20 ×” may consist of\n{together}\n\n{table(('alone', 'factor'), value['alone'].items())}"


BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        "engines": Table(_engines, _engines_summary),
        "batches": Table(_batches),
        "factors": Table(_factors, lambda value: value["alone"]),
        "peers": Table(_peers, _peers_summary),
        "peers_large": Table(_peers, _peers_summary),
        "autotuned": Table(_peers, _peers_summary),
        "autotuned_large": Table(_peers, _peers_summary),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
