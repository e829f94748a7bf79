"""The picture of a kernel's source with the cost of each line beside it, as in a profiler's source view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.launch.profile_queries import one_launch, sectors, sectors_per_request, shorten, source_lines
from warplab.simulator.count.counters import COUNTERS, Counts, LaunchProfile
from warplab.text.tables import count, percent, ratio

MOST_ROWS = 21
HEAT_COLUMNS = ("warp_instructions", "sectors", "sectors_per_request")
DERIVED_METRICS = {
    "sectors": ("sectors", sectors, count),
    "sectors_per_request": ("sectors\nper request", sectors_per_request, ratio),
    "warp_efficiency": ("warp\nefficiency", lambda c: c.warp_efficiency, percent),
}


def heat_map(profile: object, metric: str | Sequence[str] = "warp_instructions") -> Figure:
    """Draw the kernel's source with the cost of each line beside it, as a profiler's source view does.

    `metric`: one name or several: a field of `Counts` ("warp_instructions", "global_load_sectors", ...), or "sectors",
    "sectors_per_request", "warp_efficiency". A single name is shown before the usual three. The darkest cell of a
    column is its largest number. Raises ValueError for an unknown metric and for a launch without counts by line.
    """
    launch, title = one_launch(profile)
    names = [metric, *(n for n in HEAT_COLUMNS if n != metric)] if isinstance(metric, str) else list(metric)
    columns = [_metric(name) for name in names]
    rows = _source_rows(launch)
    if not rows:
        raise ValueError(
            f"the launch of {launch.kernel} has no counts by source line; compile the kernel with line information"
        )

    with plt.rc_context(LAUNCH_FONT):
        top, height = 2.2, 0.19
        figure, ax = plt.subplots(figsize=(9, 0.45 + height * (len(rows) + top)), dpi=LAUNCH_DPI)
        cell = 11.0
        left = 100 - cell * len(columns)
        characters = int((left - 6) / 0.805)
        ax.set(xlim=(0, 100), ylim=(len(rows), -top))
        ax.axis("off")
        figure.subplots_adjust(0.01, 0.02, 0.99, 0.98)
        ax.text(0, -top + 0.1, title, va="top", weight="bold")
        for c, (label, value, form) in enumerate(columns):
            x = left + c * cell
            for up, part in enumerate(reversed(label.split("\n"))):
                ax.text(x + cell / 2, -0.35 - 0.72 * up, part, ha="center", va="baseline", color=GREY)
            values = [None if counts is None else value(counts) for _, _, counts in rows]
            largest = max((v for v in values if v), default=0)
            for r, v in enumerate(values):
                if v:
                    colour = plt.get_cmap("YlOrBr")(0.55 * v / largest)
                    ax.add_patch(Rectangle((x + 0.3, r + 0.04), cell - 0.6, 0.92, color=colour, lw=0))
                    ax.text(x + cell - 1, r + 0.53, form(v), ha="right", va="center", fontsize=8.5)
        for r, (number, code, _) in enumerate(rows):
            for x, text, style in ((3.5, number, {"ha": "right", "color": GREY}), (5, shorten(code, characters), {})):
                ax.text(x, r + 0.53, text, style, family="monospace", va="center", fontsize=8.5, parse_math=False)
    return closed(figure)


def _metric(name: str) -> tuple[str, Callable[[Counts], Any], Callable[[Any], str]]:
    """Return label, function of Counts and number format of a column of `heat_map`."""
    if name in DERIVED_METRICS:
        return DERIVED_METRICS[name]
    labels = {counter.name: counter.label for counter in COUNTERS}
    if name not in labels:
        raise ValueError(f"no metric is named {name!r}; choose one of {', '.join([*DERIVED_METRICS, *labels])}")
    return labels[name].replace(" ", "\n", 1), lambda counts: getattr(counts, name), count


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
