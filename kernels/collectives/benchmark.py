"""Lab 10's benchmark: broadcasts and all-reduces of this lab beside NCCL's, small messages, and data-parallel SGD."""

from collections.abc import Mapping
from typing import Any

from kernels.collectives import recordings
from kernels.collectives.measurements import MEASUREMENTS
from kernels.collectives.sizes import binary_size
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Benchmark, Table


def _nccl(value: dict[str, Any]) -> str:
    lack = f"; no symmetric window: {value['no_window']}" if "no_window" in value else ""
    return f"NCCL {value['nccl']} as it comes (buffers not registered){lack}"


def _microseconds(row: Mapping[str, Any]) -> str:
    """Return a median, and from where to where its samples went, if the recording has that."""
    keys = ("seconds", *(key for key in ("least_seconds", "most_seconds") if key in row))
    median, *ends = (f"{value:.0f}" if value >= 1000 else f"{value:.4g}" for value in (row[key] * 1e6 for key in keys))
    return f"{median} ({' to '.join(ends)})" if ends else median


def _small(value: dict[str, Any]) -> str:
    found = {(row["bytes"], row["graph"], row["engine"]): row for row in value["rows"]}
    engines = list(dict.fromkeys(row["engine"] for row in value["rows"]))
    rows = []
    for nbytes, graph in sorted({key[:2] for key in found}):
        here = {engine: found[nbytes, graph, engine] for engine in engines if (nbytes, graph, engine) in found}
        ours = min(row["seconds"] for engine, row in here.items() if "NCCL" not in engine)
        ratio = here["NCCL"]["seconds"] / ours
        times = (_microseconds(here[engine]) if engine in here else "" for engine in engines)
        rows.append((binary_size(nbytes), "graph" if graph else "one by one", *times, ratio))
    heading = f"Small all-reduces in place, {value['ranks']} GPUs, {_nccl(value)}, {value['calls']} calls in a row"
    headers = ("size", "calls", *(f"{engine}, µs" for engine in engines), "NCCL / ours")
    return f"{heading}\n{timing.table(headers, rows)}"


def _of_runs(table: Table) -> Table:
    """Return the table of a value that has a run for each number of GPUs."""
    return Table(
        lambda value: "\n\n".join(map(table.text, value["runs"])),
        lambda value: {f"{run['ranks']} GPUs": shown for run in value["runs"] if (shown := table.summary(run))},
    )


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
    {"engine": "engine", "µs": _microseconds, "GB/s": "gbps", "bus GB/s": "bus_gbps"}
    | {"times NCCL": "ratio_to_nccl", "right": "correct"},
    lambda value: {
        row["engine"]: {"bus_gbps": row["bus_gbps"], "of_nccl": row["ratio_to_nccl"]} for row in value["rows"]
    },
)
TABLES = {  # of one run
    "broadcast_curve": Table.of_rows(
        lambda value: f"Ring broadcast by peer copies, {value['ranks']} GPUs, {binary_size(value['bytes'])}",
        {"launched as": "engine", "S": "slices", "µs": _microseconds, "GB/s": "gbps", "right": "correct"},
    ),
    "relay_tiles": Table.of_rows(
        lambda value: f"Relays by TMA by tile and stages, {value['ranks']} GPUs, {binary_size(value['bytes'])}",
        {
            "collective": "collective",
            "tile × stages": "relay",
            "µs": _microseconds,
            "GB/s": "gbps",
            "right": "correct",
        },
    ),
    "broadcast_table": BY_ENGINE,
    "all_reduce_table": BY_ENGINE,
    "all_reduce_curve": Table.of_rows(
        lambda value: f"All-reduce by size, {value['ranks']} GPUs, {_nccl(value)}",
        {
            "engine": "engine",
            "size": lambda row: binary_size(row["bytes"]),
            "µs": _microseconds,
            "bus GB/s": "bus_gbps",
        },
    ),
    "small_messages": Table(_small),
    "sgd": Table.of_rows(
        _sgd_heading,
        {"sums by": "way", "backward pass": lambda row: "overlapped" if row["overlap"] else "after it"}
        | {"µs": _microseconds, "efficiency": "efficiency", "weights apart": "difference", "right": "correct"},
    ),
}
BENCHMARK = Benchmark(recordings, MEASUREMENTS, {key: _of_runs(table) for key, table in TABLES.items()}, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
