"""Lab 10's benchmark: broadcasts and all-reduces of this lab beside NCCL's, small messages, and data-parallel SGD."""

from __future__ import annotations

from typing import Any

from kernels.collectives import recordings
from kernels.collectives.measurements import MEASUREMENTS
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table


def _size(nbytes: int) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 2**power:
            return f"{nbytes / 2**power:g} {unit}"
    return f"{nbytes} B"


def _nccl(value: dict[str, Any]) -> str:
    return f"NCCL {value['nccl']} as it comes (buffers not registered)"


def _curve(value: dict[str, Any]) -> str:
    rows = [(row["engine"], row["slices"], row["seconds"] * 1e6, row["gbps"], row["correct"]) for row in value["rows"]]
    heading = f"Ring broadcast by peer copies, {value['ranks']} GPUs, {_size(value['bytes'])}"
    return f"{heading}\n{timing.table(('launched as', 'S', 'µs', 'GB/s', 'right'), rows)}"


def _table(value: dict[str, Any]) -> str:
    keys = "engine", "seconds", "gbps", "bus_gbps", "ratio_to_nccl", "correct"
    rows = [[row[key] * 1e6 if key == "seconds" else row[key] for key in keys] for row in value["rows"]]
    heading = f"{value['collective'].capitalize()} of {_size(value['bytes'])}, {value['ranks']} GPUs, {_nccl(value)}"
    return f"{heading}\n{timing.table(('engine', 'µs', 'GB/s', 'bus GB/s', 'times NCCL', 'right'), rows)}"


def _table_summary(value: dict[str, Any]) -> dict[str, Any]:
    return {row["engine"]: {"bus_gbps": row["bus_gbps"], "of_nccl": row["ratio_to_nccl"]} for row in value["rows"]}


def _tiles(value: dict[str, Any]) -> str:
    rows = [
        (row["collective"], row["relay"], row["seconds"] * 1e6, row["gbps"], row["correct"]) for row in value["rows"]
    ]
    heading = f"Relays by TMA by tile and stages, {value['ranks']} GPUs, {_size(value['bytes'])}"
    return f"{heading}\n{timing.table(('collective', 'tile × stages', 'µs', 'GB/s', 'right'), rows)}"


def _sizes(value: dict[str, Any]) -> str:
    rows = [(row["engine"], _size(row["bytes"]), row["seconds"] * 1e6, row["bus_gbps"]) for row in value["rows"]]
    heading = f"All-reduce by size, {value['ranks']} GPUs, {_nccl(value)}"
    return f"{heading}\n{timing.table(('engine', 'size', 'µs', 'bus GB/s'), rows)}"


def _small(value: dict[str, Any]) -> str:
    found = {(row["bytes"], row["graph"], row["engine"]): row["seconds"] * 1e6 for row in value["rows"]}
    rows = []
    for nbytes, graph in sorted({key[:2] for key in found}):
        ours, nccl = found[nbytes, graph, "one-shot"], found[nbytes, graph, "NCCL"]
        rows.append((_size(nbytes), "graph" if graph else "one by one", ours, nccl, nccl / ours))
    heading = f"Small all-reduces in place, {value['ranks']} GPUs, {_nccl(value)}, {value['calls']} calls in a row"
    return f"{heading}\n{timing.table(('size', 'calls', 'one-shot, µs', 'NCCL, µs', 'NCCL / ours'), rows)}"


def _sgd(value: dict[str, Any]) -> str:
    rows = [
        (
            row["way"],
            "overlapped" if row["overlap"] else "after it",
            *(row["seconds"] * 1e6, row["efficiency"], row["difference"], row["correct"]),
        )
        for row in value["rows"]
    ]
    heading = (
        f"A step of SGD, {value['ranks']} GPUs, {value['batch_per_rank']} points each, gradients of "
        f"{value['gradient_bytes'] / 2**20:.0f} MiB; one GPU alone {value['one_gpu_seconds'] * 1e6:.0f} µs, "
        f"all without sums {value['without_sums_seconds'] * 1e6:.0f} µs"
    )
    headers = "sums by", "backward pass", "µs", "efficiency", "weights apart", "right"
    return f"{heading}\n{timing.table(headers, rows)}"


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
