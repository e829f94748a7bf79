"""Pictures of lab 04's measurements. Each takes what `measurements` returns, wrapped by `recordings.measure`, and
carries the measurement's label: measured or recorded, on which GPU, when.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from warplab.charts import BLUE, DPI, FONT, GREEN, GREY, ORANGE, closed, finish
from warplab.recordings import Measurement

SECTOR = 32  # bytes
LEVELS = {"dram": "device memory", "l2": "L2 cache", "l1": "L1 cache"}


def draw_ladder(m: Measurement) -> Figure:
    """TFLOP/s of each step from `measurements.ladder`, beside cuBLAS and the peak of fused multiply-adds."""
    rows = sorted(m.value["rows"], key=lambda row: row["step"] or 99)
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(8, 3.4), dpi=DPI)
        for place, row in enumerate(rows):
            ax.barh(place, row["tflops"], color=BLUE if row["step"] else GREY, height=0.68)
            text = f" {row['tflops']:.3g}" + (f", {row['ratio_to_cublas']:.2f} of cuBLAS" if row["step"] else "")
            ax.text(row["tflops"], place, text, va="center")
        ax.axvline(m.value["peak_tflops"], color="black", lw=1, ls="--")
        ax.annotate(
            "FMA peak",
            (m.value["peak_tflops"], -0.6),
            (0, 2),
            textcoords="offset points",
            ha="center",
            annotation_clip=False,
        )
        ax.set_yticks(range(len(rows)), [f"{row['step']} {row['name']}" if row["step"] else "cuBLAS" for row in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, 1.2 * m.value["peak_tflops"]), xlabel="TFLOP/s")
        finish(figure, ax, f"{_cube(m.value['side'])}, float32, {m.label}", pad=16)
    return closed(figure)


def intensities(traffic: list[dict[str, Any]], side: int) -> dict[str, dict[str, float]]:
    """FLOP a byte of each step at each level of memory in LEVELS, from `measurements.traffic`."""
    operations = 2 * side**3
    return {
        row["name"]: {
            "dram": operations / row["dram_bytes"],
            "l2": operations / row["l2_bytes"],
            "l1": operations / (SECTOR * (row["global_load_sectors"] + row["global_store_sectors"])),
        }
        for row in traffic
    }


def draw_roofline(ladder: Measurement, traffic: Measurement, copy_gbps: Measurement, level: str = "dram") -> Figure:
    """The roofline of the GPU, measured: copy bandwidth and FMA peak, with each step as a point.

    `level`: whose traffic gives the intensity: "dram", "l2" or "l1" (global memory as the kernel asks for it). The
    slope is the device memory's: above it lie steps whose bytes come from a cache. ValueError for another level, or
    where the traffic was not recorded.
    """
    if level not in LEVELS:
        raise ValueError(f"there is no level {level!r}; choose one of {', '.join(LEVELS)}")
    if traffic.value is None:
        raise ValueError("the traffic was measured on a machine without ncu: there are no intensities to draw")
    side, peak, slope = ladder.value["side"], ladder.value["peak_tflops"], copy_gbps.value / 1e3
    points = intensities(traffic.value, side)
    rates = {row["name"]: row["tflops"] for row in ladder.value["rows"]}
    steps = {row["name"]: row["step"] for row in ladder.value["rows"]}
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.5, 4), dpi=DPI)
        low = min(1.0, *(p[level] for p in points.values())) / 2
        high = 2 * max(peak / slope, *(p[level] for p in points.values()))
        x = np.geomspace(low, high, 200)
        ax.plot(x, np.minimum(slope * x, peak), color="black", lw=1)
        for name, rate in rates.items():
            colour = BLUE if steps[name] else ORANGE
            place = points[name][level], rate
            ax.plot(*place, "o", color=colour, ms=5)
            ax.annotate(steps[name] or "cuBLAS", place, (5, 3), textcoords="offset points", fontsize=7.5, color=colour)
        key = "\n".join(f"{number} {name}" for name, number in steps.items() if number)
        ax.text(0.99, 0.03, key, transform=ax.transAxes, ha="right", va="bottom", fontsize=7.5, color=BLUE)
        ax.annotate(f"FMA peak {peak:.1f} TFLOP/s", (low, peak), (4, 3), textcoords="offset points", fontsize=8)
        ax.annotate(
            f"copy {copy_gbps.value:.0f} GB/s",
            (low * 1.5, slope * low * 1.5),
            (-2, 6),
            textcoords="offset points",
            fontsize=8,
        )
        ax.set(xscale="log", yscale="log", xlim=(low, 4 * high))
        ax.set(xlabel=f"FLOP a byte of {LEVELS[level]} traffic", ylabel="TFLOP/s")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        finish(figure, ax, f"{_cube(side)}, float32, {ladder.label}")
    return closed(figure)


def draw_shapes(m: Measurement) -> Figure:
    """Ratio to cuBLAS by shape, from `measurements.shapes`: fixed tiles (step 7) and tiles by shape (step 9)."""
    rows = m.value
    places = np.arange(len(rows))
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(8, 4.2), dpi=DPI)
        for name, colour, shift in (("warp_tile", GREEN, -0.2), ("tuned", BLUE, 0.2)):
            ratios = [row["cublas"]["seconds"] / row[name]["seconds"] for row in rows]
            ax.barh(places + shift, ratios, height=0.38, color=colour, label=name)
        ax.axvline(1, color="black", lw=1, ls="--")
        ax.set_yticks(places, [" × ".join(map(str, row["shape"])) for row in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="speed, cuBLAS = 1", ylabel="m × n × k")
        ax.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.22))  # beside the shortest bars
        finish(figure, ax, m.label)
    return closed(figure)


def _cube(side: int) -> str:
    return f"{side} × {side} × {side}"
