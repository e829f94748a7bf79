"""Lab 09's benchmark: the engine fused and unfused, by precision and batch, and beside PyTorch, cuDNN and TensorRT."""

from collections.abc import Iterator
from typing import Any

from kernels.fusion import recordings
from kernels.fusion.measured import networks
from kernels.fusion.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table
from warpcourse.bench.timing import rows_table

# All in µs.
CLOCKS: dict[str, Any] = {
    "µs on the GPU": "gpu_seconds",
    "latency": lambda row: row["latency_seconds"] * 1e6,
    "steady": lambda row: row["steady_seconds"] * 1e6,
}


def _peers(value: dict[str, Any]) -> str:
    headers, keys = ("engine", "precision", "batch", *CLOCKS, "right"), ("name", "precision", "batch", *CLOCKS.values())
    rows = rows_table(headers, (*keys, "correct"), value["rows"])
    lines = [
        f"fastest other / ours, {name}: " + ", ".join(f"{clock} {ratio:.2f}" for clock, ratio in found.items())
        for name, found in value["ratios"].items()
    ]
    return "\n".join(["The same network by others", rows, *lines, *_remarks(value)])


def _networks(value: dict[str, Any]) -> str:
    headers = "network", "batch", "engine", "precision", *CLOCKS, "images/s", "error", "right"
    rate = {"images/s": lambda row: row["batch"] / row["steady_seconds"]}
    rows = rows_table(
        headers,
        ("network", "batch", "way", "precision", *CLOCKS.values(), *rate.values(), "error", "correct"),
        value["rows"],
    )
    lines = [
        f"time over ours, {name}: " + ", ".join(f"{way} {ratio:.2f}" for way, ratio in found.items())
        for name, found in value["ratios"].items()
    ]
    beside = {row["way"] for row in value["rows"]} - {networks.OURS}
    title = "PyTorch's beside our engine" if beside else "our engine alone"
    return "\n".join([f"Real networks, 224 × 224, {title}", rows, *lines, *_remarks(value)])


def _remarks(value: dict[str, Any]) -> Iterator[str]:
    if "options" in value:
        kernels = f" of {value['descents']} kernels" if "descents" in value else ""
        yield f"autotuned: torch.compile with {', '.join(value['options'])}{kernels}"
    yield from (f"not measured: {name}: {why}" for name, why in value["missing"].items())


BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        "engines": Table.of_rows(
            "The trained network in this lab's engine, tuned",
            {"variant": "kind", "batch": "batch", "by": "way", "launches": "launches", "in a row": "in_a_row"}
            | CLOCKS
            | {"MB moved": "moved_bytes", "accuracy": "accuracy", "right": "correct"},
            lambda value: {"fusion_speedup": value["fusion_speedup"]},
        ),
        "batches": Table.of_rows(
            "By batch, as the faster of the two CUDA graphs",
            {"precision": "kind", "batch": "batch", "latency in µs": "latency_seconds"}
            | {"images/s": lambda row: row["batch"] / row["steady_seconds"]},
        ),
        **dict.fromkeys(
            ["resnet50", "resnet50_int8", "googlenet", "mobilenet_v2", *(k for k in MEASUREMENTS if "_autotuned" in k)],
            Table(_networks, lambda value: value["ratios"]),
        ),
        **dict.fromkeys(
            ("peers", "peers_large", "autotuned", "autotuned_large"), Table(_peers, lambda value: value["ratios"])
        ),
        "weight_only": Table.of_rows(
            "Square dense layers of one vector, by what a weight has",
            {"features": "size", "weights": "weights", "MB": "bytes", "µs": "seconds"}
            | {"GB/s": lambda row: row["bytes_per_second"] / 1e9, "error": lambda row: row.get("error", "")}
            | {"right": lambda row: row.get("correct", "")},
        ),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
