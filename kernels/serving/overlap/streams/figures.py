"""Pictures of lab 11's streams and pipeline: timelines of engines or of streams, measured or in virtual time."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from kernels.serving.overlap.streams.chunked import WAYS, chunked
from kernels.serving.overlap.streams.execution import DECODE_CALL
from kernels.serving.overlap.streams.hazards import Race
from kernels.serving.overlap.streams.schedule import Kind, Operation
from kernels.serving.overlap.streams.timeline import Span, Timeline, simulate
from warpcourse.bench.charts import COLOURS, chart
from warplab.draw.style import BLUE, GREY, ORANGE, PALE, finish, ink

STREAMS = (*COLOURS, "#7A5400", "#003F63")
ORDER = ("host", "NVDEC", DECODE_CALL, "H2D", "copy", "SMs", "D2H")
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
    """Draw a bar per operation: engines (or streams, `rows="stream"`) down, milliseconds across, a colour per stream.

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
    streams = [*dict.fromkeys(s.operation.stream for s in timeline.spans if s.operation.kind not in ("host", "sync"))]
    colours = {stream: STREAMS[i % len(STREAMS)] for i, stream in enumerate(streams)}
    racing = {id(o) for race in races for o in (race.first, race.second)}
    with chart(figsize=(8.4, 0.95 + 0.42 * max(1, len(names)))) as (figure, ax):
        for lane, span in _lanes(spans, rows):
            _bar(ax, span, names.index(_row(span, rows)), lane, colours, end, framed=id(span.operation) in racing)
        ax.set_yticks(range(len(names)), [str(name) for name in names])
        ax.set(xlim=(0, end or 1), ylim=(max(1, len(names)) - 0.5, -0.5), xlabel=f"ms ({timeline.source})")
        if rows == "engine" and len(streams) > 1:
            handles = [Patch(fc=colours[s], label=f"stream {s}") for s in streams[: len(STREAMS)]]
            ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False)
        finish(figure, ax, title or f"{timeline.end:.3g} ms")
        ax.grid(False, axis="y")
    return figure


def _row(span: Span, rows: str) -> Any:
    return span.engine if rows == "engine" or span.engine == "host" else f"stream {span.operation.stream}"


def _rows(spans: Sequence[Span], rows: str) -> list[Any]:
    found = dict.fromkeys(_row(span, rows) for span in spans)
    return [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]


def _lanes(spans: Sequence[Span], rows: str) -> list[tuple[tuple[int, int], Span]]:
    """Return spans, each with (its lane, lanes of its row): overlapping bars of one row lie above each other."""
    placed: dict[Any, list[float]] = {}
    found = []
    for span in sorted(spans, key=lambda s: (s.start, s.operation.index)):
        ends = placed.setdefault(_row(span, rows), [])
        lane = next((i for i, end in enumerate(ends) if end <= span.start + 1e-9), len(ends))
        ends[lane : lane + 1] = [span.end]
        found.append((lane, span))
    return [((lane, len(placed[_row(span, rows)])), span) for lane, span in found]


def _bar(ax: Axes, span: Span, row: int, lane: tuple[int, int], colours: dict, end: float, *, framed: bool) -> None:
    o, height = span.operation, HEIGHT / lane[1]
    bottom = row - HEIGHT / 2 + lane[0] * height
    stop = min(span.end, end)
    colour = colours.get(o.stream, GREY) if o.kind not in ("host", "sync") else GREY
    edge = "white" if stop - span.start > 0.01 * end else colour  # an edge would hide a narrow bar
    box = Rectangle((span.start, bottom), stop - span.start, height, fc=colour, ec=edge, lw=0.6)
    if o.kind == "sync":
        box.set(fc="white", ec=PALE, hatch="////")
    if framed:
        box.set(ec="#C00000", lw=2.0, zorder=3)
    ax.add_patch(box)
    if o.kind != "sync" and (stop - span.start) / max(end, 1e-12) * 100 > 1.0 * len(o.name) and lane[1] < 3:
        middle = (span.start + stop) / 2, bottom + height / 2
        ax.text(*middle, o.name, ha="center", va="center", color=ink(colour), fontsize=7)


def recorded_timeline(row: Mapping[str, Any], source: str) -> Timeline:
    """Return the spans of a recorded row ("overlap", "pipeline") as a timeline. `source`: the measurement's label."""
    kinds: dict[str, Kind] = {"H2D": "h2d", "D2H": "d2h", "SMs": "kernel", DECODE_CALL: "decode"}
    spans = []
    for i, (name, stream, engine, start, end) in enumerate(row["spans"]):
        kind: Kind = kinds.get(engine, "sync" if name.startswith("sync") else "host")
        spans.append(Span(Operation(i, kind, name, stream, end - start), engine, start, start, end))
    return Timeline(tuple(spans), source)


def draw_overlap(value: Mapping[str, Any], label: str) -> Figure:
    """Draw the milliseconds of each way to copy an array there and back: measured, and in virtual time from its stages.

    `value`: of the measurement "overlap"; `label`: its origin. The pageable way, many times the others, is cut off and
    says its time.
    """
    rows, stages = value["rows"], value["stage_ms"]
    most = 1.12 * max(row["ms"] for row in rows if not row["way"].startswith("pageable"))
    bars = []
    for row in rows:
        chunks, streams, order, pinned = WAYS[row["way"]]
        predicted = simulate(chunked(chunks, streams, order=order, pinned=pinned, **stages)).end
        bars.append((row["way"], row["ms"], predicted))
    with chart(figsize=(7.6, 0.9 + 0.36 * len(rows))) as (figure, ax):
        ax.axvline(max(stages.values()), color=GREY, lw=1, ls=":")
        ax.set(xlim=(0, most), xlabel=f"ms ({label})")
        slowest = Line2D([], [], color=GREY, lw=1, ls=":", label="slowest stage")
        _bars(ax, bars, most, "predicted from the three stages", [slowest])
        finish(figure, ax, f"{value['bytes'] / 2**20:.0f} MiB to the GPU, through a kernel, and back")
        ax.grid(False, axis="y")
    return figure


def draw_pipeline(value: Mapping[str, Any], label: str) -> Figure:
    """Draw the milliseconds per frame of each way to run the pipeline, measured and predicted from the first's stages.

    `value`: of the measurement "pipeline"; `label`: its origin.
    """
    bars = [(row["way"], row["ms_per_frame"], row["predicted_ms_per_frame"]) for row in value["rows"]]
    with chart(figsize=(7.6, 0.9 + 0.36 * len(bars))) as (figure, ax):
        _bars(ax, bars, max(ms for _, ms, _ in bars), "predicted from the stages", [])
        ax.set_xlabel(f"ms per frame ({label})")
        finish(figure, ax, f"decode, preprocess, infer: {value['frames']} frames of {value['clip']}")
        ax.grid(False, axis="y")
    return figure


def _bars(ax: Axes, bars: Sequence[tuple[str, float, float]], most: float, meaning: str, others: list[Line2D]) -> None:
    """Draw (name, measured, predicted) of each way; bars beyond `most` are cut off, pale, and without a prediction."""
    for i, (_, ms, predicted) in enumerate(bars):
        cut = ms > most
        ax.barh(i, min(ms, most), height=0.62, color=PALE if cut else BLUE)
        ax.text(0.01 * most, i, f"{ms:.3g} ms", va="center", fontsize=8, color=GREY if cut else "white")
        if not cut:
            ax.plot([predicted] * 2, [i - 0.4, i + 0.4], color=ORANGE, lw=2)
    ax.set_yticks(range(len(bars)), [name for name, _, _ in bars])
    ax.set_ylim(len(bars) - 0.5, -0.5)
    handles = [Patch(fc=BLUE, label="measured"), Line2D([], [], color=ORANGE, lw=2, label=meaning), *others]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False)
