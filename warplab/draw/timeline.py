"""The picture of a warp's time: steps across, its 32 lanes down, a colour for the source line that a lane runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from warplab.draw.style import AMBER, BLUE, GREEN, LAUNCH_DPI, LAUNCH_FONT, ORANGE, PINK, SKY, closed
from warplab.launch.profile_queries import one_launch, shorten, source_lines
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import LaunchProfile
from warplab.simulator.count.warp_steps import StepTrace, WarpStep
from warplab.simulator.errors import SimulatorError
from warplab.text.tables import count, percent

# Okabe and Ito 2008, then darker shades; a line's number or name stands above its steps, too.
COLOURS = (
    *(BLUE, AMBER, GREEN, PINK, SKY, ORANGE, "#F0E442"),
    *("#003F63", "#7A5400", "#00513B", "#74365A", "#2A6A92", "#6F3100", "#8C8410"),
)
OTHER = "#A6A6A6"  # lines without a name, where others have one
IDLE, WAITING, HATCH = "#EFEFEF", "#D2D2D2", "#7A7A7A"
OTHERS = "other lines"
MOST_LINES = 12  # in the legend
LONGEST = 12  # characters of a name above a step
FULL_MASK = (1 << WARP_SIZE) - 1

Place = tuple[str, int]  # file and line
Colour = str | tuple[float, float, float]


@dataclass(frozen=True)
class Column:
    """What is drawn as one step: the `label` of its lines and masks of lanes as in `WarpStep`.

    Lanes of a second warp are the bits from 32 on, and so on.
    """

    label: str
    active: int
    issued: int
    waiting: int
    ended: int
    instructions: int


def draw_timeline(
    profile: object,
    warp: int | Sequence[int] = 0,
    block: int = 0,
    names: Mapping[int | str, str] | None = None,
    by: str = "line",
    start: int = 0,
    most: int = 60,
    others: bool = True,
    now: int | None = None,
) -> Figure:
    """Draw when which lanes of a warp ran which source line, in the order in which the simulator ran them.

    A column is a step: instructions of one line that the same lanes ran one after the other (`by="line"`), or a single
    machine instruction (`by="instruction"`). Full colour: lanes that run the line. Pale colour: lanes to which it was
    issued, predicated off. Hatched: lanes that wait at a barrier or a `__syncwarp`. Light grey: lanes whose turn it is
    not, or that wait where the sides of a branch meet. White: lanes that have ended.

    `profile`: a profile, a launch, or the error that stopped one. `warp`, `block`: a traced warp
    (`Options.trace_warps`), its number in the block and the block's linear index; or several warps of the block, to
    see which of them ran together and which waited.
    `names`: {line: name}, where a line is its number or a piece of its text. Named lines are drawn under their names,
    the others in grey, or not at all with `others=False`. `start`, `most`: draw at most `most` steps, from `start` on.
    `now`: the step that the warp has come to; it is framed and described, and later ones are left blank.
    Raises ValueError where there is no such trace, line or step.
    """
    launch, trace, title, warps, columns, texts = _read(profile, warp, block, names, by, others)
    shown = _shown(columns, start, most)
    if now is not None and not start <= now < start + len(shown):
        raise ValueError(f"now={now}; the steps drawn are {start} to {start + len(shown) - 1}")

    which = f"warp{'s' * (len(warps) > 1)} {', '.join(map(str, warps))}"
    where = which + f" of block {count(block)}" * (launch.grid != (1, 1, 1))
    head = ", ".join([title, where, f"scheduling {trace.scheduling}"])
    summary = _summary(shown, len(columns), start, trace.complete)
    if now is not None:
        summary = _now(shown[now - start], now, texts, len(warps))
    with plt.rc_context({**LAUNCH_FONT, "hatch.linewidth": 0.6}):
        return _figure(shown, texts, warps, start, by, head, summary, None if now is None else now - start)


def timeline_steps(
    profile: object,
    warp: int | Sequence[int] = 0,
    block: int = 0,
    names: Mapping[int | str, str] | None = None,
    by: str = "line",
    start: int = 0,
    most: int = 60,
    others: bool = True,
) -> range:
    """Return the numbers of the steps that `draw_timeline` draws for the same arguments; raises as it does."""
    *_, columns, _ = _read(profile, warp, block, names, by, others)
    return range(start, start + len(_shown(columns, start, most)))


def _read(
    profile: object, warp: int | Sequence[int], block: int, names: Mapping[int | str, str] | None, by: str, others: bool
) -> tuple[LaunchProfile, StepTrace, str, list[int], list[Column], dict[str, str]]:
    """Return the launch, its trace, its title, the warps, their steps as columns, the source text of each label."""
    launch, title = one_launch(_stopped(profile))
    if by not in ("line", "instruction"):
        raise ValueError(f"by={by!r}; choose 'line' or 'instruction'")
    if launch.steps is None or not launch.steps.traced:
        raise ValueError(
            f"the launch of {launch.kernel} holds no steps, as counters or trace were off; launch it again with both"
        )
    warps = [warp] if isinstance(warp, int) else list(warp)
    steps = [_joined(row) for row in launch.steps.together(block, warps)]
    labels, texts = _labels(launch, steps, names or {})
    columns = _columns(steps, labels, by, others)
    return launch, launch.steps, title, warps, columns, texts


def _shown(columns: list[Column], start: int, most: int) -> list[Column]:
    shown = columns[max(0, start) : max(0, start) + most]
    if start < 0 or most < 1 or not shown:
        raise ValueError(f"start={start}, most={most}: the warp has {len(columns)} steps")
    return shown


def _now(column: Column, step: int, texts: Mapping[str, str], warps: int) -> str:
    """Say what one step is: its source, how many lanes are active, and their mask."""
    text = texts.get(column.label, "")
    line = shorten(f"{column.label}: {text}" if text else f"{column.label}:", 40)
    masks = ", ".join(f"0x{column.active >> WARP_SIZE * k & FULL_MASK:08x}" for k in range(warps))
    lanes = f"{column.active.bit_count()} of {WARP_SIZE * warps} lanes active"
    return f"step {count(step)}, {line}  {lanes}, mask{'s' * (warps > 1)} {masks}"


def _stopped(profile: object) -> object:
    """Return the launch that an error stopped, and any other profile as it is."""
    if not isinstance(profile, SimulatorError):
        return profile
    if profile.profile is None:
        raise ValueError("the error holds no trace, as it was not counted; launch the kernel in `with profile():`")
    return profile.profile


def _joined(row: tuple[WarpStep, ...]) -> WarpStep:
    """Join the steps of several warps to one, whose masks hold the lanes of the second warp from bit 32 on."""

    def lanes(name: str) -> int:
        return sum(getattr(step, name) << WARP_SIZE * k for k, step in enumerate(row))

    return row[0]._replace(
        active=lanes("active"), issued=lanes("issued"), waiting=lanes("waiting"), ended=lanes("ended")
    )


def _labels(
    launch: LaunchProfile, steps: list[WarpStep], names: Mapping[int | str, str]
) -> tuple[dict[Place, str], dict[str, str]]:
    """Return the label of each line and the source text of each label, both in source order."""
    places = sorted({(step.file, step.line) for step in steps})
    code = {
        (file, line): text.strip()
        for file in {file for file, _ in places}
        for line, text in source_lines(launch, file, [n for f, n in places if f == file]).items()
    }
    labels = {place: OTHERS if names else str(place[1] or "?") for place in places}
    for key, name in names.items():
        found = [place for place in places if (key == place[1] if isinstance(key, int) else key in code[place])]
        if not found and not _in_source(launch, {file for file, _ in places}, key):
            known = "; ".join(f"{place[1]}: {code[place]}" for place in places)
            raise ValueError(f"the source has no line {key!r} to call {name!r}; the warp ran the lines {known}")
        labels.update(dict.fromkeys(found, name))
    texts: dict[str, str] = {}
    for place in places:
        texts.setdefault(labels[place], "" if labels[place] == OTHERS else code[place])
    return labels, texts


def _in_source(launch: LaunchProfile, files: set[str], key: int | str) -> bool:
    """Return whether the files have such a line, even one that the warp never reached."""
    sources = [launch.sources.get(file, "").splitlines() for file in files]
    if isinstance(key, int):
        return any(1 <= key <= len(lines) for lines in sources)
    return any(key in line for lines in sources for line in lines)


def _columns(steps: list[WarpStep], labels: Mapping[Place, str], by: str, others: bool) -> list[Column]:
    """Return the columns of all steps, merging those of one label by the same lanes unless the code jumped back."""
    columns: list[Column] = []
    last: WarpStep | None = None
    fresh = True  # the code jumped back since the last column
    for step in steps:
        fresh |= last is not None and step.time != last.time and step.code <= last.code
        last = step
        label = labels[step.file, step.line]
        if label == OTHERS and not others:
            continue
        column = Column(label, step.active, step.issued, step.waiting, step.ended, step.instructions)
        if by == "instruction":
            columns += [replace(column, instructions=1)] * step.instructions
        elif fresh or replace(columns[-1], instructions=step.instructions) != column:
            columns.append(column)
        else:
            columns[-1] = replace(column, instructions=columns[-1].instructions + step.instructions)
        fresh = False
    return columns


def _summary(shown: list[Column], total: int, start: int, complete: bool) -> str:
    """Say how many steps and instructions the picture holds, and how many of the lanes were active in them."""
    instructions = sum(c.instructions for c in shown)
    active = sum(c.active.bit_count() * c.instructions for c in shown)
    lanes = sum(WARP_SIZE * _warps(c.issued) * c.instructions for c in shown)
    what = f"{len(shown)} step{'s' * (len(shown) > 1)}"
    if len(shown) < total:
        what = f"steps {count(start)} to {count(start + len(shown) - 1)} of {count(total)}"
    cut = "" if complete else ", trace cut"
    return f"{what}{cut}: {count(instructions)} machine instructions, {percent(active / lanes)} of the lanes active"


def _warps(lanes: int) -> int:
    """Count the warps that have a lane in the mask."""
    return sum(1 for k in range(0, lanes.bit_length(), WARP_SIZE) if lanes >> k & FULL_MASK)


# -- drawing -----------------------------------------------------------------------------------------------------------

ONE_WARP, MORE_WARPS, TOP, BOTTOM, LEGEND_ROW = 2.3, 1.3, 0.5, 0.45, 0.185  # inches
LEFT, RIGHT, CHARACTER = 0.5, 0.12, 0.062


def _figure(
    shown: list[Column],
    texts: Mapping[str, str],
    warps: Sequence[int],
    start: int,
    by: str,
    head: str,
    summary: str,
    now: int | None,
) -> Figure:
    width = min(9.0, max(6.0, 1.0 + 0.24 * len(shown)))
    handles = _handles(shown, texts, WARP_SIZE * len(warps), int((width / 2 - 0.4) / CHARACTER))
    headings = _headings(shown, by)
    step, widest = (width - LEFT - RIGHT) / len(shown), max((len(label) for _, label in headings), default=1)
    size = 9 if step > 0.35 else 7.5
    upright = size / 7.5 * CHARACTER * widest <= step
    room = 0.18 if upright else CHARACTER * min(widest, LONGEST) + 0.1
    inside = ONE_WARP + MORE_WARPS * (len(warps) - 1)
    bottom = BOTTOM + LEGEND_ROW * -(-len(handles) // 2)
    height = inside + TOP + room + bottom
    figure = plt.figure(figsize=(width, height), dpi=LAUNCH_DPI)
    ax = figure.add_axes((LEFT / width, bottom / height, 1 - (LEFT + RIGHT) / width, inside / height))
    done = shown if now is None else shown[: now + 1]
    _draw(ax, done, _colours(texts), WARP_SIZE * len(warps))
    if now is not None:
        frame = Rectangle((now - 0.5, -0.5), 1, WARP_SIZE * len(warps), fill=False, ec="black", lw=1.5, zorder=4)
        ax.add_patch(frame)
    for x, label in headings:
        if x >= len(done):
            continue
        ax.annotate(
            *(shorten(label, LONGEST), (x, -0.5), (0, 2)),
            textcoords="offset points",
            parse_math=False,
            ha="center",
            va="bottom",
            fontsize=size,
            rotation=0 if upright else 90,
        )
    ax.set_xlabel("step (widths tell no time)" if by == "line" else "machine instruction")
    _mark_lanes(ax, warps)
    ax.set(xlim=(-0.5, len(shown) - 0.5), ylim=(WARP_SIZE * len(warps) - 0.5, -0.5))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    ax.xaxis.set_major_formatter(lambda x, _: count(int(x) + start))
    ax.tick_params(length=2)
    ax.spines[["top", "right"]].set_visible(False)
    figure.text(0.01, 1 - 0.06 / height, head, va="top", weight="bold", parse_math=False)
    figure.text(0.01, 1 - 0.25 / height, summary, va="top", parse_math=False)
    legend = figure.legend(
        handles=handles, loc="lower left", ncols=2, frameon=False, handlelength=1.1, handletextpad=0.5, borderpad=0
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return closed(figure)


def _mark_lanes(ax: Axes, warps: Sequence[int]) -> None:
    """Label the axis of lanes; with several warps, as threads of the block, with a line between the warps."""
    every = 4 if len(warps) == 1 else 8
    places = [*range(0, WARP_SIZE * len(warps), every), WARP_SIZE * len(warps) - 1]
    first = 0 if len(warps) == 1 else WARP_SIZE
    ax.set_yticks(places, [str(warps[k // WARP_SIZE] * first + k % WARP_SIZE) for k in places])
    ax.set_ylabel("lane" if len(warps) == 1 else "thread of the block")
    for k in range(1, len(warps)):
        ax.axhline(WARP_SIZE * k - 0.5, color="black", lw=0.8, ls="--", zorder=3)


def _colours(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the colour of each label, in source order."""
    own = [label for label in texts if label != OTHERS]
    return {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(own)} | {OTHERS: OTHER}


def _headings(shown: list[Column], by: str) -> list[tuple[float, str]]:
    """Place labels above the columns: one for each step, or one for neighbours with the same label."""
    headings: list[tuple[float, str]] = []
    first = 0
    for k, column in enumerate(shown):
        if by == "line" or k + 1 == len(shown) or shown[k + 1].label != column.label:
            if column.label != OTHERS:
                headings.append(((first + k) / 2 if by == "instruction" else k, column.label))
            first = k + 1
    return headings


def _idle(column: Column, lanes: int) -> int:
    """Return the mask of those of the first `lanes` lanes that could run and do not."""
    return ((1 << lanes) - 1) & ~(column.issued | column.waiting | column.ended)


def _draw(ax: Axes, shown: list[Column], colours: Mapping[str, str], lanes: int) -> None:
    boxes: dict[tuple[Colour, bool], list[Rectangle]] = {}  # by colour and whether hatched
    for x, column in enumerate(shown):
        colour = colours[column.label]
        for mask, fill, hatched in (
            (column.active, colour, False),
            (column.issued & ~column.active, _pale(colour), False),
            (column.waiting & ~column.issued, WAITING, True),
            (_idle(column, lanes), IDLE, False),
        ):
            for top, bottom in _runs(mask):
                box = Rectangle((x - 0.46, top - 0.5), 0.92, bottom - top)
                boxes.setdefault((fill, hatched), []).append(box)
    for (fill, hatched), patches in boxes.items():
        collection = PatchCollection(patches, facecolor=fill, lw=0, zorder=1)
        if hatched:
            collection.set(hatch="/////", edgecolor=HATCH)
        ax.add_collection(collection)
    ax.hlines([k - 0.5 for k in range(1, lanes)], -0.5, len(shown) - 0.5, color="white", lw=0.5, zorder=2)


def _runs(lanes: int) -> list[tuple[int, int]]:
    """List runs of neighbouring lanes in a mask as (first, last + 1)."""
    runs, k = [], 0
    while k < lanes.bit_length():
        first = k
        while lanes >> k & 1:
            k += 1
        if k > first:
            runs.append((first, k))
        k += 1
    return runs


def _pale(colour: str) -> Colour:
    red, green, blue = (0.28 * part + 0.72 for part in to_rgb(colour))
    return red, green, blue


def _handles(shown: list[Column], texts: Mapping[str, str], lanes: int, width: int) -> list[Patch]:
    """Return the legend: the lines drawn, each with its source, then what the other fields mean."""
    colours, drawn = _colours(texts), {column.label for column in shown}
    labels = [label for label in texts if label in drawn]
    handles = [
        Patch(color=colours[label], label=shorten(f"{label}:  {texts[label]}" if texts[label] else label, width))
        for label in labels[:MOST_LINES]
    ]
    if len(labels) > MOST_LINES:
        handles.append(Patch(color="none", label=f"and {len(labels) - MOST_LINES} more lines"))
    if any(c.issued != c.active for c in shown):
        first = next(c.label for c in shown if c.issued != c.active)
        handles.append(Patch(color=_pale(colours[first]), label="issued, but predicated off"))
    if any(c.waiting & ~c.issued for c in shown):
        handles.append(Patch(facecolor=WAITING, edgecolor=HATCH, hatch="/////", lw=0, label="waits for other lanes"))
    if any(_idle(c, lanes) for c in shown):
        handles.append(Patch(color=IDLE, label="idle: not its turn, or done with its side"))
    if any(c.ended for c in shown):
        handles.append(Patch(facecolor="white", edgecolor=HATCH, lw=0.5, label="no thread, or it has ended"))
    return handles
