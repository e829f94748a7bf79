"""The picture of a kernel's source: each line beside what it cost, as in a profiler's source view."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.accesses import FONT
from warplab.draw.style import closed
from warplab.launch.reading import one_launch, sectors, sectors_per_request, shorten, source_lines
from warplab.simulator.count.counters import COUNTERS, Counts, LaunchProfile
from warplab.text.tables import count, percent, ratio

GREY, PALE = "#6B6B6B", "#EDEDED"


MOST_ROWS = 21


DPI = 100


HEAT_COLUMNS = ("warp_instructions", "sectors", "sectors_per_request")


DERIVED_METRICS = {
    "sectors": ("sectors", sectors, count),
    "sectors_per_request": ("sectors\na request", sectors_per_request, ratio),
    "warp_efficiency": ("warp\nefficiency", lambda c: c.warp_efficiency, percent),
}


def heat_map(profile: object, metric: str | Sequence[str] = "warp_instructions") -> Figure:
    """The kernel's source, each line beside what it cost, as in a profiler's source view.

    `metric`: one name or several: a field of `Counts` ("warp_instructions", "global_load_sectors", ...), or "sectors",
    "sectors_per_request", "warp_efficiency". One name is shown before the usual three. The darkest cell of a column
    is its largest number. Raises ValueError for an unknown metric and for a launch without counts by line.
    """
    launch, title = one_launch(profile)
    names = [metric, *(n for n in HEAT_COLUMNS if n != metric)] if isinstance(metric, str) else list(metric)
    columns = [_metric(name) for name in names]
    rows = _source_rows(launch)
    if not rows:
        raise ValueError(f"the launch of {launch.kernel} has no counts by source line; was it compiled with line info?")

    with plt.rc_context(FONT):
        top, height = 2.2, 0.19
        figure, ax = plt.subplots(figsize=(9, 0.45 + height * (len(rows) + top)), dpi=DPI)
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
            mono = {"family": "monospace", "va": "center", "fontsize": 8.5, "parse_math": False}
            ax.text(3.5, r + 0.53, number, ha="right", color=GREY, **mono)
            ax.text(5, r + 0.53, shorten(code, characters), **mono)
    return closed(figure)


def _metric(name: str) -> tuple:
    """Label, function of Counts and format of a column of `heat_map`."""
    if name in DERIVED_METRICS:
        return DERIVED_METRICS[name]
    labels = {counter.name: counter.label for counter in COUNTERS}
    if name not in labels:
        raise ValueError(f"no metric named {name!r}; the known ones are {', '.join([*DERIVED_METRICS, *labels])}")
    return labels[name].replace(" ", "\n", 1), lambda counts: getattr(counts, name), count


def _source_rows(launch: LaunchProfile) -> list[tuple[str, str, Counts | None]]:
    """(line number, source text, counts or None) from the first to the last line that ran; gaps of long code cut."""
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
        heavy = sorted((r for r in rows if r[2]), key=lambda r: -r[2].warp_instructions)[: MOST_ROWS - 1]
        rows = [row for row in rows if row in heavy] + [("", f"⋮ the {MOST_ROWS - 1} heaviest lines", None)]
    return rows
