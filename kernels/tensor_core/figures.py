"""Pictures of lab 05's ladder. Each takes what `measurements` returns, wrapped by `recordings.measure`, and carries the
measurement's label: measured or recorded, on which GPU, when.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

import numpy as np
from matplotlib.figure import Figure

from warpcourse.bench.charts import chart
from warpcourse.bench.products import NAMES
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import BLUE, GREEN, GREY, finish

COLOURS = {"mma_stages": GREEN, "wgmma_persistent": BLUE}


def draw_ladder(m: Measurement) -> Figure:
    """Draw TFLOP/s of each step from `measurements.ladder`, beside the libraries and the peaks of the tensor cores."""
    rows = sorted(m.value["rows"], key=lambda row: row["step"] or 99)
    peaks = m.value["peaks_tflops"]
    most = max(*peaks.values(), *(row["tflops"] for row in rows)) if peaks else max(row["tflops"] for row in rows)
    with chart(figsize=(8, 3.1)) as (figure, ax):
        for place, row in enumerate(rows):
            ax.barh(place, row["tflops"], color=BLUE if row["step"] else GREY, height=0.68)
            text = f"{row['tflops']:.3g}" + (f", {row['ratio_to_library']:.2f} of the library" if row["step"] else "")
            # In a column of their own, which neither bars nor the lines of the peaks reach.
            ax.annotate(
                text, (1, place), (6, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center"
            )
        for kind, rate in peaks.items():
            ax.axvline(rate, color="black", lw=1, ls="--", zorder=0.9)
            ax.annotate(
                f"{kind} peak", (rate, -0.6), (0, 2), textcoords="offset points", ha="center", annotation_clip=False
            )
        names = [f"{row['step']} {row['name']}" if row["step"] else NAMES[row["name"]] for row in rows]
        ax.set_yticks(range(len(rows)), names)
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, 1.05 * most), xlabel="TFLOP/s")
        side = m.value["side"]
        finish(figure, ax, f"{side} × {side} × {side}, {m.value['result']} results, {m.label}", pad=16)
    return figure


def draw_shapes(m: Measurement) -> Figure:
    """Draw the speed by shape beside cuBLASLt, from `measurements.shapes`: the steps with mma.sync and with wgmma."""
    rows = m.value
    places, timed = np.arange(len(rows)), [name for name in COLOURS if name in rows[0]]
    with chart(figsize=(8, 3.6)) as (figure, ax):
        for i, name in enumerate(timed):
            ratios = [row["cublaslt"]["seconds"] / row[name]["seconds"] for row in rows]
            shift = 0.4 * (i - (len(timed) - 1) / 2)
            ax.barh(places + shift, ratios, height=0.38, color=COLOURS[name], label=name)
        ax.axvline(1, color="black", lw=1, ls="--")
        ax.set_yticks(places, [" × ".join(map(str, row["shape"])) for row in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="speed, cuBLASLt = 1", ylabel="m × n × k")
        ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
        finish(figure, ax, f"Products by shape, float16, {m.label}", pad=26)  # above the legend
    return figure
