"""Pictures of lab 11's streams and pipeline: timelines of engines or of streams, measured or in virtual time.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from kernels.serving.stream_races import Race
from kernels.serving.stream_timeline import Span, Timeline
from warplab.draw.style import AMBER, BLUE, DPI, FONT, GREEN, GREY, ORANGE, PALE, PINK, SKY, closed, finish

STREAMS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, "#7A5400", "#003F63")
ORDER = ("host", "NVDEC", "H2D", "copy", "SMs", "D2H")
HEIGHT = 0.76  # of a bar, in rows
MOST_SPANS = 1500


def draw_timeline(
    timeline: Timeline,
    title: str | None = None,
    *,
    rows: str = "engine",
    races: Sequence[Race] = (),
    until: float | None = None,
) -> Figure:
    """A bar per operation: engines (or streams, `rows="stream"`) down, milliseconds across, a colour per stream.

    Grey bars on the host's row: it works (filled) or waits (hatched). The operations of `races` are framed in red.
    `until`: the last millisecond to draw. ValueError for rows that do not exist or more than 1,500 bars.
    """
    if rows not in ("engine", "stream"):
        raise ValueError(f"rows is 'engine' or 'stream', not {rows!r}")
    end = timeline.end if until is None else until
    spans = [s for s in timeline.spans if s.engine and s.start <= end and s.end > s.start]
    if len(spans) > MOST_SPANS:
        raise ValueError(f"{len(spans)} bars would cover each other; draw a part with until=")
    names = _rows(spans, rows)
    streams = list(
        dict.fromkeys(s.operation.stream for s in timeline.spans if s.operation.kind not in ("host", "sync"))
    )
    colours = {stream: STREAMS[i % len(STREAMS)] for i, stream in enumerate(streams)}
    racing = {id(o) for race in races for o in (race.first, race.second)}
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(8.4, 0.95 + 0.42 * max(1, len(names))), dpi=DPI)
        for lane, span in _lanes(spans, rows):
            _bar(ax, span, names.index(_row(span, rows)), lane, colours, end, framed=id(span.operation) in racing)
        ax.set_yticks(range(len(names)), [str(name) for name in names])
        ax.set(xlim=(0, end or 1), ylim=(max(1, len(names)) - 0.5, -0.5), xlabel=f"ms ({timeline.source})")
        if rows == "engine" and len(streams) > 1:
            handles = [Patch(fc=colours[s], label=f"stream {s}") for s in streams[: len(STREAMS)]]
            ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False)
        finish(figure, ax, title or f"{timeline.end:.3g} ms")
        ax.grid(False, axis="y")
    return closed(figure)


def _row(span: Span, rows: str) -> Any:
    if rows == "engine" or span.engine == "host":
        return span.engine
    return f"stream {span.operation.stream}"


def _rows(spans: Sequence[Span], rows: str) -> list[Any]:
    found = dict.fromkeys(_row(span, rows) for span in spans)
    return [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]


def _lanes(spans: Sequence[Span], rows: str) -> list[tuple[tuple[int, int], Span]]:
    """Each span with (its lane, lanes of its row): bars of one row that overlap in time lie above each other."""
    placed: dict[Any, list[float]] = {}
    found = []
    for span in sorted(spans, key=lambda s: (s.start, s.operation.index)):
        ends = placed.setdefault(_row(span, rows), [])
        lane = next((i for i, end in enumerate(ends) if end <= span.start + 1e-9), len(ends))
        ends[lane : lane + 1] = [span.end]
        found.append((lane, span))
    return [((lane, len(placed[_row(span, rows)])), span) for lane, span in found]


def _bar(
    ax: Axes, span: Span, row: int, lane: tuple[int, int], colours: dict[Any, str], end: float, *, framed: bool
) -> None:
    o, height = span.operation, HEIGHT / lane[1]
    bottom = row - HEIGHT / 2 + lane[0] * height
    stop = min(span.end, end)
    colour = colours.get(o.stream, GREY) if o.kind not in ("host", "sync") else GREY
    box = Rectangle((span.start, bottom), stop - span.start, height, fc=colour, ec="white", lw=0.6)
    if o.kind == "sync":
        box.set(fc="white", ec=PALE, hatch="////")
    if framed:
        box.set(ec="#C00000", lw=2.0, zorder=3)
    ax.add_patch(box)
    if o.kind != "sync" and (stop - span.start) / max(end, 1e-12) * 100 > 1.25 * len(o.name) and lane[1] < 3:
        ax.text(
            (span.start + stop) / 2, bottom + height / 2, o.name, ha="center", va="center", color="white", fontsize=7
        )
