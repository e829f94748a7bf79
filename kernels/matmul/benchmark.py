"""Lab 04's benchmark: prints the ladder at 4096³ and 8192³ and products by shape, beside cuBLAS, and one line of JSON.

`--record` measures all that the notebook shows and writes `recordings.json`. Without a GPU: exit code 2.
"""

from __future__ import annotations

from typing import Any

from kernels.matmul import recordings
from kernels.matmul.measurements import MEASUREMENTS
from kernels.products import Ladders


def _heading(table: dict[str, Any]) -> str:
    side, peak = table["side"], table["peak_tflops"]
    return f"{side} × {side} × {side}; peak of fused multiply-adds {peak:.1f} TFLOP/s"


LADDERS = Ladders(
    recordings,
    MEASUREMENTS,
    keys=("ladder", "large_ladder"),
    ratio="ratio_to_cublas",
    library="cuBLAS",
    peak="the FMA peak",
    heading=_heading,
    shapes_heading="TFLOP/s by shape; tiles: what step 9 is compiled for, as in tiles.py",
)
text, figures, correct = LADDERS.text, LADDERS.figures, LADDERS.correct

if __name__ == "__main__":
    raise SystemExit(LADDERS.main(__doc__))
