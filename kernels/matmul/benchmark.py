"""Lab 04's benchmark: the ladder at 4096³ and 8192³ and products by shape, beside cuBLAS."""

from typing import Any

from kernels.matmul import recordings
from kernels.matmul.measurements import MEASUREMENTS
from kernels.matmul.shape_rule import RULE
from warpcourse.bench import measured_plans
from warpcourse.bench.benchmark import Benchmark, Table
from warpcourse.bench.products import ProductTables


def _heading(table: dict[str, Any]) -> str:
    side, peak = table["side"], table["peak_tflops"]
    return f"{side} × {side} × {side}; peak of fused multiply-adds {peak:.1f} TFLOP/s"


TABLES = ProductTables(
    ratio="ratio_to_cublas",
    library="cuBLAS",
    peak="the FMA peak",
    heading=_heading,
    shapes_heading="TFLOP/s by shape, warm in the L2 cache where they fit; cuBLAS as it chooses; tiles of step 9",
)


def _every_shape(value: dict[str, Any]) -> str:
    """Return the tables, and what limits the slowest."""
    compared = (row for rows in value["rows"].values() for row in rows if "ratio" in row["warm"])
    row = min(compared, key=lambda row: row["warm"]["ratio"])
    shape = " × ".join(map(str, row["shape"]))
    library, ours = (100 * (1 - row["warm"][who] / row["cold"][who]) for who in ("library", "ours"))
    limits = (
        f"slowest, warm, is {shape}: a warm cache saves the library {library:.0f} % and step 10 {ours:.0f},",
        "so memory is not its limit; whether copies word by word are, nobody has measured",
    )
    return measured_plans.text(value, RULE, limits)


EVERY_SHAPE = Table(_every_shape, lambda value: {"summaries": value["summaries"]})
BENCHMARK = Benchmark(
    recordings,
    MEASUREMENTS,
    {
        **{key: TABLES.ladder() for key in ("ladder", "large_ladder")},
        "shapes": TABLES.shapes(),
        "every_shape": EVERY_SHAPE,
    },
    __doc__,
)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
