"""Lab 05's benchmark: prints the ladder at 8192³ and 4096³ and products by shape, beside cuBLAS, cuBLASLt and the peak
of the tensor cores, and one line of JSON.

`--record` writes what it measures to `recordings.json`. Without a GPU: exit code 2.
"""

from __future__ import annotations

import argparse
from typing import Any

from kernels.tensor_core import recordings
from kernels.tensor_core.measurements import MEASUREMENTS
from warplab import benchmark

LADDERS = ("ladder", "small_ladder", "float32_ladder")


def ladder_table(result: dict[str, Any]) -> str:
    """`measurements.ladder` as text."""
    headers = ("kernel", "ms", "TFLOP/s", "of the library", "of the peak", "error", "right")
    rows = [
        (
            f"{row['step']} {row['name']}" if row["step"] else row["name"],
            row["seconds"] * 1e3,
            *(row[key] for key in ("tflops", "ratio_to_library", "ratio_to_peak", "relative_error", "correct")),
        )
        for row in result["rows"]
    ]
    return benchmark.table(headers, rows)


def shapes_table(rows: list[dict[str, Any]]) -> str:
    """`measurements.shapes` as text; rates in TFLOP/s."""
    timed = [name for name in rows[0] if isinstance(rows[0][name], dict)]
    return benchmark.table(
        ("m × n × k", *timed, "of cuBLASLt", "right"),
        [
            (
                " × ".join(map(str, row["shape"])),
                *(row[name]["tflops"] for name in timed),
                row["ratio_to_library"],
                row["correct"],
            )
            for row in rows
        ],
    )


def figures(values: dict[str, Any]) -> dict[str, Any]:
    """What the final line holds."""
    found: dict[str, Any] = {"correct": correct(values)}
    for key in LADDERS:
        table = values[key]
        found[f"{table['side']} {table['result']}"] = {
            "peaks_tflops": table["peaks_tflops"],
            "tflops": {row["name"]: row["tflops"] for row in table["rows"]},
            "ratio_to_library": {row["name"]: row["ratio_to_library"] for row in table["rows"] if row["step"]},
        }
    found["ratio_to_library_by_shape"] = {
        "x".join(map(str, row["shape"])): row["ratio_to_library"] for row in values["shapes"]
    }
    return found


def correct(values: dict[str, Any]) -> bool:
    """Whether every product was right."""
    return all(row["correct"] for key in LADDERS for row in values[key]["rows"]) and all(
        row["correct"] for row in values["shapes"]
    )


def main() -> int:
    """Returns the exit code: 0, 1 when a product was wrong; ends with 2 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m kernels.tensor_core.benchmark", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write recordings.json")
    arguments = parser.parse_args()
    benchmark.require_gpu()
    if arguments.record:
        values = recordings.record(MEASUREMENTS)
    else:
        values = {key: benchmark.rounded(function()) for key, function in MEASUREMENTS.items()}
    for key in LADDERS:
        side, result, peaks = (values[key][name] for name in ("side", "result", "peaks_tflops"))
        rates = ", ".join(f"{kind} {rate:.0f}" for kind, rate in peaks.items()) or "not measured on this GPU"
        print(f"\n{side} × {side} × {side}, results {result}; peak in TFLOP/s: {rates}")
        print(ladder_table(values[key]))
    print("\nTFLOP/s by shape, results float16")
    print(shapes_table(values["shapes"]))
    print(benchmark.last_line("tensor_core", figures(values)))
    return 0 if correct(values) else 1


if __name__ == "__main__":
    raise SystemExit(main())
