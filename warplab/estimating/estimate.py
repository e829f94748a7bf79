"""How long a launch would take on a card, and why: `estimate(profile[0], "H100")`. An estimate, never a measurement.

The mechanism is in `launch_time`, the rates with their sources in `rates`, and how far estimates were off, on launches
that played no part in building them, in evidence/estimates/.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from warplab.estimating.launch_time import (
    LATENCY,
    LAUNCH,
    LaunchTime,
    Resource,
    launch_time,
    waits_by_line,
)
from warplab.estimating.machine_counts import MachineRow, machine_counts
from warplab.estimating.rates import Rates, rates
from warplab.estimating.work import Work, work_of
from warplab.hardware.cards import Card
from warplab.hardware.cards import card as find_card
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profile_queries import only_launch, shorten, size, source_lines
from warplab.simulator.count.counters import Counts
from warplab.text.tables import Column, Table, document, duration, paragraph, quantity

SHOWN = 0.02  # resources that need a smaller share of the time are not shown
MOST_LINES = 5
_ERROR = Path(__file__).parent / "error.json"
_BAR = '<div style="background:#0072B2;opacity:{opacity};height:.9em;width:{width:.0f}px;min-width:1px"></div>'
_WIDTH = 260  # pixels of the longest bar
NO_LINES = (LAUNCH, "block launches")  # limits that no line of the kernel causes


def _named(*opcodes: str) -> Callable[[MachineRow], bool]:
    return lambda row: row.opcode.split(".")[0] in opcodes


# What the model does not know, by the machine instructions that show it.
_UNKNOWN: tuple[tuple[Callable[[MachineRow], bool], str], ...] = (
    (
        lambda row: row.pipe == "TMA",
        "Too low: the bytes that TMA moves are counted nowhere (DRAM, L2, shared memory), nor the waits for them.",
    ),
    (
        lambda row: row.opcode.startswith("ATOMS.CAST"),
        "Too low where warps meet at a word: atomics in shared memory that try again count only the lanes of one warp. "
        "In a sweep on an H100 all warps on one word of floats took 4 to 18 times as long.",
    ),
    (
        _named("LDL", "STL"),
        "Too low if the local arrays of all threads on an SM need more than the L1 (256 KiB on an H100): in a sweep 2 "
        "to 4 times then.",
    ),
    (
        lambda row: row.opcode.split(".")[0] in ("LDG", "LD") and ".STRONG" in row.opcode,
        "Too low where blocks wait for one another: a loop that asks for a flag counts as one pass.",
    ),
    (
        lambda row: row.opcode.startswith("MEMBAR") and ".SYS" in row.opcode,
        "Too low: a fence of system scope counts as one instruction. On an H200 it took 0.8 µs beside copies.",
    ),
    (_named("NANOSLEEP"), "Too low: the time asleep is not counted."),
)


@dataclass(frozen=True)
class SourceLine:
    """A line of the kernel and its share of what limits the launch (0 to 1)."""

    file: str
    line: int
    code: str
    share: float


@dataclass(frozen=True)
class Estimate:
    """The estimate for `launch` on `card`. `str()` and a notebook's output show it whole.

    `time`: seconds in all and of each resource alone. `lifted`: by resource, the seconds of the launch if that one cost
    nothing. `lines`: the source lines that cost most. `warnings`: what this kernel does that the model does not know.
    `blocks`, `each`: the estimate is for so many times the blocks of `launch`, and so many times the passes of their
    loops.
    """

    launch: LaunchRecord
    card: Card
    time: LaunchTime
    lifted: dict[str, float]
    lines: tuple[SourceLine, ...]
    warnings: tuple[str, ...] = ()
    blocks: float = 1.0
    each: float = 1.0

    @property
    def seconds(self) -> float:
        """Return the time of the launch, seconds."""
        return self.time.seconds

    @property
    def limit(self) -> str:
        """Return the resource that needs most time."""
        return self.time.limit

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Return what each resource needs, the longest first, without those that hardly matter."""
        found = sorted(self.time.resources, key=lambda r: -r.seconds)
        return tuple(r for r in found if r.seconds >= SHOWN * self.seconds)

    @property
    def label(self) -> str:
        """Return what the estimate is worth."""
        return label(self.card, self.limit)

    def text(self) -> str:
        """Return the estimate as tables for a terminal."""
        longest = max(r.seconds for r in self.resources)
        bars = ["#" * max(1, round(24 * r.seconds / longest)) for r in self.resources]
        parts = [self._head(), self._table(bars).text(), *self._notes()]
        if self.lines:
            parts += ["", self._line_table().text()]
        return "\n".join([*parts, self.label])

    def html(self) -> str:
        """Return the estimate for a notebook, with bars."""
        longest = max(r.seconds for r in self.resources)
        bars = [
            _BAR.format(width=_WIDTH * r.seconds / longest, opacity=1 if r.name == self.limit else 0.45)
            for r in self.resources
        ]
        rows = self._table(bars)
        cells = [
            f'<tr><td class="l" style="text-align:left">{escape(name)}</td>'
            f'<td class="l" style="text-align:left;width:{_WIDTH}px">{bar}</td>'
            + "".join(f"<td>{escape(text)}</td>" for text in texts)
            + "</tr>"
            for name, bar, *texts in rows.rows
        ]
        head = "".join(f"<th>{escape(c.header)}</th>" for c in rows.columns)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody></table>"
        notes = [paragraph(note) for note in self._notes()]
        lines = [self._line_table().html()] if self.lines else []
        return document([paragraph(self._head()), table, *notes, *lines, paragraph(self.label, muted=True)])

    __str__ = __repr__ = text
    _repr_html_ = html

    def _head(self) -> str:
        scaled = {"the blocks": self.blocks, "the passes of a loop": self.each}
        more = "".join(f", {times:g} times {of}" for of, times in scaled.items() if times != 1)
        what = f"{self.launch.kernel} ({size(self.launch)}{more}) on {self.card.full_name}"
        return f"{what}: about {duration(self.seconds)}, limited by {self.limit}"

    def _table(self, bars: list[str]) -> Table:
        columns = [
            *(Column("resource", "left"), Column("", "left"), Column("alone"), Column("time without it")),
            Column("work"),
        ]
        rows = []
        for r, bar in zip(self.resources, bars, strict=True):
            lifted = duration(self.lifted[r.name]) if r.name in self.lifted else ""
            rows.append([r.name, bar, duration(r.seconds), lifted, _amount(r)])
        return Table(columns, rows, caption="Time by resource")

    def _notes(self) -> list[str]:
        time = self.time
        how = (
            f"{time.blocks_per_sm} blocks fit on an SM at once: {time.waves:.2f} waves. A warp alone takes "
            f"{time.warp_cycles:,.0f} cycles."
        )
        if self.launch.counts.global_load_sectors:
            how += (
                f" The L1 serves {100 * time.l1_hits:.0f} % of the sectors read, the L2 {100 * time.l2_hits:.0f} % of "
                "the others."
            )
        return [*self._measured(), how, *self.warnings]

    def _measured(self) -> list[str]:
        """Return what the launch took where it was profiled on a GPU."""
        launch = self.launch
        if launch.gpu_seconds is None or (self.blocks, self.each) != (1, 1):
            return []
        error = 100 * (self.seconds / launch.gpu_seconds - 1)
        return [f"Measured on {launch.gpu_name}, once: {duration(launch.gpu_seconds)}. The estimate: {error:+.0f} %."]

    def _line_table(self) -> Table:
        columns = [Column("line"), Column("source", "left", code=True), Column(f"share of {self.limit}")]
        rows = [[str(one.line), shorten(one.code), f"{100 * one.share:.0f} %"] for one in self.lines]
        return Table(columns, rows, caption="Work by source line")


def estimate(
    profile: object,
    card: str | Card = "H100",
    *,
    warm: bool = False,
    blocks: float = 1.0,
    each: float = 1.0,
    footprint: tuple[float, float] | None = None,
) -> Estimate:
    """Return how long one launch would take on `card` (see `warplab.hardware.cards`), from its counters and its code.

    `profile`: a launch, or a profile of exactly one launch. The GPU is taken to be idle when it begins, and its data to
    be in DRAM; with `warm` in the L2, if they fit there, as after a launch on the same data.
    A small launch can stand for a large one of the same kind, which has `blocks` times the blocks, all alike, and
    whose loops run `each` times as long. `footprint`: the distinct bytes that the large one loads and stores; without
    it those of the small one are multiplied by both, also by `each` where the accesses are not in the loop.
    Raises ValueError for an unknown card, for several launches, for a launch without counters or machine code, and for
    `blocks` or `each` that is not positive, and for one with tcgen05, or with products on a card without tensor cores;
    CompilerNotFound where the assembler is missing.
    """
    launch, device = only_launch(profile, "estimate"), find_card(card)
    if not (blocks > 0 and each > 0):
        raise ValueError(f"blocks={blocks} and each={each} multiply the launch; give positive numbers")
    blocks_of_ptx = launch.flow.translation.blocks if launch.flow is not None else ()
    if any(i.opcode == "tcgen05" for block in blocks_of_ptx for i in block.counted):
        raise ValueError(
            f"no estimate for {launch.kernel}: it uses tcgen05, Blackwell's tensor memory, and nobody has measured for "
            "this model how fast that is"
        )
    known, work = rates(device), work_of(launch, device).times(blocks, each, footprint)
    if work.products and not known.mma_flops:
        raise ValueError(f"no estimate for {launch.kernel}: the {device.name} has no tensor cores")
    time = launch_time(work, known, warm=warm)
    large = [r.name for r in time.resources if r.seconds >= SHOWN * time.seconds]
    lifted = {name: launch_time(work, known, warm=warm, without=_together(name)).seconds for name in large}
    lines, warnings = _lines(launch, work, known, time.limit), tuple(_warnings(launch, work, known))
    return Estimate(launch, device, time, lifted, lines, warnings, blocks, each)


def _together(name: str) -> frozenset[str]:
    """Return the resources that are lifted with one: wavefronts of shared memory also pass the data path of the L1."""
    return frozenset(("shared memory", "L1 data path") if name in ("shared memory", "L1 data path") else (name,))


def _warnings(launch: LaunchRecord, work: Work, known: Rates) -> list[str]:
    """Return what the launch does that makes the estimate too low or too high, by machine code and addresses."""
    machine = machine_counts(launch, known.card)
    found = [text for test, text in _UNKNOWN if any(test(row) for row in machine.rows if row.warps)]
    if any("CAS" in row.opcode and work.code[row.block].loop >= 0 for row in work.rows if row.warps):
        found.append(
            "Uncertain: a loop of compare-and-swap tries again as often as in the simulator, whose threads take turns "
            "otherwise than a GPU's."
        )
    return [*found, *machine.notes]


def label(card: Card, *limits: str) -> str:
    """Return what an estimate for a card must say of itself: that it is one, and how far such estimates were off.

    `limits`: the resources that limit the launches, whose own errors are given where they are known.
    """
    text = "An estimate by arithmetic, no measurement."
    known = _published().get(card.name)
    if known is None:
        return f"{text} Not validated for the {card.name}: rates are published ones, or the H100's."
    text += (
        f" On {known['launches']} launches held out while it was built it was off by {known['mean_percent']:.0f} % on "
        f"average ({known['within_30']} within 30 %), before its last change, on {known['device']}, {known['date']}; "
        "see docs/trust.md."
    )
    for limit in dict.fromkeys(limits):
        own = known.get("limits", {}).get(limit)
        if own is not None:
            text += (
                f" The {own['launches']} of these launches with this limit ({limit}) were off by "
                f"{own['mean_percent']:.0f} % on average."
            )
    return text


@cache
def _published() -> dict:
    return json.loads(_ERROR.read_text())


def _amount(resource: Resource) -> str:
    return "" if resource.name == LAUNCH else quantity(resource.work, resource.unit)


def _lines(launch: LaunchRecord, work: Work, known: Rates, limit: str) -> tuple[SourceLine, ...]:
    """Return the lines with the largest shares of what limits the launch, at most MOST_LINES."""
    if limit in NO_LINES:
        return ()
    weights = _weights(launch, work, known, limit)
    total = sum(weights.values())
    if not total:
        return ()
    largest = sorted(weights, key=lambda place: -weights[place])[:MOST_LINES]
    found = []
    for file, number in largest:
        if weights[file, number]:
            code = source_lines(launch, file, [number])[number]
            found.append(SourceLine(file, number, code, weights[file, number] / total))
    return tuple(found)


def _weights(launch: LaunchRecord, work: Work, known: Rates, limit: str) -> dict[tuple[str, int], float]:
    """Return what each line adds to a resource: by machine instructions, or by the counters of memory."""
    if limit == LATENCY:
        found = waits_by_line(work, known)
    elif limit == "issue slots" or limit.endswith((" pipe", " instructions")):
        what = limit.rpartition(" ")[0]
        found = {}
        for row in work.rows:
            if limit == "issue slots" or what in (row.pipe, row.name):
                found[row.file, row.line] = found.get((row.file, row.line), 0.0) + row.warps
    else:
        found = {place: _weight(counts, limit) for place, counts in launch.lines.items()}
    return {place: weight for place, weight in found.items() if place in launch.lines}


def _weight(counts: Counts, limit: str) -> float:
    """Return what a line adds to a resource of memory, or to the tensor cores."""
    sectors = counts.global_load_sectors + counts.global_store_sectors
    shared = sum(getattr(counts, f"shared_{kind}_wavefronts") for kind in ("load", "store", "copy", "atomic"))
    if limit in ("DRAM", "L2", "path to the L2"):
        return sectors
    if limit == "stores of parts of sectors":
        return counts.global_store_sectors
    if limit == "atomics":
        return counts.global_atomic_sectors
    if limit == "shared memory":
        return shared
    if limit == "L1 data path":
        return shared + sectors / 4
    return counts.tensor_operations if limit == "tensor cores" else counts.warp_instructions
