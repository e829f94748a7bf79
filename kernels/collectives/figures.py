"""Pictures of lab 10: schedules in space and time, curves of the model, topologies, overlap and scaling.

A schedule's picture shows the schedule that it is given, such as the learner's. Times are the model's unless a label
says measured. Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from kernels.collectives import model
from kernels.collectives.model import ALGORITHMS, Link
from kernels.collectives.published import CURVES, Curve
from kernels.collectives.scaling_model import TrainingStep
from kernels.collectives.schedule import Schedule, Send, holdings
from kernels.collectives.sizes import binary_size
from kernels.collectives.topology import Edge, Topology, ring_edges
from warpcourse.bench.charts import chart
from warplab.draw.style import AMBER, BLUE, DPI, FONT, GREEN, GREY, ORANGE, PALE, PINK, SKY, closed, finish, ink

# As many slices as have a colour of their own; more begin anew. Okabe and Ito (2008), and three darker shades.
SLICES = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, "#7A5400", "#003F63")
LINES = (BLUE, ORANGE, GREEN, PINK, AMBER, GREY)
HATCHES = {"////": "adds", "": "overwrites"}
MOST_ARROWS = 200
MOST_CELLS = 4000


def draw_space_time(schedule: Schedule, title: str | None = None) -> Figure:
    """Draw ranks down, steps across: an arrow per message, with the number and colour of its slice (no number where
    there is one slice); dashed if it adds.

    ValueError for a schedule with more than 200 messages, whose arrows nobody could tell apart: use `draw_links`.
    """
    if len(schedule.sends) > MOST_ARROWS:
        raise ValueError(
            f"{len(schedule.sends)} arrows would cover each other; draw at most {MOST_ARROWS}, or use draw_links"
        )
    steps, k = max(1, schedule.steps), schedule.ranks
    with chart(figsize=(min(10, 1.6 + 0.72 * steps), 0.8 + 0.62 * k)) as (figure, ax):
        ax.hlines(range(k), 0, steps, color=PALE, lw=1.2, zorder=0)
        for send in schedule.sends:
            _arrow(ax, send, numbered=schedule.slices > 1)
        _ranks(ax, k)
        ax.set(xlabel="step", xlim=(-0.15, steps + 0.15))
        ax.set_xticks(range(steps + 1) if steps <= 20 else range(0, steps + 1, 5))
        finish(figure, ax, title or _title(schedule))
        ax.grid(False, axis="y")
    return figure


def _arrow(ax: Axes, send: Send, *, numbered: bool) -> None:
    colour = SLICES[send.slice % len(SLICES)]
    style = {"arrowstyle": "-|>", "color": colour, "lw": 1.4, "shrinkA": 0, "shrinkB": 1}
    if send.reduce:
        style["linestyle"] = (0, (4, 2))
    begin, end = (send.step + 0.04, send.source), (send.step + 0.96, send.destination)
    ax.annotate("", end, begin, arrowprops=style, zorder=2)
    if not numbered:
        return
    near = 0.34 if abs(send.source - send.destination) > 1 else 0.5  # arrows over several ranks cross in the middle
    place = begin[0] + near * (end[0] - begin[0]), begin[1] + near * (end[1] - begin[1])
    box = {"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "none"}
    ax.text(*place, _label(send), ha="center", va="center", color=colour, fontsize=8, weight="bold", bbox=box, zorder=6)


def draw_links(schedule: Schedule, title: str | None = None) -> Figure:
    """Draw links down, steps across: a bar per message, with the number and colour of its slice; hatched if it adds.

    An empty place is a link that waits. ValueError for more than 4,000 places.
    """
    links = sorted({(send.source, send.destination) for send in schedule.sends})
    if len(links) * schedule.steps > MOST_CELLS:
        raise ValueError(f"{len(links)} links in {schedule.steps} steps are too many to read; draw a smaller schedule")
    steps = max(1, schedule.steps)
    with chart(figsize=(min(10, 1.6 + 0.42 * steps), 0.9 + 0.3 * max(2, len(links)))) as (figure, ax):
        for send in schedule.sends:
            row, colour = links.index((send.source, send.destination)), SLICES[send.slice % len(SLICES)]
            box = Rectangle((send.step, row - 0.42), 1, 0.84, fc=_pale(colour), ec=colour, lw=0.9)
            if send.reduce:
                box.set_hatch("////")
            ax.add_patch(box)
            if steps <= 40:
                ax.text(
                    send.step + 0.5,
                    row,
                    _label(send),
                    ha="center",
                    va="center",
                    fontsize=8 if send.count == 1 else 7,
                    bbox={"boxstyle": "round,pad=0.08", "fc": _pale(colour), "ec": "none"} if send.reduce else None,
                )
        ax.set_yticks(range(len(links)), [f"{a} → {b}" for a, b in links])
        ax.set(xlabel="step", ylabel="link", xlim=(0, steps), ylim=(max(1, len(links)) - 0.5, -0.5))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if any(send.reduce for send in schedule.sends) and not all(send.reduce for send in schedule.sends):
            handles = [Patch(fc="white", ec=GREY, hatch=hatch, label=text) for hatch, text in HATCHES.items()]
            ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        finish(figure, ax, title or _title(schedule))
        ax.grid(False)
    return figure


def draw_holdings(schedule: Schedule, title: str | None = None) -> Figure:
    """Draw what each rank holds before the first step and after each: slices by rank, darker the more ranks' data.

    In a broadcast or all-gather a slice is there or not. ValueError for more than 4,000 slices to draw.
    """
    k, count, steps = schedule.ranks, schedule.slices, schedule.steps
    if k * count * (steps + 1) > MOST_CELLS:
        raise ValueError(f"{k} × {count} slices in {steps} steps are too many to read; draw a smaller schedule")
    states = [[list(map(int.bit_count, row)) for row in held] for held in holdings(schedule)]
    full = k if max(max(map(max, held)) for held in states) > 1 else 1
    with chart(figsize=(min(10, 1.4 + 0.95 * (steps + 1)), 0.8 + 0.4 * k)) as (figure, ax):
        width = 0.84 / count
        for step, held in enumerate(states):
            for rank, row in enumerate(held):
                for i, ranks in enumerate(row):
                    colour = _pale(SLICES[i % len(SLICES)], 0.15 + 0.85 * ranks / full) if ranks else "white"
                    box = (step + 0.08 + i * width, rank - 0.36)
                    ax.add_patch(Rectangle(box, width * 0.94, 0.72, fc=colour, ec=GREY, lw=0.5))
                    if width > 0.09 and full > 1 and steps < 12:  # wider, and the picture is scaled down
                        ax.text(box[0] + width * 0.47, rank, str(ranks), ha="center", va="center", fontsize=7)
        _ranks(ax, k)
        ax.set(xlim=(0, steps + 1), ylim=(k - 0.45, -0.55))
        ax.set_xticks([i + 0.5 for i in range(steps + 1)], ["before", *map(str, range(steps))])
        ax.set_xlabel("after step")
        what = "how many ranks' data is in each slice" if full > 1 else "who holds which slice"
        finish(figure, ax, title or f"{_title(schedule)}: {what}")
        ax.grid(False)
    return figure


# --- Curves of the model -------------------------------------------------------------------------------------------


def draw_slices(
    n: float,
    k: int,
    link: Link,
    measured: Mapping[int, float] | None = None,
    label: str = "measured",
    fitted: Sequence[int] = (),
    slices: Sequence[int] = tuple(2**i for i in range(11)),
) -> Figure:
    """Draw the bandwidth of a ring broadcast over the number of slices, by the model, with the best S marked.

    `measured`: GB/s by S, drawn as points with `label`, which names device and date; those in `fitted` are filled.
    """
    best = model.best_slices(n, k, link)
    with chart(figsize=(6.4, 3.1)) as (figure, ax):
        fine = [slices[0] * (slices[-1] / slices[0]) ** (i / 200) for i in range(201)]
        text = f"model: α {link.alpha * 1e6:.1f} µs, B {link.bandwidth / 1e9:.0f} GB/s"
        ax.plot(fine, [n / model.ring_broadcast(n, k, s, link) / 1e9 for s in fine], color=BLUE, label=text)
        ax.axhline(link.bandwidth / 1e9, color=GREY, ls=":", lw=1)
        ax.annotate("B", (slices[0], link.bandwidth / 1e9), (-2, 3), textcoords="offset points", color=GREY)
        if slices[0] < best < slices[-1]:
            top = n / model.ring_broadcast(n, k, best, link) / 1e9
            ax.vlines(best, 0, top, color=BLUE, lw=1, ls="--")
            ax.annotate(f"S* = {best:.0f}", (best, 0), (4, 5), textcoords="offset points", color=BLUE)
        for s, gbps in (measured or {}).items():
            ax.plot(s, gbps, "o", color=ORANGE, mfc=ORANGE if s in fitted else "white", zorder=3)
        if measured:
            ax.plot([], [], "o", color=ORANGE, mfc="white", label=label)
        if fitted:
            ax.plot([], [], "o", color=ORANGE, label="of these, fitted")
        _powers(ax, slices)
        ax.set(xlabel="slices S", ylabel="N/t, GB/s", ylim=(0, 1.12 * link.bandwidth / 1e9))
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.08), ncols=1, handlelength=1.6)
        finish(figure, ax, f"ring broadcast, {k} ranks, {binary_size(n)}")
    return figure


def draw_algorithms(
    collective: str, k: int, link: Link, sizes: Sequence[float] = tuple(2**i for i in range(10, 31))
) -> Figure:
    """Draw the time of each algorithm of a collective over the size, by the model at the best S; below, the fastest."""
    chosen = {
        name: algorithm
        for name, algorithm in ALGORITHMS.items()
        if algorithm.collective == collective and ("doubling" not in name or not k & (k - 1))
    }
    if not chosen:
        raise ValueError(f"there is no algorithm for {collective!r}; choose broadcast or all-reduce")
    with chart(figsize=(6.4, 3.3)) as (figure, ax):
        times = {name: [a.best_time(n, k, link) * 1e6 for n in sizes] for name, a in chosen.items()}
        for (name, values), colour in zip(times.items(), LINES, strict=False):
            ax.plot(sizes, values, color=colour, label=name)
        winners = [min(times, key=lambda name, i=i: times[name][i]) for i in range(len(sizes))]
        colours = dict(zip(times, LINES, strict=False))
        low = min(map(min, times.values()))
        for i in range(len(sizes) - 1):
            ax.plot(sizes[i : i + 2], [low / 2.2] * 2, color=colours[winners[i]], lw=5, solid_capstyle="butt")
        ax.annotate("fastest", (sizes[0], low / 2.2), (0, 6), textcoords="offset points", color=GREY, fontsize=8)
        ax.set(xscale="log", yscale="log", xlabel="size", ylabel="µs")
        ax.set_xticks([size for size in sizes if size in (2**10, 2**15, 2**20, 2**25, 2**30)])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: binary_size(v)))
        ax.legend(frameon=False)
        text = f"{collective}, {k} ranks: α {link.alpha * 1e6:.1f} µs, B {link.bandwidth / 1e9:.0f} GB/s"
        finish(figure, ax, text)
    return figure


def draw_measured(
    curves: Mapping[str, Mapping[float, float]], title: str, *, xlabel: str, ylabel: str, level: float | None = None
) -> Figure:
    """Draw measured curves by name, each y by x, over powers of two. `level`: a y that is marked; `title`: names device
    and date."""
    with chart(figsize=(6.4, 3.1)) as (figure, ax):
        for (name, curve), colour in zip(curves.items(), LINES, strict=False):
            ax.plot(list(curve), list(curve.values()), "o-", color=colour, ms=3.5, label=name)
        if level is not None:
            ax.axhline(level, color=GREY, ls=":", lw=1)
        places = sorted({x for curve in curves.values() for x in curve})
        ax.set(xscale="log", xlabel=xlabel, ylabel=ylabel, ylim=(0, None))
        ax.set_xticks(places[:: -(-len(places) // 10)])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: binary_size(v) if "size" in xlabel else f"{v:.0f}"))
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return figure


# --- Topologies ----------------------------------------------------------------------------------------------------


def draw_topology(topology: Topology, rings: Sequence[Sequence[int]] = (), title: str | None = None) -> Figure:
    """Draw nodes and links; each of `rings` as arrows of one colour along the edges that it uses, one per direction.

    An edge direction that a ring uses more than once has the number beside it.
    """
    return _drawn(topology, [rings], title)


def draw_rings(topology: Topology, rings: Sequence[Sequence[int]], title: str | None = None) -> Figure:
    """Draw the same, each ring on links of its own picture."""
    return _drawn(topology, [[ring] for ring in rings], title)


def _drawn(topology: Topology, pictures: Sequence[Sequence[Sequence[int]]], title: str | None) -> Figure:
    if not topology.places:
        raise ValueError(f"{topology.name} says of no node where to draw it; give `places`")
    xs, ys = zip(*topology.places.values(), strict=True)
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    size = min(9.5, (2.2 + 0.95 * wide) * (1 if len(pictures) == 1 else 0.6 * len(pictures)))
    with chart(1, len(pictures), figsize=(size, 1.1 + 0.85 * max(1.6, high)), squeeze=False) as (figure, (axes,)):
        for ax, rings, colour in zip(axes, pictures, LINES * 2, strict=False):
            _draw_on(ax, topology, rings, [colour] if len(pictures) > 1 else LINES * 2)
            ax.set(xlim=(min(xs) - 0.6, max(xs) + 0.6), ylim=(min(ys) - 0.35, max(ys) + 0.35))
            ax.set_axis_off()
        axes[0].set_title(title or topology.name, loc="left", weight="bold")
        figure.tight_layout()
    told = [
        f"ring {', '.join(map(str, ring))}: {len(ring_edges(topology, list(ring)))} links one way"
        for rings in pictures
        for ring in rings
    ]
    return closed(figure, "; ".join([f"{len(topology.places)} nodes, {len(topology.edges)} links", *told]))


def _draw_on(ax: Axes, topology: Topology, rings: Sequence[Sequence[int]], colours: Sequence[str]) -> None:
    for a, b in topology.edges:
        if (b, a) not in topology.edges:
            _directed(ax, topology, (a, b), PALE if rings else GREY, 0, 1)
        elif a < b:
            _line(ax, topology, (a, b), PALE if rings else GREY)
    used: dict[Edge, int] = {}
    for ring, colour in zip(rings, colours, strict=False):
        for edge, times in ring_edges(topology, list(ring)).items():
            used[edge] = used.get(edge, 0) + 1
            _directed(ax, topology, edge, colour, used[edge], times)
    for node, (x, y) in topology.places.items():
        face = BLUE if node.startswith("GPU") else GREY
        text = node.replace("GPU ", "") if node.startswith("GPU") else node
        box = {"boxstyle": "round,pad=0.35", "fc": face, "ec": "white", "lw": 1.5}
        ax.text(x, y, text, ha="center", va="center", color="white", fontsize=8, weight="bold", bbox=box, zorder=5)


def _line(ax: Axes, topology: Topology, edge: Edge, colour: str) -> None:
    xs, ys = zip(*(topology.places[node] for node in edge), strict=True)
    least = min(topology.edges.values())
    ax.plot(xs, ys, color=colour, lw=min(5, 1.6 * topology.edges[edge] / least), zorder=1)


def _directed(ax: Axes, topology: Topology, edge: Edge, colour: str, lane: int, times: int) -> None:
    """Draw an arrow on its own side of the link, so that both directions are seen."""
    (x1, y1), (x2, y2) = (topology.places[node] for node in edge)
    length = max(1e-9, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
    away = 0.07 * lane
    dx, dy = away * (y2 - y1) / length, -away * (x2 - x1) / length
    style = {"arrowstyle": "-|>", "color": colour, "lw": 1.5, "shrinkA": 9, "shrinkB": 9}
    ax.annotate("", (x2 + dx, y2 + dy), (x1 + dx, y1 + dy), arrowprops=style, zorder=3)
    if times > 1:
        middle = (x1 + x2) / 2 + 3 * dx, (y1 + y2) / 2 + 3 * dy
        ax.text(*middle, f"{times} ×", ha="center", va="center", color=colour, fontsize=8.5, weight="bold")


# --- Training ------------------------------------------------------------------------------------------------------


def draw_overlap(title: str = "a step of training, by the model", **steps: TrainingStep) -> Figure:
    """Draw timelines of steps by label: computation above, all-reduces of buckets below; orange: not hidden."""
    end = max(step.end for step in steps.values())
    colours = {"hidden behind the backward pass": GREEN, "not hidden": ORANGE}
    with plt.rc_context(FONT):
        figure, axes = _timelines(len(steps), end, "all-reduces", colours, title)
        for ax, (label, step) in zip(axes, steps.items(), strict=True):
            _bar(ax, 0, 0, step.forward, SKY, "forward")
            _bar(ax, 0, step.forward, step.backward, BLUE, "backward")
            for bucket in step.buckets:
                hidden = min(max(bucket.begin, step.backward), bucket.end)
                _bar(ax, 1, bucket.begin, hidden, GREEN)
                _bar(ax, 1, hidden, bucket.end, ORANGE)
                ax.vlines(bucket.begin * 1e3, 0.62, 1.38, color="white", lw=0.8)
            late = f"{step.end * 1e3:.0f} ms, {step.exposed * 1e3:.1f} ms of all-reduces not hidden"
            finish(figure, ax, f"{label.replace('_', ' ')}: {late}")
            ax.grid(False, axis="y")
        figure.tight_layout()
    return closed(figure)


def draw_streams(timelines: Mapping[str, Any], label: str, rank: int = 0) -> Figure:
    """Draw timelines of a measured step by name, one rank's two streams: what ran when. `label` names device and date.

    `timelines`: lists of rows with rank, stream ("compute" or "communicate"), what, begin and end in seconds; values
    that are no lists are passed over.
    """
    shown = {name: [r for r in rows if r["rank"] == rank] for name, rows in timelines.items() if isinstance(rows, list)}
    end = max(row["end"] for rows in shown.values() for row in rows)
    colours = {"forward": SKY, "backward": BLUE, "sum": GREEN, "update": AMBER}
    with plt.rc_context(FONT):
        figure, axes = _timelines(len(shown), end, "sums", colours, label)
        for ax, (name, rows) in zip(axes, shown.items(), strict=True):
            for row in rows:
                at = 0 if row["stream"] == "compute" else 1
                _bar(ax, at, row["begin"], row["end"], colours.get(row["what"].split()[0], GREY))
                ax.vlines(row["begin"] * 1e3, at - 0.38, at + 0.38, color="white", lw=0.8)
            finish(figure, ax, f"{name}, rank {rank}: {max(row['end'] for row in rows) * 1e3:.2f} ms")
            ax.grid(False, axis="y")
        figure.tight_layout()
    return closed(figure)


def _timelines(
    count: int, end: float, below: str, colours: Mapping[str, str], title: str
) -> tuple[Figure, Sequence[Axes]]:
    """Return axes below each other, of `end` seconds: computation above, `below` below it; and a legend of colours."""
    size = 7.6, 0.75 + 0.95 * count
    figure, axes = plt.subplots(count, 1, figsize=size, dpi=DPI, sharex=True, squeeze=False)
    for ax in axes[:, 0]:
        ax.set_yticks([0, 1], ["computation", below])
        ax.set(ylim=(1.6, -0.6), xlim=(0, end * 1e3 * 1.02))
    axes[-1, 0].set_xlabel("ms")
    handles = [Patch(color=colour, label=what) for what, colour in colours.items()]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False, fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=9)
    return figure, axes[:, 0]


def _bar(ax: Axes, row: int, begin: float, end: float, colour: str, text: str = "") -> None:
    if end > begin:
        ax.barh(row, (end - begin) * 1e3, 0.76, begin * 1e3, color=colour)
        if text:
            ax.text((begin + end) * 500, row, text, ha="center", va="center", color=ink(colour), fontsize=8)


def draw_scaling(
    gpus: Sequence[int], title: str = "scaling, by the model", **efficiencies: Callable[[int], float]
) -> Figure:
    """Draw the efficiency over the number of GPUs, by label: a function of it for each curve. Dotted: no loss."""
    with chart(figsize=(6.4, 3)) as (figure, ax):
        for (label, share), colour in zip(efficiencies.items(), LINES, strict=False):
            ax.plot(gpus, [100 * share(k) for k in gpus], "o-", ms=3, color=colour, label=label.replace("_", " "))
        ax.axhline(100, color=GREY, ls=":", lw=1)
        _powers(ax, gpus)
        ax.set(xlabel="GPUs", ylabel="throughput per GPU, %", ylim=(0, 108))
        ax.legend(frameon=False, loc="lower left")
        finish(figure, ax, title)
    return figure


def draw_published(curves: Sequence[Curve] = CURVES) -> Figure:
    """Draw published efficiencies and the model's, a row per curve and number of GPUs."""
    shares = [(curve, gpus, share) for curve in curves for gpus, share in curve.published.items()]
    with chart(figsize=(8.2, 0.9 + 0.19 * (len(shares) + len(curves)))) as (figure, ax):
        y, ticks = 0.0, []
        for curve in curves:
            ax.annotate(curve.title, (62, y), (0, -3), textcoords="offset points", fontsize=8, color=GREY)
            for gpus, share in curve.published.items():
                y += 1
                found = 100 * curve.model(gpus)
                ax.plot([100 * share, found], [y, y], color=PALE, lw=2, zorder=1)
                ax.plot(100 * share, y, "o", ms=4.5, color=ORANGE)
                ax.plot(found, y, "o", ms=4.5, color=BLUE)
                ticks.append((y, f"{gpus} GPUs"))
            y += 1.3
        ax.set_yticks([place for place, _ in ticks], [text for _, text in ticks], fontsize=7.5)
        ax.plot([], [], "o", color=ORANGE, label="published")
        ax.plot([], [], "o", color=BLUE, label="the model, nothing fitted")
        ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
        ax.set(xlabel="throughput per GPU, % of that on the base", xlim=(61, 101), ylim=(y - 0.6, -0.8))
        finish(figure, ax, "published scaling")
        ax.grid(False, axis="y")
    told = [f"{c.title}, {n} GPUs: {100 * share:.0f} %, the model {100 * c.model(n):.0f}" for c, n, share in shares]
    return closed(figure, "; ".join(told))


# --- Shared --------------------------------------------------------------------------------------------------------


def _label(send: Send) -> str:
    return str(send.slice) if send.count == 1 else f"{send.slice}–{send.slice + send.count - 1}"


def _title(schedule: Schedule) -> str:
    counts = (("rank", schedule.ranks), ("slice", schedule.slices), ("step", schedule.steps))
    return f"{schedule.collective}: " + ", ".join(f"{n} {what}" + "s" * (n != 1) for what, n in counts)


def _ranks(ax: Axes, k: int) -> None:
    ax.set_yticks(range(k), [f"rank {rank}" for rank in range(k)])
    ax.set_ylim(k - 0.6, -0.4)


def _powers(ax: Axes, values: Sequence[float]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(values))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _pale(colour: str, strength: float = 0.35) -> tuple[float, float, float]:
    red, green, blue = to_rgb(colour)
    return (1 - strength * (1 - red), 1 - strength * (1 - green), 1 - strength * (1 - blue))
