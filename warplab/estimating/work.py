"""What a launch asks of a card, in plain numbers: taken from its profile and its machine code, and independent of time.

`Work` can be kept as JSON, so that a launch is simulated once and estimated often, and multiplied, so that a small
launch stands for a large one of the same kind.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from warplab.compile.control_codes import Control, controls
from warplab.estimating.machine_counts import MachineCounts, machine_counts
from warplab.hardware.cards import Card
from warplab.launch.launch_record import LaunchRecord
from warplab.simulator.constants import SECTOR_BYTES, WARP_SIZE
from warplab.simulator.translate.basic_blocks import loops

VERSION = 9  # of what is kept
# Machine instructions by the beginning of the counters that they add to; all others add to them all.
_COUNTED = {
    "global_load": ("LDG", "LD", "LDGSTS"),
    "global_store": ("STG", "ST"),
    "shared_load": ("LDS", "LDSM"),
    "shared_store": ("STS", "STSM"),
    "shared_copy": ("LDGSTS",),
    "global_atomic": ("ATOMG", "ATOM", "RED", "REDG"),
    "shared_atomic": ("ATOMS",),
    "barriers": ("BAR",),
    "tensor": ("HMMA", "IMMA", "DMMA"),
}
_REUSE = (
    *("requests", "lines", "passes", "atomics", "hottest_word"),
    *("atomic_lines", "atomic_requests", "atomic_passes", "atomic_turns", "even_lines", "sectors"),
    *("fresh", "fresh_blocks", "page_sectors"),
    *("in_step", "whole", "whole_requests", "whole_blocks", "roaming", "roamed"),
)
LINE_BYTES = 128
ALL_BLOCKS = 0.9  # of the bytes that atomics reach, in lines of watched blocks, from which on all blocks share them
LEAST_SHARE = 0.2  # of the instructions, in a loop whose trips are looked at
MOST_APART = 3.0  # factor between the instructions of machine code and of PTX that is believed


@dataclass(frozen=True)
class Row:
    """A machine instruction with its control bits. `block`: of the code. `warps`: how often warps issued it."""

    text: str
    opcode: str
    pipe: str
    stall: int
    writes: int
    reads: int
    waits: int
    block: int
    warps: float
    file: str
    line: int

    @functools.cached_property
    def boards(self) -> tuple[int, ...]:
        """Return numbers of the scoreboards that it waits for."""
        return Control(self.stall, self.writes, self.reads, self.waits).boards

    @functools.cached_property
    def name(self) -> str:
        """Return the opcode without modifiers."""
        return self.opcode.partition(".")[0]


@dataclass(frozen=True)
class CodeBlock:
    """A basic block of machine code: rows[first:end]. `loop`: head of the loop around it, -1 for none."""

    first: int
    end: int
    warps: float
    loop: int


@dataclass(frozen=True)
class Uneven:
    """The loop in which most instructions run, where its trips differ from thread to thread.

    `share`: of the launch's instructions in it (0 to 1). `trips`: how many threads went round it how often, in few
    steps. `mean`: trips of a warp, the longest of its threads', on average. `entries`: how often a thread begins it.
    """

    share: float
    trips: dict[float, float]
    mean: float
    entries: float


@dataclass(frozen=True)
class Work:
    """One launch. `blocks`: of the grid; `threads`: of a block; `shared_bytes`: of a block, dynamic ones included.

    `counts`: as `Counts`, by name. `loaded`, `stored`: distinct bytes. `hits`: by bytes of cache for one block, the
    share of sectors read that it serves. `ready`, `ready_blocks`, `pair_bytes`, `hottest`, `atomic_addresses`: as in
    `Reuse`. `products`: matrix products by shape and types. `rows`, `code`: the machine code. `sources`: texts of
    source files. `reuse`: further numbers of `Reuse` by name, and of stores. `uneven`: how different the
    ways of the threads are, None where they are not.
    """

    kernel: str
    blocks: float
    threads: int
    registers: int
    shared_bytes: int
    barriers: int
    counts: dict[str, float]
    loaded: float
    stored: float
    hits: dict[int, float]
    again: float
    pair_bytes: float
    hottest: float
    atomic_addresses: float
    products: dict[str, float]
    rows: tuple[Row, ...]
    code: tuple[CodeBlock, ...]
    sources: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    reuse: dict[str, float] = field(default_factory=dict)
    uneven: Uneven | None = None
    ready: dict[int, float] = field(default_factory=dict)
    ready_blocks: dict[int, float] = field(default_factory=dict)

    @property
    def warps(self) -> float:
        """Return warps of the launch."""
        return self.blocks * self.warps_per_block

    @property
    def warps_per_block(self) -> int:
        """Return warps of a block, the last one perhaps not full."""
        return -(-self.threads // WARP_SIZE)

    @property
    def instructions(self) -> float:
        """Return the machine instructions, once per warp."""
        return sum(row.warps for row in self.rows)

    def times(self, blocks: float = 1.0, each: float = 1.0, footprint: tuple[float, float] | None = None) -> Work:
        """Return the work of a launch with `blocks` times the blocks, whose loops run `each` times as long.

        `footprint`: its distinct bytes loaded and stored, where they do not grow with both.
        """
        loaded, stored = footprint or (self.loaded * blocks * each, self.stored * blocks * each)
        longer = [blocks * (each if block.loop >= 0 else 1.0) for block in self.code]
        counts = {name: n * blocks * self._longer(name, each) for name, n in self.counts.items()}
        return replace(
            self,
            blocks=self.blocks * blocks,
            counts=counts,
            loaded=loaded,
            stored=stored,
            products={name: n * blocks * self._longer("tensor", each) for name, n in self.products.items()},
            reuse=self.reuse
            | self._atomic_bytes(blocks * each, stored if footprint else math.inf)
            | ({} if footprint else {"roamed": self.reuse.get("roamed", 0.0) * blocks * each}),
            rows=tuple(replace(row, warps=row.warps * longer[row.block]) for row in self.rows),
            code=tuple(replace(one, warps=one.warps * more) for one, more in zip(self.code, longer, strict=True)),
        )

    def _atomic_bytes(self, times: float, stored: float) -> dict[str, float]:
        """Return the bytes that atomics reach of so many times the work, which stores `stored`: no more where few
        blocks reach them all."""
        found = self.reuse.get("atomic_bytes", 0.0)
        if not found:
            return {}
        shared = self.reuse.get("atomic_lines", 0.0) * LINE_BYTES >= ALL_BLOCKS * found
        return {"atomic_bytes": found if shared else min(found * times, stored)}

    def _longer(self, counter: str, each: float) -> float:
        """Return how much a counter grows if loops run `each` times as long: by its instructions' share in loops."""
        opcodes = next((found for start, found in _COUNTED.items() if counter.startswith(start)), None)
        rows = [row for row in self.rows if opcodes is None or row.name in opcodes]
        every = sum(row.warps for row in rows)
        looped = sum(row.warps for row in rows if self.code[row.block].loop >= 0)
        return 1 + (each - 1) * looped / every if every else each

    def as_json(self) -> dict[str, Any]:
        """Return the work in JSON types, without source texts."""
        return {**asdict(self), "sources": {}}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Work:
        """Return the work that `as_json` wrote."""
        known = dict(values)
        for name in ("hits", "ready", "ready_blocks"):
            known[name] = {int(size): share for size, share in known[name].items()}
        known["rows"] = tuple(Row(**row) for row in known["rows"])
        known["code"] = tuple(CodeBlock(**block) for block in known["code"])
        if known.get("uneven"):
            trips = {float(number): threads for number, threads in known["uneven"]["trips"].items()}
            known["uneven"] = Uneven(**{**known["uneven"], "trips": trips})
        return cls(**known)


def work_of(launch: LaunchRecord, card: Card) -> Work:
    """Return what `launch` asks of `card`. Raises ValueError where the launch has no counters or no machine code."""
    if launch.counts.warp_instructions == 0 or launch.reuse is None:
        raise ValueError(
            f"the profile of {launch.kernel} holds no counts, as counters were off; launch it in `with profile():`"
        )
    machine = machine_counts(launch, card)
    rows, code = _code(launch, machine)
    reuse = launch.reuse
    if math.prod(launch.grid) == 1:  # what it reads whole another block need not share with it
        reuse = replace(reuse, whole=0.0, whole_requests=0.0, whole_blocks=0.0)
    return Work(
        kernel=launch.kernel,
        blocks=math.prod(launch.grid),
        threads=math.prod(launch.block),
        registers=machine.resources.registers,
        shared_bytes=launch.static.get("shared_bytes") or machine.resources.shared_bytes,
        barriers=machine.resources.barriers,
        counts={name: float(n) for name, n in launch.counts.as_dict().items() if n},
        loaded=launch.footprint.get("global_load_bytes", 0),
        stored=launch.footprint.get("global_store_bytes", 0),
        hits=dict(reuse.hits),
        again=reuse.again,
        pair_bytes=reuse.pair_bytes,
        hottest=reuse.hottest,
        atomic_addresses=reuse.atomic_addresses,
        products={name: float(n) for name, n in launch.tensor_operations.items()},
        rows=rows,
        code=code,
        sources=dict(launch.sources),
        reuse={
            **{name: float(getattr(reuse, name)) for name in _REUSE},
            "atomic_bytes": float(launch.footprint.get("global_atomic_bytes", 0)),
            "store_lines": _lines_of_stores(launch),
            **dict(zip(("store_span", "store_again"), _span_of_stores(launch), strict=True)),
        },
        uneven=uneven_of(launch),
        ready=dict(reuse.ready),
        ready_blocks=dict(reuse.ready_blocks),
    )


def _lines_of_stores(launch: LaunchRecord) -> float:
    """Return in how many lines of 128 bytes a sector of a warp's store lies, 1/4 to 1, of those traced; 1 without."""
    lines = sectors = 0
    for access in launch.accesses:
        if (access.op, access.space) == ("store", "global"):
            warps = access.block * (1 << 10) + access.thread // WARP_SIZE
            addresses = access.address.view(np.int64)
            own = (np.unique(np.stack([warps, addresses >> bits]), axis=1).shape[1] for bits in (7, 5))
            lines, sectors = (total + more for total, more in zip((lines, sectors), own, strict=True))
    return lines / sectors if sectors else 1.0


def _span_of_stores(launch: LaunchRecord) -> tuple[float, float]:
    """Return how many lines of 128 bytes the first traced warp touches from its first store to a sector until its last,
    on average of the sectors that it fills by several stores, and the share of these among those that a store fills in
    part; 0 without."""
    touched: list[np.ndarray] = []
    ends: dict[int, tuple[int, int]] = {}
    for access in launch.accesses:
        places = access.address.view(np.int64)[(access.block == 0) & (access.thread < WARP_SIZE)]
        if access.space == "global" and places.size:
            if access.op == "store":
                sectors, lanes = np.unique(places >> 5, return_counts=True)
                for sector in sectors[lanes * access.width < SECTOR_BYTES].tolist():
                    ends[sector] = ends.get(sector, (len(touched), 0))[0], len(touched)
            touched.append(places >> 7)
    spans = {
        (first, last): np.unique(np.concatenate(touched[first : last + 1])).size
        for first, last in {*ends.values()}
        if first < last
    }
    lines = [spans[one] for one in ends.values() if one in spans]
    return (float(np.mean(lines)), len(lines) / len(ends)) if lines else (0.0, 0.0)


def uneven_of(launch: LaunchRecord) -> Uneven | None:
    """Return how uneven the threads' ways through the launch's busiest loop are; None if they all go round it as
    often."""
    flow = launch.flow
    if flow is None:
        return None
    ends = loops(flow.translation.blocks)
    static = [sum(c.instructions for c in lines.values()) for lines in flow.translation.static_counts]
    # Instructions of each loop without those of loops inside it.
    own: dict[int, float] = dict.fromkeys(ends, 0.0)
    for number, warps in enumerate(flow.warps):
        around = [head for head, end in ends.items() if head <= number <= end]
        if around:
            own[max(around)] += warps * static[number]
    every = sum(warps * n for warps, n in zip(flow.warps, static, strict=True))
    if not own or not every:
        return None
    head = max(own, key=lambda one: own[one])
    trips = flow.trips.get(head, {})
    if len(trips) < 2 or own[head] < LEAST_SHARE * every:
        return None
    begun = math.prod(launch.grid) * math.prod(launch.block)
    entries = sum(trips.values()) / begun
    if entries < 1:
        trips, entries = {0: begun * (1 - entries), **trips}, 1.0
    warps = math.prod(launch.grid) * -(-math.prod(launch.block) // WARP_SIZE)
    mean = flow.warps[head] / (warps * entries)
    return Uneven(own[head] / every, _few_steps(trips), mean, entries)


def _few_steps(trips: dict[int, float], steps: int = 64) -> dict[float, float]:
    """Return a distribution with at most so many different numbers, each the mean of neighbours; the largest stays."""
    numbers = sorted(trips)
    if len(numbers) <= steps:
        return {float(n): float(trips[n]) for n in numbers}
    largest = numbers.pop()
    each = sum(trips[n] for n in numbers) / (steps - 1)
    result: dict[float, float] = {}
    threads = total = 0.0
    for n in numbers:
        threads, total = threads + trips[n], total + n * trips[n]
        if threads >= each:
            result[total / threads] = threads
            threads = total = 0.0
    if threads:
        result[total / threads] = threads
    result[float(largest)] = float(trips[largest])
    return result


def _code(launch: LaunchRecord, machine: MachineCounts) -> tuple[tuple[Row, ...], tuple[CodeBlock, ...]]:
    """Return the machine code with how often it ran.

    Where that adds up to far more or far fewer instructions than the PTX's, each source line's instructions of the PTX
    are spread evenly over the machine instructions that come from the line.
    """
    bits = controls(machine.cubin, machine.resources.kernel)
    warps = [row.warps for row in machine.rows]
    of_ptx = launch.counts.warp_instructions
    if not 1 / MOST_APART < sum(warps) / of_ptx < MOST_APART:
        rows_of = Counter((row.file, row.line) for row in machine.rows)
        warps = [
            launch.lines[row.file, row.line].warp_instructions / rows_of[row.file, row.line]
            if (row.file, row.line) in launch.lines
            else machine.blocks[0].warps
            for row in machine.rows
        ]
    rows = tuple(
        Row(row.text, row.opcode, row.pipe, *bits[row.address], row.block, often, row.file, row.line)
        for row, often in zip(machine.rows, warps, strict=True)
    )
    blocks = tuple(
        CodeBlock(b.first, b.end, sum(warps[b.first : b.end]) / max(1, b.end - b.first), b.loop) for b in machine.blocks
    )
    return rows, blocks
