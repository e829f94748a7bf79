"""Lab 10's benchmark: broadcasts and all-reduces of this lab beside NCCL's, small messages, and data-parallel SGD."""

from __future__ import annotations

from typing import Any

from kernels.collectives import recordings
from kernels.collectives.measurements import MEASUREMENTS
from kernels.collectives.sizes import binary_size
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table


def _nccl(value: dict[str, Any]) -> str:
    return f"NCCL {value['nccl']} as it comes (buffers not registered)"


def _small(value: dict[str, Any]) -> str:
    found = {(row["bytes"], row["graph"], row["engine"]): row["seconds"] * 1e6 for row in value["rows"]}
    rows = []
    for nbytes, graph in sorted({key[:2] for key in found}):
        ours, nccl = found[nbytes, graph, "one-shot"], found[nbytes, graph, "NCCL"]
        rows.append((binary_size(nbytes), "graph" if graph else "one by one", ours, nccl, nccl / ours))
    heading = f"Small all-reduces in place, {value['ranks']} GPUs, {_nccl(value)}, {value['calls']} calls in a row"
    return f"{heading}\n{timing.table(('size', 'calls', 'one-shot, µs', 'NCCL, µs', 'NCCL / ours'), rows)}"


def _sgd_heading(value: dict[str, Any]) -> str:
    return (
        f"A step of SGD, {value['ranks']} GPUs, {value['batch_per_rank']} points each, gradients of "
        f"{value['gradient_bytes'] / 2**20:.0f} MiB; one GPU alone {value['one_gpu_seconds'] * 1e6:.0f} µs, "
        f"all without sums {value['without_sums_seconds'] * 1e6:.0f} µs"
    )


BY_ENGINE = Table.of_rows(
    lambda value: (
        f"{value['collective'].capitalize()} of {binary_size(value['bytes'])}, {value['ranks']} GPUs, {_nccl(value)}"
    ),
    {"engine": "engine", "µs": "seconds", "GB/s": "gbps", "bus GB/s": "bus_gbps"}
    | {"times NCCL": "ratio_to_nccl", "right": "correct"},
    lambda value: {
        row["engine"]: {"bus_gbps": row["bus_gbps"], "of_nccl": row["ratio_to_nccl"]} for row in value["rows"]
    },
)
BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        "broadcast_curve": Table.of_rows(
            lambda value: f"Ring broadcast by peer copies, {value['ranks']} GPUs, {binary_size(value['bytes'])}",
            {"launched as": "engine", "S": "slices", "µs": "seconds", "GB/s": "gbps", "right": "correct"},
        ),
        "relay_tiles": Table.of_rows(
            lambda value: f"Relays by TMA by tile and stages, {value['ranks']} GPUs, {binary_size(value['bytes'])}",
            {"collective": "collective", "tile × stages": "relay", "µs": "seconds", "GB/s": "gbps", "right": "correct"},
        ),
        "broadcast_table": BY_ENGINE,
        "all_reduce_table": BY_ENGINE,
        "all_reduce_curve": Table.of_rows(
            lambda value: f"All-reduce by size, {value['ranks']} GPUs, {_nccl(value)}",
            {
                "engine": "engine",
                "size": lambda row: binary_size(row["bytes"]),
                "µs": "seconds",
                "bus GB/s": "bus_gbps",
            },
        ),
        "small_messages": Table(_small),
        "sgd": Table.of_rows(
            _sgd_heading,
            {"sums by": "way", "backward pass": lambda row: "overlapped" if row["overlap"] else "after it"}
            | {"µs": "seconds", "efficiency": "efficiency", "weights apart": "difference", "right": "correct"},
        ),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
