"""Pictures of lab 06's measurements. Each takes what `measurements` returns, wrapped by `recordings.measure`, and
carries the measurement's label: measured or recorded, on which GPU, when.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from kernels.convolution.cudnn import plan_table
from kernels.convolution.cudnn.plan_table import OK, Row
from kernels.convolution.lesson.treemap import Box, squarified
from kernels.convolution.measured import algorithms
from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import (
    AMBER,
    BLUE,
    DPI,
    FONT,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    bytes_axis,
    closed,
    duration_axis,
    finish,
    ink,
    short,
)
from warplab.text.tables import duration, quantity

NO_WORKSPACE = 10  # bytes; where the logarithmic axis shows none
NEGLIGIBLE = 1000  # bytes of workspace
# Of `measured.algorithms.kind`, those that are drawn above others last.
ALGORITHMS = {"tensor cores": SKY, "multiply-adds": BLUE, "FFT": GREEN, "Winograd": ORANGE}
KINDS = {
    "convolution": BLUE,
    "batch norm": AMBER,
    "ReLU": GREEN,
    "addition": PINK,
    "pooling": SKY,
    "fully connected": ORANGE,
}
OTHERS = GREY
TREEMAP = Box(0, 0, 1.3, 1)


def draw_plans(m: Measurement, limit_bytes: int | None = None, table: Mapping[str, Any] | None = None) -> Figure:
    """Draw time against workspace, a mark per plan of one table: those that a limit may choose are joined by a line.

    `m.value`: a table of `measured.plans`; or `table`: one of those in `m.value`. `limit_bytes`: a limit to be drawn,
    with the plan that it chooses.
    """
    value = m.value if table is None else table
    able = [row for row in value["rows"] if row["status"] == OK]
    with chart(figsize=(7.8, 3.6)) as (figure, ax):
        for above, (name, colour) in enumerate(ALGORITHMS.items()):
            rows = [row for row in able if algorithms.kind(row) == name]
            places = [max(NO_WORKSPACE, row["workspace_bytes"]) for row in rows]
            style = {"color": colour, "ms": 4.5, "zorder": 2 + above / 10, "label": name if rows else None}
            ax.plot(places, [row["seconds"] for row in rows], "o", **style)
        steps = plan_table.frontier(able)
        _staircase(ax, steps, limit_bytes)
        first = plan_table.first_choice(able)
        _ring(ax, first, "D", "the heuristics' first choice")
        if limit_bytes is not None:
            chosen = plan_table.choose(able, limit_bytes)
            ax.axvline(limit_bytes, color="black", lw=1, ls="--")
            _ring(ax, chosen, "o", f"fastest within {_bytes(limit_bytes)}")
        ax.set(xscale="log", yscale="log", xlabel="workspace", ylabel="time")
        ticks = [NO_WORKSPACE, *(10.0**e for e in range(3, 10, 2))]
        bytes_axis(ax.xaxis)
        ax.set_xticks(ticks, ["none", *(_bytes(tick) for tick in ticks[1:])])
        ax.minorticks_off()
        _time_axis(ax)
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        finish(figure, ax, f"{value['layer']}, {value['dtype']} {value['layout']}\n{m.label}")
    return figure


def draw_gains(m: Measurement, groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Draw what workspace buys, layer by layer: speed of the fastest plan without it, where 1 is the fastest plan of
    all.

    `groups`: name -> tables of `measured.plans`, one for each layer, in one order. Beside a bar: what workspace the
    fastest plan takes. Less than a kilobyte counts as none.
    """
    layers = [table["layer"] for table in next(iter(groups.values()))]
    with chart(figsize=(7.8, 0.2 * len(layers) * len(groups) + 1.3)) as (figure, ax):
        for group, ((name, tables), colour) in enumerate(zip(groups.items(), (BLUE, SKY, ORANGE), strict=False)):
            for place, table in enumerate(tables):
                best, without = plan_table.choose(table["rows"]), plan_table.choose(table["rows"], NEGLIGIBLE)
                speed, y = best["seconds"] / without["seconds"], place + 0.27 * (group - (len(groups) - 1) / 2)
                ax.barh(y, speed, color=colour, height=0.25, label=name if place == 0 else None)
                size = _bytes(best["workspace_bytes"]) if best["workspace_bytes"] > NEGLIGIBLE else "none"
                ax.text(speed + 0.01, y, size, va="center", fontsize=6.5)
        ax.set_yticks(range(len(layers)), layers, fontsize=7.5)
        ax.set(ylim=(len(layers) - 0.4, -0.6), xlim=(0, 1.12), xlabel="speed without workspace, fastest plan = 1")
        ax.legend(
            frameon=False, loc="upper left", bbox_to_anchor=(1, 1), title="beside bars: workspace\nof the fastest"
        )
        finish(figure, ax, m.label)
    return figure


def draw_ratios(m: Measurement, title: str = "") -> Figure:
    """Draw the speed of the lab's kernels by layer, cuDNN's fastest plan = 1, from a table of `measured.ratios`."""
    rows = m.value["rows"]
    with chart(figsize=(7.8, 0.19 * len(rows) + 1.1)) as (figure, ax):
        for place, row in enumerate(rows):
            ax.barh(place, row["ratio"], color=BLUE if row["correct"] else ORANGE, height=0.7)
            behind = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}
            ax.text(row["ratio"] + 0.01, place, f"{row['ratio']:.2f}", va="center", fontsize=7, bbox=behind)
        ax.axvline(1, color="black", lw=1, ls="--", zorder=0.9)
        ax.set_yticks(range(len(rows)), [row["layer"] for row in rows], fontsize=7)
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="speed, cuDNN's fastest plan = 1")
        ax.set_xlim(0, 1.12 * max(1, *(row["ratio"] for row in rows)))
        mean = f"geometric mean {m.value['geometric_mean']:.2f}, least {m.value['least']:.2f}"
        finish(figure, ax, f"{title or m.value['pass']}, {m.value['dtype']} {m.value['layout']}: {mean}\n{m.label}")
    return figure


def draw_treemaps(
    parts: Mapping[str, Sequence[Mapping[str, Any]]], label: str, kinds: Mapping[str, str] | None = None
) -> Figure:
    """Draw a network's time by layer, a panel per part: areas are shares of the part's time, colours kinds of layer.

    `parts`: title -> rows with `layer`, `kind`, `seconds` of one such layer and `count`, how often it occurs. `kinds`:
    kind -> colour; others are grey.
    """
    kinds = KINDS if kinds is None else kinds
    with chart(1, len(parts), figsize=(4.2 * len(parts), 4), squeeze=False, layout="constrained") as (figure, axes):
        seen = set()
        for ax, (title, rows) in zip(axes[0], parts.items(), strict=True):
            _treemap(ax, rows, kinds)
            seen |= {row["kind"] for row in rows}
            total = sum(row["seconds"] * row["count"] for row in rows)
            ax.set_title(f"{title}: {duration(total)}", loc="left", weight="bold")
        handles = [Patch(color=colour, label=kind) for kind, colour in kinds.items() if kind in seen]
        rest = sorted(seen - set(kinds))
        handles += [Patch(color=OTHERS, label=", ".join(rest))] if rest else []
        figure.legend(handles=handles, ncols=4, frameon=False, loc="outside lower left", handlelength=1.1, title=label)
    return figure


def draw_algorithms(m: Measurement, layer: int = 0) -> Figure:
    """Draw the time of each algorithm on one layer, from `measured.algorithms`, with its error against float64 and
    workspace.

    `layer`: its place in `m.value`. Dark: the lab's kernels; light: the fastest of cuDNN's plans of a kind.
    """
    value = m.value["layers"][layer]
    rows = sorted(value["rows"], key=lambda row: (row["dtype"], row["seconds"]), reverse=True)
    with chart(figsize=(7.8, 0.2 * len(rows) + 1.1)) as (figure, ax):
        for place, row in enumerate(rows):
            shades = (BLUE, SKY) if row["dtype"] == "float32" else (ORANGE, AMBER)
            ax.plot(row["seconds"], place, "o", color=shades[row["by"] != "lab"], ms=6)
            size = "no workspace" if row["workspace_bytes"] < NEGLIGIBLE else _bytes(row["workspace_bytes"])
            text = f"  {short(duration(row['seconds']))}, error {row['relative_error']:.0e}, {size}"
            ax.text(row["seconds"], place, text, va="center", fontsize=7.5)
        names = [row["algorithm"] if row["by"] == "lab" else f"cuDNN, {row['algorithm']}" for row in rows]
        ax.set_yticks(range(len(rows)), names, fontsize=7.5)
        seconds = [row["seconds"] for row in rows]
        ax.set(xscale="log", xlabel="time", xlim=(min(seconds) / 1.5, 30 * max(seconds)))
        ticks = [10.0**e for e in range(-6, 0) if min(seconds) / 1.5 <= 10.0**e <= 5 * max(seconds)]
        ax.set_xticks(ticks)
        ax.minorticks_off()
        duration_axis(ax.xaxis)
        handles = [Patch(color=BLUE, label="float32 NCHW"), Patch(color=ORANGE, label="float16 NHWC")]
        ax.legend(handles=handles, frameon=False, loc="upper right", title="light: cuDNN")
        finish(figure, ax, f"{value['layer']}\n{m.label}")
    return figure


def draw_lstm(m: Measurement, *places: int) -> Figure:
    """Draw the time per step of an LSTM layer, forward, from `measured.rnn`: by algorithm and arithmetic, a panel per
    size.

    `places`: of the cases in `m.value`; none stands for all.
    """
    cases = [m.value["cases"][place] for place in places] or m.value["cases"]
    with plt.rc_context(FONT):
        most = max(len(case["rows"]) for case in cases)
        figure, axes = plt.subplots(
            len(cases), 1, figsize=(7.8, len(cases) * (0.2 * most + 0.75)), dpi=DPI, squeeze=False
        )
        for ax, case in zip(axes[:, 0], cases, strict=True):
            rows = sorted(case["rows"], key=lambda row: row["seconds"])
            for place, row in enumerate(rows):
                each = row["seconds"] / case["steps"]
                ax.barh(place, each, color=BLUE if row["by"] == "lab" else GREY, height=0.7)
                ax.text(each, place, f" {short(duration(each))}", va="center", fontsize=7)
            names = [f"{row['by']}, {row['algorithm'].lower()}, {_arithmetic(row)}" for row in rows]
            ax.set_yticks(range(len(rows)), names, fontsize=7)
            ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, 1.12 * rows[-1]["seconds"] / case["steps"]))
            duration_axis(ax.xaxis)
            size = "{steps} steps, batch {batch}, {inputs} inputs, {hidden} hidden units".format(**case)
            finish(figure, ax, f"time per step: {size}" + (f"\n{m.label}" if case is cases[0] else ""))
    return closed(figure)


def _arithmetic(row: Mapping[str, Any]) -> str:
    if row["dtype"] == "float16":
        return "float16"
    return "TF32" if row["tensor_cores"] else "float32"


def _treemap(ax: Axes, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> None:
    of_kind: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        of_kind.setdefault(row["kind"], []).append((row["seconds"] * row["count"], row["layer"]))
    order = sorted(of_kind, key=lambda kind: -sum(seconds for seconds, _ in of_kind[kind]))
    totals = [sum(seconds for seconds, _ in of_kind[kind]) for kind in order]
    for kind, whole, total in zip(order, squarified(totals, TREEMAP), totals, strict=True):
        entries = sorted(of_kind[kind], reverse=True)
        for box, (_, layer) in zip(squarified([seconds for seconds, _ in entries], whole), entries, strict=True):
            colour = kinds.get(kind, OTHERS)
            ax.add_patch(Rectangle((box.x, box.y), box.width, box.height, fc=colour, ec="white", lw=0.7))
            under_title = box.y + box.height > whole.y + whole.height - 0.01 and box.x < whole.x + 0.4
            if kind == "convolution" and box.width > 0.17 and box.height > (0.24 if under_title else 0.09):
                name = layer.split(",")[0].replace(" ", "\n", 1)
                place = box.x + box.width / 2, box.y + box.height / 2
                ax.text(*place, name, ha="center", va="center", fontsize=5.5, color=ink(colour), linespacing=1)
        ax.add_patch(Rectangle((whole.x, whole.y), whole.width, whole.height, fc="none", ec="black", lw=1))
        if whole.height > 0.08 and whole.width > 0.2:
            behind = {"boxstyle": "square,pad=0.15", "fc": "white", "ec": "none"}
            style = {"va": "top", "fontsize": 7.5, "weight": "bold", "bbox": behind}
            ax.text(whole.x + 0.02, whole.y + whole.height - 0.025, f"{kind} {total / sum(totals):.0%}", **style)
    ax.set(xlim=(0, TREEMAP.width), ylim=(0, TREEMAP.height), xticks=[], yticks=[], aspect="equal")


def _staircase(ax: Axes, steps: Sequence[Row], limit_bytes: int | None) -> None:
    x = [max(NO_WORKSPACE, row["workspace_bytes"]) for row in steps]
    y = [row["seconds"] for row in steps]
    ax.step([*x, max(x[-1], limit_bytes or 0, 1e9)], [*y, y[-1]], where="post", color="black", lw=0.8, zorder=0.9)


def _ring(ax: Axes, row: Row, marker: str, label: str) -> None:
    place = max(NO_WORKSPACE, row["workspace_bytes"])
    ax.plot(place, row["seconds"], marker, mfc="none", mec="black", ms=9, ls="none", label=label)


def _time_axis(ax: Axes) -> None:
    """Set ticks at 1, 2 and 5 times the powers of ten, in the unit that suits each."""
    low, high = ax.get_ylim()
    ticks = [k * 10.0**e for e in range(-7, 2) for k in (1, 2, 5) if low <= k * 10.0**e <= high]
    ax.set_yticks(ticks)
    ax.set_yticks([], minor=True)
    duration_axis(ax.yaxis)


def _bytes(count: int) -> str:
    return short(quantity(count, "B"))
