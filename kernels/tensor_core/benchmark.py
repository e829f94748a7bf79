"""Lab 05's benchmark: prints the ladder at 8192³ and 4096³ and products by shape, beside cuBLAS, cuBLASLt and the peak
of the tensor cores, and one line of JSON.

`--record` writes what it measures to `recordings.json`. Without a GPU: exit code 2.
"""

from __future__ import annotations

from typing import Any

from kernels.products import Ladders
from kernels.tensor_core import recordings
from kernels.tensor_core.measurements import MEASUREMENTS


def _heading(table: dict[str, Any]) -> str:
    side, peaks = table["side"], table["peaks_tflops"]
    rates = ", ".join(f"{kind} {rate:.0f}" for kind, rate in peaks.items()) or "not measured on this GPU"
    return f"{side} × {side} × {side}, results {table['result']}; peak in TFLOP/s: {rates}"


LADDERS = Ladders(
    recordings,
    MEASUREMENTS,
    keys=("ladder", "small_ladder", "float32_ladder"),
    ratio="ratio_to_library",
    library="the library",
    peak="the wgmma peak",
    heading=_heading,
    shapes_heading="TFLOP/s by shape, results float16; the library is cuBLASLt",
)
text, figures, correct = LADDERS.text, LADDERS.figures, LADDERS.correct

if __name__ == "__main__":
    raise SystemExit(LADDERS.main(__doc__))
