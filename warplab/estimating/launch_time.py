"""The time of a launch on a card by mechanism: what each resource needs, and what latency leaves unhidden.

Blocks come to the multiprocessors (SMs) in waves of as many as fit. For the blocks that share an SM at a time

    latency     cycles of one warp that has the SM to itself (`warp_latency`), with the latency of loads by where the
                caches find them, all warps of the SM waiting at the same time; and until the next block has begun
    SM          the busiest of issue slots, pipes, data path of L1 and shared memory (wavefronts), path to the L2
    memory      the busiest of L2, DRAM, atomics (`atomics`) and the start of blocks, which all SMs share

and the wave takes (latency^p + busiest^p)^(1/p): against memory p is the bend between latency and bandwidth, measured
where warps load and wait (`Rates.knee`), and 4 of both against resources of the SM, whose queues are short. Between
barriers the blocks of an SM take turns at it instead: few customers of a closed queue. What it costs that warps differ
in length comes on top (`uneven_work`), and the launch itself.

Reads reach the L2 where the L1 does not serve them (`simulator.count.reuse`). What the L2 has not seen, or has lost
again, comes from DRAM, in pieces of at least `Rates.memory_bytes`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from warplab.estimating.atomics import global_seconds, shared_wavefronts
from warplab.estimating.dependence import looked_up
from warplab.estimating.rates import L2_USED, RARE, SLOW, SLOW_OTHERS, Rates
from warplab.estimating.register_reads import issue_clocks
from warplab.estimating.uneven_work import MOST_ENTRIES, longer, stretch
from warplab.estimating.warp_latency import BARRIER_WARP, SHARED, Access, cycles, cycles_by_line
from warplab.estimating.work import LINE_BYTES, Row, Work
from warplab.hardware import occupancy
from warplab.simulator.constants import SECTOR_BYTES
from warplab.simulator.ptx import fragments

SM_KNEE = 4  # assumed: of the bends between the resources of an SM, and between these and what waits
L2_PATH = 64  # bytes per clock from the L2 to an SM: assumed, as usual in microbenchmarks; no sweep here reaches it
LOOKED_UP = 0.25  # share of loads whose places were loaded, from which on blocks read anywhere
OWN = 0.5  # share of distinct bytes among those that blocks read first, from which on they count as the blocks' own
SINGLE = 1.77  # sectors that take the L2 as long as a single one (sweeps.json: scattered, 136 against 241 billion)
APART, MANY_LINES = 1.5, 8  # bytes in pairs for each byte read, and lines of a request, from which on lanes read apart
PAGE_LINES = 24  # of the 32 in 4 KiB, from which on lines count as side by side
SIDE_BY_SIDE = (
    1.4  # times as fast as anywhere is a sector of each line, one line after the other (sweeps.json: in_order)
)
LINES = 4  # whose tags the L1 looks up per clock (sweeps.json: l1_hits)
LOCAL = 5.5  # clocks of the L1 for a load or store of local memory (sweeps.json: local_memory, 16 words)
LOADS = ("LDG", "LD", "LDGSTS")
HALF_FMA = ("IMAD", "VIADD")  # of the FMA pipe, at the rate of integers
WAVEFRONT_SECTORS = 4  # that the L1 serves per clock: 128 bytes
NEXT_BLOCK = 295  # cycles from a block's end to the start of the one that takes its place (sweeps_h200.json: gaps)
MANY_WAVES = 8  # from which on the waves of SMs no longer end together
LAUNCH, LATENCY = "launch", "latency"


@dataclass(frozen=True)
class Resource:
    """One resource: the seconds that the launch would take if nothing else limited it, and for what work."""

    name: str
    seconds: float
    work: float
    unit: str
    group: str  # "SM", "memory" or "latency"


@dataclass(frozen=True)
class LaunchTime:
    """Seconds of a launch, and of each resource alone."""

    seconds: float
    resources: tuple[Resource, ...]
    blocks_per_sm: int
    waves: float
    l1_hits: float
    l2_hits: float
    warp_cycles: float

    @property
    def limit(self) -> str:
        """Return the resource that needs most time, or the launch itself."""
        return max(self.resources, key=lambda r: r.seconds).name


def launch_time(work: Work, rates: Rates, *, warm: bool = False, without: frozenset[str] = frozenset()) -> LaunchTime:
    """Return the time of a launch. `warm`: what it loads is in the L2 already, if all its data fit there.

    `without`: resources that cost nothing, to see what they are worth.
    """
    return _Model(work, rates, warm, without).result()


def waits_by_line(work: Work, rates: Rates) -> dict[tuple[str, int], float]:
    """Return the cycles of a warp that has an SM to itself, by file and line."""
    model = _Model(work, rates, warm=False, without=frozenset())
    return cycles_by_line(work, model._latency)


class _Model:
    def __init__(self, work: Work, rates: Rates, warm: bool, without: frozenset[str]) -> None:
        if warm and work.loaded + work.stored <= rates.card.l2_bytes:
            work = replace(work, loaded=0.0, stored=0.0)  # of the DRAM's traffic
        self.work, self.rates, self.without = work, rates, without
        self.work = work = self._read_again()
        self.sms = rates.card.sms
        fits = occupancy.theoretical(
            rates.card, work.threads, registers=work.registers, shared_bytes=work.shared_bytes, barriers=work.barriers
        )
        self.resident = max(1, fits.blocks)
        self.at_once = max(1, min(self.resident, math.ceil(work.blocks / self.sms)))
        self._between = _together(work)
        self.loaded = work.loaded + self._lost()
        self.l1_hits, self.l2_hits = self._hits()
        self._misses = self._in_order()
        self._turns = {kind: self._turn(kind) for kind in ("load", "store")}
        self.resources = [r for r in self._resources() if r.work]
        self.waits = cycles(work, self._latency)
        self.together = max(self._between, self._in_step())
        self.warp_cycles = self.waits + self._siblings()

    # -- caches ------------------------------------------------------------------------------------------------------

    def _count(self, *names: str) -> float:
        return sum(self.work.counts.get(name, 0.0) for name in names)

    def _read_again(self) -> Work:
        """Return the work with what a block reads first no more than all of the launch, and arrays that all blocks read
        whole no more than what is left beside what each reads alone: passes that were not simulated read it again."""
        work, read = self.work, self._count("global_load_sectors") * SECTOR_BYTES
        first, whole = 1 - work.again, work.reuse.get("whole", 0.0)
        if not (read and first and work.again and work.loaded):
            return work
        fewer = min(1.0, work.loaded * work.blocks / (read * first))
        left = (work.loaded - read * (first - whole)) * work.blocks / read
        of_whole = left / whole if 0 < left < whole else fewer
        again = 1 - fewer * (first - whole) - of_whole * whole
        hits, ready, ready_blocks = (
            {size: share * again / work.again for size, share in of.items()}
            for of in (work.hits, work.ready, work.ready_blocks)
        )
        shares = {
            name: n * (of_whole if name.startswith("whole") else (1 - again) / first)
            for name, n in work.reuse.items()
            if name.startswith(("fresh", "whole"))
        }
        return replace(work, again=again, hits=hits, ready=ready, ready_blocks=ready_blocks, reuse=work.reuse | shares)

    def _hits(self) -> tuple[float, float]:
        """Return the share of the sectors read that the L1 serves, and of the rest that the L2 serves."""
        read = self._count("global_load_sectors")
        if not read:
            return 0.0, 0.0
        l1 = self._served_by_l1()
        missed = read * (1 - l1) * SECTOR_BYTES
        return l1, 1 - min(1.0, self.loaded / missed) if missed else 0.0

    def _waits(self, later: float) -> tuple[float, float]:
        """Return the shares of loads that wait for the L2, and of those that wait for the memory. `later`: the share of
        the loads that come after the first wave's.

        Warps advance in step, and all that ask for a sector before it is there wait; between barriers one that waits
        keeps its block. Blocks of the first wave ask for what they share at the same time, too.
        """
        work, reuse, cache = self.work, self.work.reuse, self._l1_of_block()
        ready, ready_blocks = (_at(shares or work.hits, cache) for shares in (work.ready, work.ready_blocks))

        def of(requests: float, blocks: float) -> float:
            return requests + self._between * (blocks - requests)

        served = self._in_l1() * of(reuse.get("whole_requests", 0.0), reuse.get("whole_blocks", 0.0))
        fresh = of(reuse.get("fresh", 1.0), reuse.get("fresh_blocks", 1.0))
        served = max(served, fresh * self._roaming_in_l1())
        waits, fresh = max(0.0, 1 - of(ready, ready_blocks) - served), max(0.0, fresh - served)
        if not waits or not self.loaded:
            return waits, 0.0
        read = self._count("global_load_sectors") * SECTOR_BYTES
        first = read * (1 - work.again)  # by some warp of a block
        share = min(1.0, self.loaded / max(1.0, first))
        share += self._between * (1 - (1 - share) ** work.warps_per_block - share)  # if any of a block's warps waits
        new = 1 - later + later * share
        again = max(0.0, self.loaded - first) / max(1.0, read * (1 - self.l1_hits) - first)
        return waits, min(waits, fresh * new + max(0.0, waits - fresh) * min(1.0, again))

    def _later(self) -> float:
        """Return the share of the blocks that come after the first wave."""
        return 1 - 1 / max(1.0, self.work.blocks / (self.sms * self.resident))

    def _in_l1(self) -> float:
        """Return which part of an array that all blocks read whole a block finds in the L1: that of the blocks after
        the first wave, if the L1 holds what blocks read."""
        read = self._count("global_load_sectors") * SECTOR_BYTES * (1 - self.work.again)
        return self._later() * min(1.0, self._l1_of_block() * self.work.blocks / read) if read else 0.0

    def _roaming_in_l1(self) -> float:
        """Return the share of what a block reads first that lies anywhere in arrays which the L1 holds, where blocks
        after the first wave find it."""
        roamed, reuse = self.work.reuse.get("roamed", 0.0), self.work.reuse
        return self._later() * reuse["roaming"] if 0 < roamed < self._l1_of_block() * self.at_once else 0.0

    def _in_step(self) -> float:
        """Return the share of a warp's cycles for which all warps of the block wait for the same sectors."""
        shared = self.work.reuse.get("in_step", 0.0)
        if not shared or not self.waits:
            return 0.0
        self._misses = dict.fromkeys(self._misses, (_Turns(0.0), _Turns(0.0)))
        ready = cycles(self.work, self._latency)
        self._misses = self._in_order()
        return shared * (1 - ready / self.waits)

    def _l1_of_block(self) -> float:
        """Return the bytes of an SM's L1 that a block has."""
        return max(0, self.rates.l1_bytes - self.at_once * self.work.shared_bytes) / self.at_once

    def _served_by_l1(self) -> float:
        own, again, whole = _at(self.work.hits, self._l1_of_block()), self.work.again, self.work.reuse.get("whole", 0.0)
        # What all blocks read whole, again and again, those of an SM read at about the same time.
        if again < 1:
            own += max(0.0, again - own) * min(1.0, whole / (1 - again)) * (1 - 1 / self.at_once)
        return min(1.0, own + max(self._in_l1() * whole, self._roaming_in_l1() * (1 - again)))

    def _lost(self) -> float:
        """Return the bytes that blocks read again after the L2 has lost them, where each block reads data of its own,
        or where lanes read anywhere in more data than the L2 holds."""
        read = self._count("global_load_sectors") * SECTOR_BYTES
        first = read * (1 - self.work.again)
        l2 = L2_USED * self.rates.card.l2_bytes
        if self.work.reuse.get("roaming") and (self._anywhere() or looked_up(self.work) > LOOKED_UP):
            # Each half of the L2 keeps what its SMs read, so that all of them find in it what half of it holds.
            area = min(self.work.loaded, self.work.reuse["roamed"])
            again = max(0.0, first * self.work.reuse["roaming"] - area)
            return again * max(0.0, 1 - l2 / 2 / area) if area else 0.0
        if not first or self.work.loaded < OWN * first:
            return 0.0
        # What blocks store takes its part of the L2, too.
        room = l2 / (self.at_once * min(self.sms, self.work.blocks)) / (1 + self._to_l2() / read)
        held = max(_at(self.work.hits, room), self._served_by_l1())
        return min(1.0, self.work.loaded / first) * read * max(0.0, self.work.again - held)

    def _group(self, row: Row) -> int:
        """Give a number to loads that miss alike: those of a loop, or of a block of code outside loops."""
        loop = self.work.code[row.block].loop
        return loop if loop >= 0 else -1 - row.block

    def _in_order(self, later: float | None = None) -> dict[int, tuple[_Turns, _Turns]]:
        """Return which loads the L1 and the L2 do not serve: what is read first is not there yet, so those that come
        first."""
        times: dict[int, float] = {}
        for row in self.work.rows:
            if row.name in LOADS:
                times[self._group(row)] = times.get(self._group(row), 0.0) + row.warps
        missed, from_memory = (
            share * sum(times.values()) for share in self._waits(self._later() if later is None else later)
        )
        found = {}
        for group, often in times.items():
            past_l1 = min(often, missed)
            past_l2 = min(past_l1, from_memory)
            missed, from_memory = missed - past_l1, from_memory - past_l2
            found[group] = _Turns(past_l1 / often if often else 0), _Turns(past_l2 / past_l1 if past_l1 else 0)
        return found

    def _latency(self, row: Row) -> Access:
        """Return when a result can be used, and how long other accesses of the warps beside wait."""
        rates = self.rates
        if row.name in LOADS:
            of_l1, of_l2 = self._misses[self._group(row)]
            past_l1 = of_l1.next()
            past = rates.memory_latency if past_l1 and of_l2.next() else rates.l2_latency
            # As often again as they have the L1, by passes and by lines (sweeps: conflicts).
            passes, lines = (self.work.reuse.get(name, 1.0) for name in ("passes", "lines"))
            conflicts = passes + min(passes, max(1.0, lines / LINES)) - 2
            return Access((past if past_l1 else rates.l1_latency) + conflicts, self._turns["load"])
        if row.name in ("STG", "ST"):
            return Access(0.0, self._turns["store"])
        if row.name in ("ATOMG", "ATOM"):
            return Access(rates.atomic_latency)
        if row.name in ("LDS", "LDSM"):
            return Access(rates.shared_latency, self._wavefronts("load"), SHARED)
        if row.name in ("STS", "STSM"):
            return Access(0.0, self._wavefronts("store"), SHARED)
        if row.name == "LDL":
            return Access(rates.l1_latency)
        return Access(SLOW.get(row.name, SLOW_OTHERS))

    def _wavefronts(self, kind: str) -> float:
        """Return the cycles that shared memory needs for one access of each scheduler's warp."""
        requests, wavefronts = (self._count(f"shared_{kind}_{what}") for what in ("requests", "wavefronts"))
        return self._abreast() * wavefronts / requests if requests else 0.0

    def _abreast(self) -> int:
        """Return how many warps issue at the same time: one of each scheduler."""
        return min(self.rates.card.warp_schedulers, self.at_once * self.work.warps_per_block)

    def _busiest(self, group: str) -> float:
        """Return the seconds of the busiest resource of a group, for all blocks."""
        return max((r.seconds for r in self.resources if r.group == group and r.name not in self.without), default=0.0)

    def _of_block(self) -> float:
        """Return how long a block has an SM's resources: about its time at the busiest, and more where others are
        nearly as busy, since warps that wait for the one leave the other idle."""
        busiest = self._busiest("SM")
        if not busiest:
            return 0.0
        found = {r.name: r.seconds for r in self.resources if r.group == "SM" and r.name not in self.without}
        if "L1 data path" in found:
            found.pop("shared memory", None)  # which is a part of it
        together = busiest * sum((n / busiest) ** SM_KNEE for n in found.values()) ** (1 / SM_KNEE)
        # The seconds of a resource are for all blocks on as many SMs as have any.
        return together * min(self.sms, self.work.blocks) / self.work.blocks

    def _siblings(self) -> float:
        """Return the cycles that warps wait at barriers until the SM has served their block, beyond their own code and
        what the barriers take for each of its warps."""
        if not self.together:
            return 0.0
        of_block = self._of_block() * self.rates.clock_hz
        barrier = BARRIER_WARP * self.work.warps_per_block
        own = sum(row.warps * (max(1, row.stall) + barrier * (row.name == "BAR")) for row in self.work.rows)
        return max(0.0, of_block - own / self.work.warps)

    def _turn(self, kind: str) -> float:
        """Return the cycles that the memory needs for one access of each scheduler's warp, all SMs doing the same."""
        requests, sectors = (self._count(f"global_{kind}_{what}") for what in ("requests", "sectors"))
        if not requests:
            return 0.0
        nbytes = self._abreast() * SECTOR_BYTES * sectors / requests
        past_l1 = 1 - self.l1_hits if kind == "load" else 1.0
        past_l2 = past_l1 * (1 - self.l2_hits) if kind == "load" else 1.0
        clock, sms = self.rates.clock_hz, min(self.sms, self.work.blocks)
        of_all = sms * clock * max(past_l1 / self.rates.l2_bandwidth, past_l2 / self.rates.read_bandwidth)
        passes = self._loads_passes() if kind == "load" else self._stores_passes()
        return max(nbytes * max(past_l1 / L2_PATH, of_all), passes / requests)

    # -- resources ---------------------------------------------------------------------------------------------------

    def _resources(self) -> list[Resource]:
        return [*self._of_sm(), *self._of_memory()]

    def _of_sm(self) -> list[Resource]:
        """List the resources' seconds if the work were spread over all SMs that have any."""
        work, rates, found = self.work, self.rates, []
        sms = min(self.sms, work.blocks)
        per_second = sms * rates.clock_hz
        schedulers = min(rates.card.issue_rate, self.at_once * work.warps_per_block)

        def add(name: str, amount: float, per_clock: float, unit: str) -> None:
            found.append(Resource(name, amount / (per_second * per_clock), amount, unit, "SM"))

        issue = issue_clocks(work)
        add("issue slots", work.instructions, schedulers * (work.instructions / issue if issue else 1), "instr")
        pipes: dict[str, float] = {}
        clocks: dict[str, float] = {}
        rare: dict[str, float] = {}
        for row in work.rows:
            rate = rates.card.per_clock.get(row.pipe)
            if row.name in RARE:
                rare[row.name] = rare.get(row.name, 0.0) + row.warps
            elif rate is not None:
                rate = rates.card.per_clock["IMAD"] if row.name in HALF_FMA and "MOV" not in row.opcode else rate
                pipes[row.pipe] = pipes.get(row.pipe, 0) + row.warps
                clocks[row.pipe] = clocks.get(row.pipe, 0) + row.warps / rate
        for name, amount in pipes.items():
            add(f"{name} pipe", amount, amount / clocks[name] if clocks[name] else 1, "instr")
        for name, amount in rare.items():
            add(f"{name} instructions", amount, RARE[name], "instr")
        flops = {name: times * fragments.flops(name) for name, times in work.products.items()}
        if flops:
            seconds = sum(n / rates.tensor_flops(name) for name, n in flops.items()) * self.sms / sms
            found.append(Resource("tensor cores", seconds, sum(flops.values()), "FLOP", "SM"))
        shared = self._count(*(f"shared_{kind}_wavefronts" for kind in ("load", "store", "copy")))
        shared += shared_wavefronts(work)
        add("shared memory", shared, 1, "wavefronts")
        passes = self._loads_passes() + self._stores_passes() + self._local_passes()
        add("L1 data path", shared + passes, 1, "wavefronts")
        add("path to the L2", self._from_l2(), L2_PATH, "B")
        return found

    def _loads_passes(self) -> float:
        """Return the clocks that loads have the L1: one for each pass through its banks or four lines, and one for each
        word of a lane. Copies to shared memory are counted where they write it."""
        requests, sectors = self._count("global_load_requests"), self._count("global_load_sectors")
        if not requests:
            return 0.0
        reuse = self.work.reuse
        if reuse:
            each = max(reuse["passes"], reuse["lines"] / LINES, self._words_of_loads())
        else:
            each = max(1.0, sectors / WAVEFRONT_SECTORS / requests)
        return each * max(0.0, requests - self._count("shared_copy_requests"))

    def _words_of_loads(self) -> float:
        """Return the words of 4 bytes in a lane's load, on average."""
        loads = [(row.warps, _words(row)) for row in self.work.rows if row.name in ("LDG", "LD")]
        every = sum(warps for warps, _ in loads)
        return sum(warps * words for warps, words in loads) / every if every else 1.0

    def _stores_passes(self) -> float:
        requests, sectors = self._count("global_store_requests"), self._count("global_store_sectors")
        return max(requests, sectors / WAVEFRONT_SECTORS)

    def _local_passes(self) -> float:
        """Return the passes of local memory, whose words lie side by side for a warp's lanes."""
        return LOCAL * sum(row.warps * _words(row) for row in self.work.rows if row.name in ("LDL", "STL"))

    def _from_l2(self) -> float:
        return self._count("global_load_sectors") * (1 - self.l1_hits) * SECTOR_BYTES

    def _to_l2(self) -> float:
        return self._count("global_store_sectors") * SECTOR_BYTES

    def _of_memory(self) -> list[Resource]:
        work, rates = self.work, self.rates
        # Sectors come from the L2 in pairs, single ones a little sooner than two.
        loaded, stored = self._from_l2() * min(work.pair_bytes, SINGLE), self._to_l2()
        pieces = max(1.0, min(work.pair_bytes, rates.memory_bytes / SECTOR_BYTES))
        if not self._anywhere():
            pieces = 1 + (pieces - 1) * (1 - self.l2_hits)  # blocks that share sectors share pairs of them
        moved = self.loaded * pieces + work.stored * (1 + self._unfilled()[1])
        share = work.stored / moved if moved else 0.0
        of_loads, of_stores = loaded / rates.l2_bandwidth, stored / rates.l2_stores
        found = [
            Resource("stores of parts of sectors", *self._stores_of_parts(of_loads), "sectors", "memory"),
            Resource(
                "block launches", work.blocks * self._block_clocks() / rates.clock_hz, work.blocks, "blocks", "memory"
            ),
            Resource("L2", of_loads + of_stores, self._from_l2() + stored, "B", "memory"),
            Resource("DRAM", moved / min(rates.bandwidth(share), self._of_pieces()), moved, "B", "memory"),
        ]
        seconds, atomics = global_seconds(work, rates)
        if atomics:
            found.append(Resource("atomics", seconds, atomics, "atomics", "memory"))
        return found

    def _of_pieces(self) -> float:
        """Return the memory's bandwidth where lanes read sectors of lines of their own, which lie anywhere, or in lines
        side by side."""
        if not self._anywhere():
            return math.inf
        near = self.work.reuse.get("page_sectors", 1.0) >= PAGE_LINES
        return self.rates.scattered_bandwidth * (SIDE_BY_SIDE if near else 1.0)

    def _anywhere(self) -> bool:
        """Return whether lanes read sectors of lines of their own, of which the other sectors are not read nearby."""
        lines = self.work.reuse.get("lines", 1.0)
        return self.work.pair_bytes > APART and lines >= MANY_LINES and self.work.again < OWN

    def _block_clocks(self) -> float:
        """Return clocks from block start to block start; blocks of 1024 threads start later (sweeps.json: starts)."""
        return self.rates.block_clocks * (1.17 if self.work.threads > 992 else 1.0)

    def _stores_of_parts(self, of_loads: float) -> tuple[float, float]:
        """Return the seconds of sectors that stores fill in part, and how many these are.

        The L2 takes them by the lines of each request, or by sectors where these are many, beside loads, for which it
        needs `of_loads` seconds. Those that are alone in their lines and that no other store fills cost the memory
        more.
        """
        rates, requests = self.rates, self._count("global_store_requests")
        stores, written = self._count("global_store_sectors"), self._count("global_store_bytes")
        if not requests:
            return 0.0, 0.0
        # A sector that is filled in part is half full, on average.
        in_part = stores * min(1.0, 2 * (1 - written / (SECTOR_BYTES * stores)))
        lines = in_part * self.work.reuse.get("store_lines", 1.0)
        of_l2 = _bend(lines / rates.partial_stores, in_part * SECTOR_BYTES / rates.l2_stores, SM_KNEE)
        alone = self._unfilled()[0]
        return alone * lines / rates.scattered_stores + (1 - alone) * (of_l2 + of_loads), in_part

    def _unfilled(self) -> tuple[float, float]:
        """Return the shares of the sectors stored of which no store fills the rest, so that the memory must read it,
        unless it is in the L2: those alone in their lines, and others."""
        left = 1 - min(1.0, self._count("global_store_bytes") / self.work.stored) if self.work.stored else 0.0
        # What the L2 loses before it is filled stays unfilled.
        warps = self.work.warps_per_block * self.at_once * min(self.sms, self.work.blocks)
        if self.work.reuse.get("store_span", 0.0) * LINE_BYTES * warps > L2_USED * self.rates.card.l2_bytes:
            left = max(left, self.work.reuse["store_again"])
        alone = min(1.0, max(0.0, 2 * self.work.reuse.get("store_lines", 1.0) - 1))
        return left * alone, left * (1 - alone)

    # -- waves -------------------------------------------------------------------------------------------------------

    def result(self) -> LaunchTime:
        work = self.work
        waves = work.blocks / (self.sms * self.resident)
        whole = math.floor(waves) if waves < MANY_WAVES else waves
        seconds = whole * self._wave(self.resident, self.sms) if whole else 0.0
        rest = work.blocks - whole * self.sms * self.resident
        if waves < MANY_WAVES and rest > 1e-9:
            seconds += self._wave(math.ceil(rest / self.sms - 1e-9), min(self.sms, rest), rest)
        seconds = max(seconds * self._stretch(), self._longest() / self.rates.clock_hz)
        launch = 0.0 if LAUNCH in self.without else self.rates.launch_seconds
        latency = work.blocks / (self.sms * self.at_once) if waves >= 1 else 1.0
        resources = (
            *self.resources,
            Resource(LATENCY, latency * self.warp_cycles / self.rates.clock_hz, self.warp_cycles, "cycles", LATENCY),
            Resource(LAUNCH, self.rates.launch_seconds, 1, "launch", LAUNCH),
        )
        return LaunchTime(
            launch + seconds, resources, self.resident, waves, self.l1_hits, self.l2_hits, self.warp_cycles
        )

    def _longest(self) -> float:
        """Return the cycles of the warp of the longest thread, before whose end no launch is over. What its loops ask
        for beyond the average warp's passes others have brought to the L2."""
        uneven = self.work.uneven
        if LATENCY in self.without or uneven is None or uneven.entries > MOST_ENTRIES or uneven.mean <= 0:
            return 0.0
        took = []
        for times in (1.0, max(uneven.trips) / uneven.mean):
            self._misses = self._in_order(later=1.0)
            took.append(cycles(longer(self.work, times), self._latency))
        return self.waits + took[1] - took[0]

    def _stretch(self) -> float:
        """Return what it costs that warps differ in length."""
        counted = (r.seconds for r in self.resources if r.name not in self.without)
        cycles_of_all = max(counted, default=0.0) * self.rates.clock_hz * min(self.sms, self.work.blocks)
        asks = any(row.name in ("LDG", "LD") and ".STRONG" in row.opcode for row in self.work.rows)
        return stretch(
            None if asks else self.work.uneven,  # what waits for other blocks is not uneven by itself
            blocks=self.work.blocks,
            warps=self.work.warps_per_block,
            resident=self.resident,
            sms=self.sms,
            alone=self.warp_cycles,
            each=cycles_of_all / self.work.warps,
            knee=SM_KNEE,
        )

    def _wave(self, on_one: int, sms: float, blocks: float | None = None) -> float:
        """Return the seconds of a wave, `on_one` blocks on the fullest of `sms` SMs, `blocks` in all."""
        blocks = on_one * sms if blocks is None else blocks
        of_sm = self._of_block() * on_one
        of_memory = self._busiest("memory") * blocks / self.work.blocks
        latency, waits = (
            0.0 if LATENCY in self.without else n / self.rates.clock_hz for n in (self.warp_cycles, self.waits)
        )
        begins = NEXT_BLOCK * self._later() / self.rates.clock_hz if latency else 0.0
        waits_and_moves = max(_bend(waits, of_memory, self.rates.knee), waits + begins)
        apart = _bend(waits_and_moves, of_sm, SM_KNEE)
        each = of_sm / on_one
        between = max(latency + begins, waits_and_moves)
        in_step = _taking_turns(on_one, each, max(0.0, between - each))
        return self.together * max(in_step, apart) + (1 - self.together) * apart


def _together(work: Work) -> float:
    """Return the share of the instructions between barriers: in loops with one, or outside loops if one is there."""
    regions = {work.code[row.block].loop for row in work.rows if row.name == "BAR" and row.warps}
    inside = sum(row.warps for row in work.rows if work.code[row.block].loop in regions)
    return inside / work.instructions if work.instructions else 0.0


def _taking_turns(customers: int, service: float, apart: float) -> float:
    """Return how long a round of so many blocks takes that share one resource. Each needs it for `service` and does
    without it for `apart` (mean value analysis of a closed queue: Reiser, Lavenberg, J. ACM 27(2), 1980)."""
    queue = took = 0.0
    for number in range(1, customers + 1):
        response = service * (1 + queue)
        took = apart + response
        queue = number * response / took if took else 0.0
    return took


def _words(row: Row) -> int:
    """Return the words of 4 bytes that each lane's access has."""
    return {"64": 2, "128": 4}.get(next((part for part in row.opcode.split(".") if part in ("64", "128")), ""), 1)


class _Turns:
    """Which of a row of events happen, if `share` of them do, as evenly as possible."""

    def __init__(self, share: float) -> None:
        self.share, self._due = share, 0.5

    def next(self) -> bool:
        """Return whether the next one happens."""
        self._due += self.share
        if self._due < 1 - 1e-9:
            return False
        self._due -= 1
        return True


def _bend(one: float, other: float, p: float) -> float:
    """Combine both: about the larger one, and more where they are alike."""
    larger, smaller = max(one, other), min(one, other)
    return larger * (1 + (smaller / larger) ** p) ** (1 / p) if larger else 0.0


def _at(shares: dict[int, float], size: float) -> float:
    """Return the share at a size between those that are known."""
    before, known = 0.0, 0
    for capacity, share in sorted(shares.items()):
        if size < capacity:
            return before + (share - before) * (size - known) / (capacity - known)
        before, known = share, capacity
    return before
