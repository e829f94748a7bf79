"""Lab 13's benchmark: attention forward, backward and decoding, beside PyTorch's backends."""

from typing import Any

from kernels.attention import recordings
from kernels.attention.measurements import BACKENDS, MEASUREMENTS
from warpcourse.bench.benchmark import Benchmark, Table


def _table(heading: str, given: dict[str, str], ours: tuple[str, ...], rates: str) -> Table:
    """Return a table with a rate of each candidate, and our ratios to the best backend."""

    def of(key: str, name: str) -> Any:
        return lambda row: row[key].get(name, "")

    unit = "GB/s" if rates == "gbps" else "TFLOP/s"
    others = (*BACKENDS, *(["copy"] if rates == "gbps" else []))
    return Table.of_rows(
        lambda value: heading.format(**value) + (", copied from what was printed" if "transcribed" in value else ""),
        given
        | {f"{name}, {unit}": of(rates, name) for name in (*ours, *others)}
        | {f"{name} / best": of("ratio_to_best", name) for name in ours}
        | {"right": "correct"},
    )


_LENGTHS = {"length": "length", "causal": "causal"}
_FORWARD = _table(
    "{heads} heads of {size}, {tokens:,} tokens, float16, PyTorch {torch}", _LENGTHS, ("mma", "wgmma"), "tflops"
)
_BACKWARD = _table(
    "backward: {heads} heads of {size}, {tokens:,} tokens, float16, PyTorch {torch}",
    _LENGTHS,
    ("mma", "wgmma"),
    "tflops",
)
TABLES = {
    "forward_table": _FORWARD,
    "forward_64": _FORWARD,
    "backward_table": _BACKWARD,
    "backward_64": _BACKWARD,
    "decode_table": _table(
        "one token, {keys:,} keys, {heads} heads of keys of {size}, float16, PyTorch {torch}",
        {"batch": "batch", "query heads for each": "shared_by"},
        ("decode",),
        "gbps",
    ),
}
BENCHMARK = Benchmark(recordings, MEASUREMENTS, TABLES, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
