"""The picture of a kernel's source with the cost of each line beside it, as in a profiler's source view."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.launch.profile_queries import (
    bank_conflicts,
    one_launch,
    sectors,
    sectors_per_request,
    shorten,
    source_lines,
)
from warplab.simulator.count.counters import COUNTERS, Counts, LaunchProfile
from warplab.text.tables import count, percent, ratio

MOST_ROWS = 20
HEAT_COLUMNS = ("warp_instructions", "sectors", "sectors_per_request")
MOST_COLUMNS = 6
DARKEST = 0.55  # of the colour map: black numbers stay legible
TOP, ROW, CELL = 2.2, 0.19, 11.0  # rows above the source, inches per row, width of a column of 100


class Metric(NamedTuple):
    """A column: its label, its value for some `Counts`, how to write it. `adds`: whether values of lines add up."""

    label: str
    value: Callable[[Counts], Any]
    form: Callable[[Any], str]
    adds: bool = True


DERIVED_METRICS = {
    "sectors": Metric("sectors", sectors, count),
    "sectors_per_request": Metric("sectors\nper request", sectors_per_request, ratio, adds=False),
    "bank_conflicts": Metric("bank\nconflicts", bank_conflicts, count),
    "warp_efficiency": Metric("warp\nefficiency", lambda c: c.warp_efficiency, percent, adds=False),
}


def heat_map(profile: object, metric: str | Sequence[str] = "warp_instructions") -> Figure:
    """Draw the kernel's source with the cost of each line beside it, as a profiler's source view does.

    `metric`: one name or several: a field of `Counts` ("warp_instructions", "global_load_sectors", ...), or "sectors",
    "sectors_per_request", "bank_conflicts", "warp_efficiency". A single name is shown before the usual three, and
    bank conflicts after them where the kernel uses shared memory. The colour is a line's share of the whole launch in
    that column, on one scale for the figure; ratios, which do not add up, have no colour.
    Raises ValueError for an unknown metric, more than six of them, and for a launch without counts by line.
    """
    launch, title = one_launch(profile)
    usual = [*HEAT_COLUMNS, *["bank_conflicts"] * (bank_conflicts(launch.counts) is not None)]
    names = [metric, *(n for n in usual if n != metric)] if isinstance(metric, str) else list(metric)
    if not 1 <= len(names) <= MOST_COLUMNS:
        raise ValueError(f"{len(names)} metrics; name one to {MOST_COLUMNS}")
    columns = [_metric(name) for name in names]
    rows = _source_rows(launch)
    if not rows:
        raise ValueError(
            f"the launch of {launch.kernel} has no counts by source line; compile the kernel with line information"
        )

    with plt.rc_context(LAUNCH_FONT):
        bottom = 1.6 if any(column.adds for column in columns) else 0
        figure, ax = plt.subplots(figsize=(9, 0.45 + ROW * (len(rows) + TOP + bottom)), dpi=LAUNCH_DPI)
        left = 100 - CELL * len(columns)
        characters = int((left - 6) / 0.805)
        ax.set(xlim=(0, 100), ylim=(len(rows) + bottom, -TOP))
        ax.axis("off")
        figure.subplots_adjust(0.01, 0.02, 0.99, 0.98)
        ax.text(0, -TOP + 0.1, title, va="top", weight="bold")
        for c, column in enumerate(columns):
            _draw_column(ax, left + c * CELL, column, [counts for _, _, counts in rows], list(launch.lines.values()))
        if bottom:
            _draw_scale(ax, len(rows) + 0.75)
        for r, (number, code, _) in enumerate(rows):
            for x, text, style in ((3.5, number, {"ha": "right", "color": GREY}), (5, shorten(code, characters), {})):
                ax.text(x, r + 0.53, text, style, family="monospace", va="center", fontsize=8.5, parse_math=False)
    most = max(launch.lines, key=lambda place: launch.lines[place].warp_instructions)
    executed = launch.lines[most].warp_instructions
    share = f"{count(executed)} of {count(launch.counts.warp_instructions)} warp instructions"
    return closed(figure, f"most in line {most[1]}: {share}")


def _draw_column(ax: Axes, x: float, column: Metric, rows: list[Counts | None], every: list[Counts]) -> None:
    """Draw one column from `x` on. `every`: the counts of all lines, whose sum a colour is a share of."""
    for up, part in enumerate(reversed(column.label.split("\n"))):
        ax.text(x + CELL / 2, -0.35 - 0.72 * up, part, ha="center", va="baseline", color=GREY)
    total = sum(column.value(counts) or 0 for counts in every) if column.adds else 0
    for r, counts in enumerate(rows):
        value = None if counts is None else column.value(counts)
        # The 0 of a line that touches shared memory without conflict is news, those of other counters are not.
        if value is None or not (value or column.value is bank_conflicts):
            continue
        if total and value:
            box = Rectangle((x + 0.3, r + 0.04), CELL - 0.6, 0.92, color=_colour(value / total), lw=0)
            ax.add_patch(box)
        ax.text(x + CELL - 1, r + 0.53, column.form(value), ha="right", va="center", fontsize=8.5)


def _colour(share: float) -> tuple[float, float, float, float]:
    return plt.get_cmap("YlOrBr")(DARKEST * share)


def _draw_scale(ax: Axes, y: float) -> None:
    """Draw what the colours mean: the share of a column's sum, from 0 to 100 %."""
    left, right = 77.0, 93.5
    strip = np.array([[_colour(share) for share in np.linspace(0, 1, 64)]])
    ax.imshow(strip, extent=(left, right, y + 0.8, y), aspect="auto", zorder=1)
    ax.set_autoscale_on(False)
    style: dict[str, Any] = {"va": "center", "color": GREY, "fontsize": 8.5}
    ax.text(left - 0.8, y + 0.4, "share of the launch, by line:  0", ha="right", **style)
    ax.text(right + 0.8, y + 0.4, "100 %", ha="left", **style)


def _metric(name: str) -> Metric:
    """Return the column of `heat_map` that has this name."""
    if name in DERIVED_METRICS:
        return DERIVED_METRICS[name]
    labels = {counter.name: counter.label for counter in COUNTERS}
    if name not in labels:
        raise ValueError(f"no metric is named {name!r}; choose one of {', '.join([*DERIVED_METRICS, *labels])}")
    return Metric(labels[name].replace(" ", "\n", 1), lambda counts: getattr(counts, name), count)


def _source_rows(launch: LaunchProfile) -> list[tuple[str, str, Counts | None]]:
    """List (line number, source text, counts or None) from the first to the last line that ran, long gaps cut."""
    rows: list[tuple[str, str, Counts | None]] = []
    files = sorted({file for file, line in launch.lines if line})
    for file in files:
        counted = {line: counts for (f, line), counts in launch.lines.items() if f == file and line}
        numbers = list(range(min(counted), max(counted) + 1))
        code = source_lines(launch, file, numbers)
        if len(numbers) > MOST_ROWS:
            numbers = sorted(counted)
        rows += [("", file, None)] * (len(files) > 1)
        for before, number in zip([None, *numbers], numbers, strict=False):
            if before is not None and number > before + 1:
                rows.append(("", "⋮", None))
            rows.append((str(number), code[number], counted.get(number)))
    if len(rows) > MOST_ROWS:
        costs = {k: counts.warp_instructions for k, (_, _, counts) in enumerate(rows) if counts}
        heaviest = sorted(costs, key=lambda k: -costs[k])[: MOST_ROWS - 1]
        rows = [rows[k] for k in sorted(heaviest)] + [("", f"⋮ the {MOST_ROWS - 1} heaviest lines", None)]
    return rows
