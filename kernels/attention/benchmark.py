"""Lab 13's benchmark: attention forward, backward and decoding, beside PyTorch's backends."""

from collections.abc import Callable
from typing import Any

from kernels.attention import recordings
from kernels.attention.measurements import BACKENDS, GRAPH, MEASUREMENTS, UNFUSED
from warpcourse.bench.benchmark import Benchmark, Table


def _of(key: str, name: str, unit: float = 1) -> Callable[[dict[str, Any]], Any]:
    return lambda row: row[key][name] / unit if name in row[key] else ""


def _lengths(which: str) -> Table:
    """Return a table of a pass by length: TFLOP/s, ratios, megabytes that a call takes."""
    best, second = "wgmma", "FlashAttention 2"
    return Table.of_rows(
        f"{which}, TFLOP/s: {{heads}} heads of {{size}}, {{tokens:,}} tokens, float16, PyTorch {{torch}}, "
        "cuDNN's frontend {frontend}",
        {"length": "length", "causal": "causal"}
        | {name: _of("tflops", name) for name in ("mma", best, "cuDNN", GRAPH, *list(BACKENDS)[1:], UNFUSED)}
        | {f"{best} / best other": _of("ratio_to_best", best)}
        | {f"mma / {second}": lambda row: row["seconds"][second] / row["seconds"]["mma"]}
        | {f"MB, {best}": _of("bytes", best, 1e6), f"MB, {UNFUSED}": _of("peers_bytes", UNFUSED, 1e6)}
        | {"right": "correct"},
    )


_FORWARD, _BACKWARD = _lengths("forward"), _lengths("backward")
TABLES = {
    "forward_table": _FORWARD,
    "forward_64": _FORWARD,
    "backward_table": _BACKWARD,
    "backward_64": _BACKWARD,
    "decode_table": Table.of_rows(
        "one token, GB/s: {keys:,} keys, {heads} heads of keys of {size}, float16, PyTorch {torch}",
        {"batch": "batch", "query heads for each": "shared_by"}
        | {name: _of("gbps", name) for name in ("decode", *BACKENDS, "copy")}
        | {"decode / best other": _of("ratio_to_best", "decode"), "right": "correct"},
    ),
}
BENCHMARK = Benchmark(recordings, MEASUREMENTS, TABLES, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
