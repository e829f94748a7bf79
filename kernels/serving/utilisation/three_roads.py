"""Three roads to a faster kernel: memory, instructions, latency, and which one a launch is on, by its counters.

    with profile() as p:
        kernel[grid, block](a, b, out)
    decide(p)

Three times are reckoned for a card, each as if nothing else took any:

    memory         the longest of: distinct sectors / DRAM bandwidth; sectors that a store fills in part, at the rate at
                   which the L2 takes them; one 128-byte line per clock and SM between the L1 cache or shared memory
                   and the threads (bank conflicts and requests that touch many lines cost there)
    instructions   the longest of: FP64, FP32, FP16 operations, tensor operations / peak; warp instructions / issue rate
    latency        rounds of blocks x the time of one warp in which each instruction waits for the one before it: a
                   few clocks for arithmetic, hundreds for a load from DRAM; divided by the instructions of one thread
                   that are `independent`, which its source shows: accumulators, loads before the first use

The launch takes its measured time, where there is one, else the longest of the three. If memory and instructions each
account for less than 60 % of it, the launch waits: the road is latency, as Nsight Compute's rule "Latency Issue" has it
(section SpeedOfLight). Else it is the larger of the two. The two are bounds from below, the latency time an estimate;
nothing here is a measurement.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from warplab.estimating.roofline import footprint, roofline
from warplab.hardware.cards import Card
from warplab.hardware.cards import card as find_card
from warplab.hardware.occupancy import Occupancy, theoretical
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profile_queries import launches, size
from warplab.simulator.constants import SECTOR_BYTES, WARP_SIZE
from warplab.simulator.ptx import fragments
from warplab.text.tables import count

MEMORY, INSTRUCTIONS, LATENCY = "memory", "instructions", "latency"
ROADS = (MEMORY, INSTRUCTIONS, LATENCY)
LEAST = 0.6  # share of the time below which a resource does not explain it (Nsight Compute, section SpeedOfLight)
LINE_BYTES = 128  # per clock and SM: 32 banks of 4 bytes (CUDA C++ Programming Guide)
# What the L2 takes per second of stores that fill sectors in part, on an H100 80GB HBM3 (recordings.json, "scattered",
# 2026-11-23: the fastest of its sizes), also taken for other cards: sectors, counting those that full ones would not
# need; and 128-byte lines, as each is looked up for itself.
UNFILLED_SECTORS, UNFILLED_LINES = 8.08e10, 5.04e10
# Seconds from a load to the instruction that needs its result, on an H100 80GB HBM3 (recordings.json, "latency",
# 2026-11-23), also taken for other cards.
LOAD_SECONDS = {"L1": 1.99e-8, "L2": 1.42e-7, "DRAM": 3.46e-7}
# Clocks from Volta on until a result of arithmetic can be used (Jia and others, "Dissecting the NVIDIA Volta GPU
# Architecture via Microbenchmarking", 2018); a step of spin.cu takes an H100 4.4, its loop included ("latency").
ARITHMETIC_CLOCKS = 4
# Rate of tensor operations by type of the factors, to that of FP16 (data sheets of A100 and H100, dense).
TENSOR_RATES = {"f16": 1.0, "bf16": 1.0, "tf32": 0.5, "s8": 2.0, "u8": 2.0, "e4m3": 2.0, "e5m2": 2.0}


@dataclass(frozen=True)
class Decision:
    """Which road a launch is on, on a card.

    `seconds`: what it takes, `measured` or reckoned. `terms`: seconds of every term, by road and name. `occupancy`: as
    block size and shared memory allow it. `waves`: blocks of the grid to those that the card has room for at once.
    """

    launch: LaunchRecord
    card: Card
    seconds: float
    measured: bool
    terms: Mapping[str, Mapping[str, float]]
    occupancy: Occupancy
    waves: float
    name: str

    @property
    def memory(self) -> float:
        """Return the share of the time that memory accounts for."""
        return max(self.terms[MEMORY].values(), default=0.0) / self.seconds

    @property
    def instructions(self) -> float:
        """Return the share of the time that instructions account for."""
        return max(self.terms[INSTRUCTIONS].values(), default=0.0) / self.seconds

    @property
    def road(self) -> str:
        """MEMORY, INSTRUCTIONS or LATENCY."""
        return chosen(self.memory, self.instructions)

    @property
    def advice(self) -> list[str]:
        """Return what to try, the most telling counter first."""
        return {MEMORY: _of_memory, INSTRUCTIONS: _of_instructions, LATENCY: _of_latency}[self.road](self)

    def text(self) -> str:
        """Return the decision in lines: shares of the launch's time, by road and term, then what to try."""
        how = "measured" if self.measured else "reckoned from counters, not measured"
        lines = [f"{self.name}, {size(self.launch)} on {self.card.full_name}: {self.road}"]
        lines.append(f"  of its time ({how})")
        for road in ROADS:
            named = ", ".join(f"{name} {_percent(time / self.seconds)}" for name, time in self.terms[road].items())
            lines.append(f"  {road:12}  {named or 'nothing'}")
        return "\n".join([*lines, *(f"  - {line}" for line in self.advice)])

    __str__ = __repr__ = text


def chosen(memory: float, instructions: float) -> str:
    """Return the road, from the shares of the time that memory and instructions account for."""
    if max(memory, instructions) < LEAST:
        return LATENCY
    return MEMORY if memory >= instructions else INSTRUCTIONS


def decide(
    profile: object, card: str | Card = "H100", seconds: float | None = None, *, independent: float = 1, name: str = ""
) -> Decision:
    """Decide for one launch. `profile`: of exactly one launch, or the launch. `seconds`: that it took on that card.

    A launch that a profile timed on such a GPU brings its seconds along. `independent`: instructions of one thread that
    need not wait for each other, at least 1. `name`: else the kernel's. Raises ValueError for several launches, where
    the profile holds no counts, for blocks that do not fit on the card, and for a time that is not positive.
    """
    prediction = roofline(profile, card)  # checks the profile
    launch, card = launches(profile)[0], find_card(card)
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds is {seconds}; a launch takes a positive time, so measure it or leave it out")
    if not independent >= 1:
        raise ValueError(f"independent is {independent}; a thread has at least one instruction to run")
    if seconds is None and launch.gpu_seconds and card.name in (launch.gpu_name or ""):
        seconds = launch.gpu_seconds
    fits = theoretical(
        card,
        prod(launch.block),
        shared_bytes=launch.static.get("shared_bytes") or 0,
        registers=launch.static.get("registers") or 0,
    )
    if not fits.blocks:
        raise ValueError(f"{launch.kernel} does not run on {card.full_name}: {fits.problem}")
    throughput = {term.name: term.seconds for term in prediction.terms}
    waves = prod(launch.grid) / (fits.blocks * card.sms)
    terms = {
        MEMORY: _present(
            {
                "DRAM": throughput.pop("memory", 0.0),
                "sectors stored in part": _unfilled_seconds(launch),
                "L1 and shared memory": _l1_seconds(launch, card),
            }
        ),
        INSTRUCTIONS: _present({**throughput, "tensor": _tensor_seconds(launch, card)}),
        LATENCY: {"one warp after the other": math.ceil(waves) * _warp_seconds(launch, card) / independent},
    }
    reckoned = max(value for road in terms.values() for value in road.values())
    return Decision(launch, card, seconds or reckoned, seconds is not None, terms, fits, waves, name or launch.kernel)


def _present(terms: dict[str, float]) -> dict[str, float]:
    return {name: seconds for name, seconds in terms.items() if seconds}


def _used(launch: LaunchRecord, card: Card) -> int:
    """Count the SMs that get a block."""
    return min(card.sms, prod(launch.grid))


def _unfilled_seconds(launch: LaunchRecord) -> float:
    c = launch.counts
    sectors = max(0.0, c.global_store_sectors - c.global_store_bytes / SECTOR_BYTES)  # beyond those that bytes fill
    return max(sectors / UNFILLED_SECTORS, sectors * _lines_per_sector(launch, ("store",)) / UNFILLED_LINES)


def _l1_seconds(launch: LaunchRecord, card: Card) -> float:
    c = launch.counts
    sectors = c.global_load_sectors + c.global_store_sectors + c.global_atomic_sectors
    kinds = ("load", "store", "copy", "atomic")
    wavefronts = sum(getattr(c, f"shared_{kind}_wavefronts") for kind in kinds)
    clocks = wavefronts + sectors * _lines_per_sector(launch)
    return clocks / (_used(launch, card) * card.clock_mhz * 1e6)


def _lines_per_sector(launch: LaunchRecord, ops: tuple[str, ...] = ("load", "store", "atomic")) -> float:
    """Return 128-byte lines to the sectors that traced warps' requests touch; a quarter where none is traced.

    Side by side, four sectors lie in a line; 32 far apart lie in 32 lines, and the L1 takes a clock for each.
    """
    lines = sectors = 0
    for access in launch.accesses:
        if access.space == "global" and access.op in ops:
            warp = access.block.astype(np.uint64) << np.uint64(5) | (access.thread // WARP_SIZE).astype(np.uint64)
            last = access.address + np.uint64(access.width - 1)
            sectors += _distinct(warp, access.address, last, SECTOR_BYTES)
            lines += _distinct(warp, access.address, last, LINE_BYTES)
    return lines / sectors if sectors else SECTOR_BYTES / LINE_BYTES


def _distinct(warp: np.ndarray, first: np.ndarray, last: np.ndarray, size: int) -> int:
    """Count the pieces of `size` bytes that each warp touches, by the first and last byte of each lane's access."""
    places = np.concatenate([first, last]) // np.uint64(size)
    return len(np.unique(np.stack([np.concatenate([warp, warp]), places]), axis=1).T)


def _tensor_seconds(launch: LaunchRecord, card: Card) -> float:
    if not card.tensor_tflops:
        return 0.0
    share = _used(launch, card) / card.sms
    work = 0.0
    for name, times in launch.tensor_operations.items():
        rate = TENSOR_RATES.get(name.split(".")[2], 1.0)
        work += times * fragments.flops(name) / rate
    return work / (card.tensor_tflops * 1e12 * share)


def _warp_seconds(launch: LaunchRecord, card: Card) -> float:
    """Return how long one warp takes if each of its instructions waits for the one before it."""
    c, warps = launch.counts, prod(launch.grid) * -(-prod(launch.block) // WARP_SIZE)
    clock = card.clock_mhz * 1e6
    loaded = SECTOR_BYTES * c.global_load_sectors
    first = min(1.0, launch.footprint.get("global_load_bytes", 0) / loaded) if loaded else 0.0
    global_load = first * LOAD_SECONDS["DRAM"] + (1 - first) * LOAD_SECONDS["L2"]
    waits = (c.global_load_requests + c.global_atomic_requests) * global_load
    waits += (c.shared_load_wavefronts + c.shared_atomic_wavefronts) * LOAD_SECONDS["L1"]
    return (c.warp_instructions * ARITHMETIC_CLOCKS / clock + waits) / warps


def _of_memory(found: Decision) -> list[str]:
    c, lines = found.launch.counts, []
    for kind in ("load", "store"):
        sectors, asked = getattr(c, f"global_{kind}_sectors"), getattr(c, f"global_{kind}_bytes")
        if sectors and (share := asked / (SECTOR_BYTES * sectors)) < 0.9:
            requests = getattr(c, f"global_{kind}_requests")
            lines.append(
                f"coalesce {kind}s: {sectors / requests:.3g} sectors per request, of whose bytes threads use "
                f"{_percent(share)}"
            )
    conflicts = sum(getattr(c, f"shared_{kind}_conflicts") for kind in ("load", "store", "copy", "atomic"))
    if conflicts:
        lines.append(f"avoid bank conflicts ({count(conflicts)}): pad or swizzle the tile")
    moved = SECTOR_BYTES * (c.global_load_sectors + c.global_store_sectors)
    if footprint(found.launch) and moved > 2 * footprint(found.launch):
        times = moved / footprint(found.launch)
        lines.append(
            f"read once: each sector crosses the L1 {times:.3g} times; keep a tile in shared memory or registers"
        )
    if c.local_load_requests + c.local_store_requests:
        lines.append("use fewer registers: some were spilled to local memory")
    lines.append("move fewer bytes: a smaller type, or fuse with the kernel before or after")
    return lines


def _of_instructions(found: Decision) -> list[str]:
    c, lines = found.launch.counts, []
    efficiency = c.warp_efficiency or 1.0
    if efficiency < 0.9:
        lines.append(f"let warps go one way: {_percent(efficiency)} of the lanes work, on average")
    if c.flops_f64:
        lines.append("compute in float32, if that is exact enough: FP64 has its own, fewer cores")
    largest = max(found.terms[INSTRUCTIONS], key=lambda name: found.terms[INSTRUCTIONS][name])
    if largest == "instructions":
        lines.append("do more per instruction: 16-byte accesses, several elements per thread, unrolled loops")
    if c.flops_f32 and not c.tensor_operations and largest == "FP32":
        lines.append("take tensor cores if it is a matrix product and rounding allows it")
    lines.append("compute less: another algorithm, cheaper functions")
    return lines


def _of_latency(found: Decision) -> list[str]:
    lines, blocks = [], prod(found.launch.grid)
    if blocks < found.card.sms:
        lines.append(
            f"give the card more work at a time: {count(blocks)} block{'s' * (blocks != 1)} for {found.card.sms} SMs; "
            "a larger batch, other streams, or processes that share the card"
        )
    elif found.waves < 1:
        lines.append(f"a larger grid: this one fills {_percent(found.waves)} of the card's room for blocks")
    if found.occupancy.fraction < 0.5:
        lines.append(f"raise occupancy: {found.occupancy}")
    if found.launch.counts.barriers:
        lines.append("wait less at barriers: more blocks on an SM, or copies that run ahead")
    lines.append("let each thread have several independent loads and sums in flight")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
