"""Lab 05's benchmark: the ladder at 8192³ and 4096³ and products by shape, beside cuBLAS, cuBLASLt and the peak of the
tensor cores.
"""

from typing import Any

from kernels.tensor_core import recordings
from kernels.tensor_core.measurements import MEASUREMENTS
from kernels.tensor_core.shape_rule import RULE
from warpcourse.bench import measured_plans
from warpcourse.bench.benchmark import Benchmark, Table
from warpcourse.bench.products import ProductTables


def _heading(table: dict[str, Any]) -> str:
    side, peaks = table["side"], table["peaks_tflops"]
    rates = ", ".join(f"{kind} {rate:.0f}" for kind, rate in peaks.items()) or "not measured on this GPU"
    return f"{side} × {side} × {side}, results {table['result']}; peak in TFLOP/s, at the clock of this run: {rates}"


TABLES = ProductTables(
    ratio="ratio_to_library",
    library="the library",
    peak="the wgmma peak",
    heading=_heading,
    shapes_heading="TFLOP/s by shape, results float16, warm in the L2 cache where they fit; the library is cuBLASLt",
)
TYPES = Table.of_rows(
    "Step 7 with b given as (n, k), cold, beside cuBLASLt's fastest algorithm; fast, one level: e4m3 summed in 13 bits",
    {"factors": "factors", "result": "result", "m × n × k": lambda row: " × ".join(map(str, row["shape"]))}
    | {"µs": lambda row: 1e6 * row["seconds"]["ours"], "library": lambda row: 1e6 * row["seconds"]["library"]}
    | {"ratio": "ratio_to_library", "TFLOP/s": "tflops", "error": lambda row: row["errors"]["ours"]}
    | {"library's": lambda row: row["errors"]["library"]}
    | {
        f"{what} of {name}": lambda row, name=name, key=key, unit=unit: (
            unit * row[key][name] if name in row[key] else ""
        )
        for name in ("ours, one level", "library, fast")
        for what, key, unit in (("µs", "seconds", 1e6), ("error", "errors", 1))
    }
    | {"right": "correct"},
)


def _every_shape(value: dict[str, Any]) -> str:
    """Return the tables, and what limits the slowest."""
    drawn, eights = (value["rows"][name] for name in ("drawn", "drawn multiples of 8"))  # the same, rounded
    slow, fast = max(zip(drawn, eights, strict=True), key=lambda pair: pair[0]["cold"].get("ratio", 0))
    shape, times = " × ".join(map(str, slow["shape"])), (1e6 * row["cold"]["library"] for row in (slow, fast))
    limits = (
        "which is where it takes parts of tiles of 128 × 192, and rows are no multiples of 128 bytes",
        "those drawn have more than 1 since cuBLASLt is slow where rows are no whole 16 bytes:",
        "{} takes it {:.0f} µs, and {:.0f} when rounded to multiples of 8;".format(shape, *times),
        "multiples of 8 have less, as it has tiles 80 and 144 columns wide, and step 7 has none (7_every_shape.cu)",
    )
    return measured_plans.text(value, RULE, limits)


EVERY_SHAPE = Table(_every_shape, lambda value: {"summaries": value["summaries"]})
BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        **{key: TABLES.ladder() for key in ("ladder", "small_ladder", "float32_ladder")},
        "shapes": TABLES.shapes(),
        "every_shape": EVERY_SHAPE,
        "types": TYPES,
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
