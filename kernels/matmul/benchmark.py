"""Lab 04's benchmark: the ladder at 4096³ and 8192³ and products by shape, beside cuBLAS."""

from typing import Any

from kernels.matmul import recordings
from kernels.matmul.measurements import MEASUREMENTS
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
EVERY_SHAPE = Table(measured_plans.text, lambda value: {"summaries": value["summaries"]})
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
