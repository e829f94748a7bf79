"""Lab 04's benchmark: prints the ladder at 4096³ and 8192³ and products by shape, beside cuBLAS, and one line of JSON.

`--record` measures all that the notebook shows and writes `recordings.json`. Without a GPU: exit code 2.
"""

from __future__ import annotations

import argparse
from typing import Any

from kernels.matmul import recordings
from kernels.matmul.measurements import MEASUREMENTS
from warplab import benchmark

TIMED = ("ladder", "large_ladder", "shapes")


def ladder_table(result: dict[str, Any]) -> str:
    """`measurements.ladder` as text."""
    headers = ("kernel", "ms", "TFLOP/s", "of cuBLAS", "of the FMA peak", "error", "right")
    rows = [
        (
            f"{row['step']} {row['name']}" if row["step"] else row["name"],
            row["seconds"] * 1e3,
            *(row[key] for key in ("tflops", "ratio_to_cublas", "ratio_to_peak", "relative_error", "correct")),
        )
        for row in result["rows"]
    ]
    return benchmark.table(headers, rows)


def shapes_table(rows: list[dict[str, Any]]) -> str:
    """`measurements.shapes` as text; rates in TFLOP/s."""
    headers = ("m × n × k", "cuBLAS", "warp_tile", "tuned", "of cuBLAS", "tiles", "right")
    return benchmark.table(
        headers,
        [
            (
                " × ".join(map(str, row["shape"])),
                *(row[name]["tflops"] for name in ("cublas", "warp_tile", "tuned")),
                *(row[key] for key in ("ratio_to_cublas", "tiles", "correct")),
            )
            for row in rows
        ],
    )


def figures(values: dict[str, Any]) -> dict[str, Any]:
    """What the final line holds."""
    found: dict[str, Any] = {"correct": correct(values)}
    for key in ("ladder", "large_ladder"):
        table = values[key]
        found[f"{table['side']}"] = {
            "fma_peak_tflops": table["peak_tflops"],
            "tflops": {row["name"]: row["tflops"] for row in table["rows"]},
            "ratio_to_cublas": {row["name"]: row["ratio_to_cublas"] for row in table["rows"] if row["step"]},
        }
    found["ratio_to_cublas_by_shape"] = {
        "x".join(map(str, row["shape"])): row["ratio_to_cublas"] for row in values["shapes"]
    }
    return found


def correct(values: dict[str, Any]) -> bool:
    """Whether every product was right."""
    return all(row["correct"] for key in ("ladder", "large_ladder") for row in values[key]["rows"]) and all(
        row["correct"] for row in values["shapes"]
    )


def main() -> int:
    """Returns the exit code: 0, 1 when a product was wrong; ends with 2 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m kernels.matmul.benchmark", description=__doc__)
    parser.add_argument("--record", action="store_true", help="measure everything and write recordings.json")
    arguments = parser.parse_args()
    benchmark.require_gpu()
    if arguments.record:
        values = recordings.record(MEASUREMENTS)
    else:
        values = {key: benchmark.rounded(MEASUREMENTS[key]()) for key in TIMED}
    for key in ("ladder", "large_ladder"):
        side = values[key]["side"]
        print(f"\n{side} × {side} × {side}; peak of fused multiply-adds {values[key]['peak_tflops']:.1f} TFLOP/s")
        print(ladder_table(values[key]))
    print("\nTFLOP/s by shape")
    print(shapes_table(values["shapes"]))
    print(benchmark.last_line("matmul", figures(values)))
    return 0 if correct(values) else 1


if __name__ == "__main__":
    raise SystemExit(main())
