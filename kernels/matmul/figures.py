"""Pictures of lab 04's measurements. Each takes what `measurements` returns, wrapped by `recordings.measure`, and
carries the measurement's label: measured or recorded, on which GPU, when. `draw_cards` and `draw_ratios` show what data
sheets and arithmetic say.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import BLUE, DPI, GREEN, GREY, ORANGE, PINK, closed, finish
from warplab.hardware.cards import Card

SECTOR = 32  # bytes
WARP = 32
LEVELS = {"dram": "device memory", "l2": "L2 cache", "l1": "L1 cache"}
FULL_PERCENT = 80  # from here on ncu's own advice calls a part of a multiprocessor well used, and its work too much
# What ncu says of the parts of a multiprocessor, in per cent of what each can do.
PARTS = {
    "lsu_data_percent": ("way to L1 and shared memory", BLUE),
    "issue_active_percent": ("instructions issued", ORANGE),
    "fma_pipe_percent": ("multiply-add units", GREEN),
}


def draw_ladder(m: Measurement) -> Figure:
    """Draw TFLOP/s of each step from `measurements.ladder`, beside cuBLAS and the peak of fused multiply-adds."""
    rows = sorted(m.value["rows"], key=lambda row: row["step"] or 99)
    with chart(figsize=(8, 3.4)) as (figure, ax):
        for place, row in enumerate(rows):
            ax.barh(place, row["tflops"], color=BLUE if row["step"] else GREY, height=0.68)
            text = f"{row['tflops']:.3g}" + (f", {row['ratio_to_cublas']:.2f} of cuBLAS" if row["step"] else "")
            behind = {"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none"}
            ax.annotate(text, (row["tflops"], place), (3, 0), textcoords="offset points", va="center", bbox=behind)
        ax.axvline(m.value["peak_tflops"], color="black", lw=1, ls="--", zorder=0.9)
        ax.annotate(
            "FMA peak",
            (m.value["peak_tflops"], -0.6),
            (0, 2),
            textcoords="offset points",
            ha="center",
            annotation_clip=False,
        )
        ax.set_yticks(range(len(rows)), [f"{row['step']} {row['name']}" if row["step"] else "cuBLAS" for row in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, 1.08 * m.value["peak_tflops"]), xlabel="TFLOP/s")
        finish(figure, ax, f"{_cube(m.value['side'])}, float32, {m.label}", pad=16)
    return figure


def intensities(traffic: list[dict[str, Any]], side: int) -> dict[str, dict[str, float]]:
    """Return FLOP per byte of each step at each level of memory in LEVELS, from `measurements.traffic`."""
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
    """Draw the roofline of the GPU, measured: copy bandwidth and FMA peak, with each step as a point.

    `level`: whose traffic gives the intensity: "dram", "l2" or "l1" (global memory as the kernel asks for it). The
    slope is the device memory's: above it lie steps whose bytes come from a cache. ValueError for another level, or
    where the traffic was not recorded.
    """
    if level not in LEVELS:
        raise ValueError(f"there is no level {level!r}; choose one of {', '.join(LEVELS)}")
    if traffic.value is None:
        raise ValueError("the traffic was measured on a machine without ncu: there are no intensities to draw")
    points = {name: p[level] for name, p in intensities(traffic.value, ladder.value["side"]).items()}
    return _roofline(
        ladder,
        points,
        slope=copy_gbps.value / 1e3,
        slope_text=f"copy {copy_gbps.value:.0f} GB/s",
        xlabel=f"FLOP per byte of {LEVELS[level]} traffic ({_source(traffic, ladder)})",
    )


def draw_pass_roofline(ladder: Measurement, passes: Mapping[str, float], cores: int) -> Figure:
    """Draw the roofline of the path to L1 and shared memory: one pass (wavefront) per clock in each multiprocessor.

    `passes`: step -> passes for one multiply-add of a whole warp; steps that are not in it are left out. `cores`: FP32
    cores of a multiprocessor. The clock is that at which the FMA peak was measured: in a clock a multiprocessor does
    cores / 32 such multiply-adds, or one pass.
    """
    a_pass = ladder.value["peak_tflops"] * WARP / cores  # TFLOP/s at one multiply-add of a warp a pass
    return _roofline(
        ladder,
        {name: 1 / number for name, number in passes.items()},
        slope=a_pass,
        slope_text="one pass per clock",
        xlabel="multiply-adds of a warp for each pass (simulator)",
    )


def _roofline(ladder: Measurement, points: Mapping[str, float], slope: float, slope_text: str, xlabel: str) -> Figure:
    """Draw `points`, step -> intensity, below the roof; `slope`: TFLOP/s at intensity 1."""
    peak = ladder.value["peak_tflops"]
    rows = [row for row in ladder.value["rows"] if row["name"] in points]
    with chart(figsize=(7.5, 4)) as (figure, ax):
        corner = peak / slope
        low = min(corner, *points.values()) / 4
        high = 2 * max(corner, *points.values())
        x = np.array([low, corner, 8 * high])
        ax.plot(x, np.minimum(slope * x, peak), color="black", lw=1)
        ax.set(xscale="log", yscale="log", xlim=(low, 4 * high), xlabel=xlabel, ylabel="TFLOP/s")
        ax.set_ylim(min(row["tflops"] for row in rows) / 2, 2 * peak)
        for row in rows:
            ax.plot(points[row["name"]], row["tflops"], "o", color=BLUE if row["step"] else ORANGE, ms=5)
        places = {str(row["step"] or "cuBLAS"): (points[row["name"]], row["tflops"]) for row in rows}
        for text, offset in _offsets(ax, places).items():
            colour, ha = ORANGE if text == "cuBLAS" else BLUE, "left" if offset[0] > 0 else "right"
            style = {"textcoords": "offset points", "fontsize": 7.5, "color": colour, "ha": ha, "va": "center"}
            ax.annotate(text, places[text], offset, **style)
        key = "\n".join(f"{row['step']} {row['name']}" for row in rows if row["step"])
        behind = {"boxstyle": "square,pad=0.2", "fc": "white", "ec": "none"}
        style = {"ha": "right", "va": "bottom", "fontsize": 7.5, "color": BLUE, "bbox": behind}
        ax.text(0.99, 0.03, key, transform=ax.transAxes, **style)
        small = {"textcoords": "offset points", "fontsize": 8}
        ax.annotate(f"FMA peak {peak:.1f} TFLOP/s", (corner, peak), (4, 4), **small)
        ax.annotate(slope_text, (np.sqrt(low * corner), slope * np.sqrt(low * corner)), (-5, 5), ha="right", **small)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        finish(figure, ax, f"{_cube(ladder.value['side'])}, float32, {ladder.label}")
    return figure


def _offsets(ax: Axes, places: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Return an offset in points for each point's name, at which it meets no other point and no other name."""
    points = {name: ax.transData.transform(place) for name, place in places.items()}
    taken = list(points.values())
    found = {}
    for name, point in points.items():
        ways = [(6, 4), (-6, 4), (6, -5), (-6, -5), (6, 11), (-6, 11), (6, -12), (-6, -12)]
        # Of a name some eight points wide, the middle.
        middles = [point + np.array((x + np.sign(x) * 3, y)) * DPI / 72 for x, y in ways]
        room = [min(np.hypot(*(middle - other)) for other in taken) for middle in middles]
        best = next((k for k, r in enumerate(room) if r > 9), int(np.argmax(room)))
        taken.append(middles[best])
        found[name] = ways[best]
    return found


def draw_limits(traffic: Measurement) -> Figure:
    """Draw how busy each step keeps the parts of a multiprocessor, from `measurements.traffic`: the full one is the
    limit.

    A dashed line stands at FULL_PERCENT. ValueError where the traffic was not recorded.
    """
    if traffic.value is None:
        raise ValueError("the traffic was measured on a machine without ncu: it is not known what was busy")
    rows = traffic.value
    places = np.arange(len(rows))
    with chart(figsize=(8, 4.6)) as (figure, ax):
        for number, (key, (label, colour)) in enumerate(PARTS.items()):
            values = [row[key] for row in rows]
            ax.barh(places + 0.27 * (number - 1), values, height=0.25, color=colour, label=label)
        names = [f"{k + 1} {row['name']}" if row["name"] != "cublas" else "cuBLAS" for k, row in enumerate(rows)]
        ax.set_yticks(places, names)
        ax.axvline(FULL_PERCENT, color="black", lw=1, ls="--", zorder=3)
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, 100), xlabel="busy, per cent (ncu)")
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.4, -0.12), ncols=len(PARTS))
        finish(figure, ax, f"The parts of a multiprocessor, {traffic.label}")
    return figure


def draw_cards(cards: Sequence[Card], marks: Mapping[str, float]) -> Figure:
    """Draw rooflines of cards, from their data sheets; `marks`: name -> intensity in FLOP per byte, as vertical
    lines."""
    x = np.geomspace(min(marks.values()) / 2, 2 * max(marks.values()), 400)
    with chart(figsize=(7.5, 3.4)) as (figure, ax):
        for card, colour in zip(cards, (GREY, BLUE, GREEN, ORANGE, PINK), strict=False):
            roof = np.minimum(card.bandwidth_gbs / 1e3 * x, card.fp32_tflops)
            ax.plot(x, roof, color=colour, lw=1.4, label=card.name)
        for name, intensity in marks.items():
            ax.axvline(intensity, color="black", lw=0.8, ls=":")
            style = {
                "rotation": 90,
                "ha": "right",
                "va": "bottom",
                "fontsize": 7.5,
                "xycoords": ("data", "axes fraction"),
            }
            ax.annotate(name, (intensity, 0.03), **style)
        lowest = min(card.bandwidth_gbs for card in cards) / 1e3 * x[0]
        ax.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(lowest / 40, None))  # room for the names below
        ax.set(xlabel="FLOP per byte", ylabel="TFLOP/s at most")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), reverse=True)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        finish(figure, ax, "FP32 peak and memory bandwidth of the data sheets")
    return figure


def draw_ratios(ratios: Mapping[int, float], lines: Mapping[str, float], ylabel: str) -> Figure:
    """Draw ratios by the side of a square matrix, as a notebook computed them, and `lines` across: name -> ratio."""
    with chart(figsize=(7.5, 3)) as (figure, ax):
        ax.step(list(ratios), list(ratios.values()), where="mid", color=BLUE, lw=1.2)
        for (name, value), colour in zip(lines.items(), (GREY, ORANGE, GREEN), strict=False):
            ax.axhline(value, color=colour, lw=1, ls="--")
            ax.annotate(
                name,
                (1, value),
                (3, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                color=colour,
            )
        ax.set(ylim=(0, 1.1 * max(*ratios.values(), *lines.values())), xlabel="rows and columns", ylabel=ylabel)
        finish(figure, ax, "Arithmetic, no measurement")
    told = [f"{name} {value:.2f}" for name, value in lines.items()]
    return closed(figure, f"{ylabel}: {', '.join(told)}; {min(ratios.values()):.2f} to {max(ratios.values()):.2f}")


def _source(m: Measurement, beside: Measurement) -> str:
    """Return where a figure's second measurement is from, short where it is from the same GPU as the first."""
    return "ncu" if m.device == beside.device else f"ncu, {m.label}"


def draw_shapes(m: Measurement) -> Figure:
    """Draw ratio to cuBLAS by shape, from `measurements.shapes`: fixed tiles (step 7) and tiles by shape (step 9)."""
    rows = m.value
    places = np.arange(len(rows))
    with chart(figsize=(8, 4.2)) as (figure, ax):
        kinds = (("warp_tile", "7 warp_tile", GREEN, -0.2), ("tuned", "9 tuned", BLUE, 0.2))
        for name, label, colour, shift in kinds:
            ratios = [row["cublas"]["seconds"] / row[name]["seconds"] for row in rows]
            ax.barh(places + shift, ratios, height=0.38, color=colour, label=label)
        ax.axvline(1, color="black", lw=1, ls="--")
        ax.set_yticks(places, [" × ".join(map(str, row["shape"])) for row in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="speed, cuBLAS = 1", ylabel="m × n × k")
        ax.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.22))  # beside the shortest bars
        finish(figure, ax, f"Products by shape, float32, {m.label}")
    return figure


def _cube(side: int) -> str:
    return f"{side} × {side} × {side}"
