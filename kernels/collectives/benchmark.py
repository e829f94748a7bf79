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


def _curve(value: dict[str, Any]) -> str:
    headers = ("launched as", "S", "µs", "GB/s", "right")
    keys = ("engine", "slices", "seconds", "gbps", "correct")
    heading = f"Ring broadcast by peer copies, {value['ranks']} GPUs, {binary_size(value['bytes'])}"
    return f"{heading}\n{timing.rows_table(headers, keys, value['rows'])}"


def _table(value: dict[str, Any]) -> str:
    headers = ("engine", "µs", "GB/s", "bus GB/s", "times NCCL", "right")
    keys = ("engine", "seconds", "gbps", "bus_gbps", "ratio_to_nccl", "correct")
    heading = (
        f"{value['collective'].capitalize()} of {binary_size(value['bytes'])}, {value['ranks']} GPUs, {_nccl(value)}"
    )
    return f"{heading}\n{timing.rows_table(headers, keys, value['rows'])}"


def _table_summary(value: dict[str, Any]) -> dict[str, Any]:
    return {row["engine"]: {"bus_gbps": row["bus_gbps"], "of_nccl": row["ratio_to_nccl"]} for row in value["rows"]}


def _tiles(value: dict[str, Any]) -> str:
    headers = ("collective", "tile × stages", "µs", "GB/s", "right")
    keys = ("collective", "relay", "seconds", "gbps", "correct")
    heading = f"Relays by TMA by tile and stages, {value['ranks']} GPUs, {binary_size(value['bytes'])}"
    return f"{heading}\n{timing.rows_table(headers, keys, value['rows'])}"


def _sizes(value: dict[str, Any]) -> str:
    headers = ("engine", "size", "µs", "bus GB/s")
    keys = ("engine", lambda row: binary_size(row["bytes"]), "seconds", "bus_gbps")
    heading = f"All-reduce by size, {value['ranks']} GPUs, {_nccl(value)}"
    return f"{heading}\n{timing.rows_table(headers, keys, value['rows'])}"


def _small(value: dict[str, Any]) -> str:
    found = {(row["bytes"], row["graph"], row["engine"]): row["seconds"] * 1e6 for row in value["rows"]}
    rows = []
    for nbytes, graph in sorted({key[:2] for key in found}):
        ours, nccl = found[nbytes, graph, "one-shot"], found[nbytes, graph, "NCCL"]
        rows.append((binary_size(nbytes), "graph" if graph else "one by one", ours, nccl, nccl / ours))
    heading = f"Small all-reduces in place, {value['ranks']} GPUs, {_nccl(value)}, {value['calls']} calls in a row"
    return f"{heading}\n{timing.table(('size', 'calls', 'one-shot, µs', 'NCCL, µs', 'NCCL / ours'), rows)}"


def _sgd(value: dict[str, Any]) -> str:
    headers = ("sums by", "backward pass", "µs", "efficiency", "weights apart", "right")
    overlap = lambda row: "overlapped" if row["overlap"] else "after it"  # noqa: E731
    keys = ("way", overlap, "seconds", "efficiency", "difference", "correct")
    heading = (
        f"A step of SGD, {value['ranks']} GPUs, {value['batch_per_rank']} points each, gradients of "
        f"{value['gradient_bytes'] / 2**20:.0f} MiB; one GPU alone {value['one_gpu_seconds'] * 1e6:.0f} µs, "
        f"all without sums {value['without_sums_seconds'] * 1e6:.0f} µs"
    )
    return f"{heading}\n{timing.rows_table(headers, keys, value['rows'])}"


BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        "broadcast_curve": Table(_curve),
        "relay_tiles": Table(_tiles),
        "broadcast_table": Table(_table, _table_summary),
        "all_reduce_table": Table(_table, _table_summary),
        "all_reduce_curve": Table(_sizes),
        "small_messages": Table(_small),
        "sgd": Table(_sgd),
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
