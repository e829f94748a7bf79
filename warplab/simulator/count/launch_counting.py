"""Counts while a launch runs, by basic block and memory site, and sums into `Counts` by source line at the end."""

from collections.abc import Sequence

import numpy as np

from warplab.simulator.constants import SECTOR_BYTES
from warplab.simulator.count.counters import BlockFlow, Counts, LaunchProfile, Place
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.observer import Observer
from warplab.simulator.ptx.program import Where
from warplab.simulator.translate.basic_blocks import BARRIER, BRANCH, Block, entered, loops
from warplab.simulator.translate.block_writer import Site
from warplab.simulator.translate.matrix_instructions import Product
from warplab.simulator.translate.ptxas_model import exits
from warplab.simulator.translate.translation import Translation
from warplab.simulator.translate.warpgroup_instructions import WarpgroupProduct


class TripCounts:
    """How many times threads went round each loop, from one entry to the next. `watched`: the blocks that `see` is to
    be told of. `found`: for the head of each loop, how many threads went round it how often; entering again counts
    again.

    The totals alone do not tell a loop of 7 and one of 9 trips from two of 8. Where an assembler unrolls, that decides
    how many trips go through the unrolled code and how many through what is left.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.ends = loops(blocks)
        self.found: dict[int, dict[int, int]] = {head: {} for head in self.ends}
        entries = {block.index: entered(block, self.ends) for block in blocks}
        self._entries = {number: heads for number, heads in entries.items() if heads}
        self.watched = frozenset((*self.ends, *self._entries))
        self._lanes = 0
        self._begin(0)

    def _begin(self, lanes: int) -> None:
        self._lanes = lanes
        self._all = dict.fromkeys(self.ends, 0)  # trips of all lanes
        self._own: dict[int, np.ndarray] = {}  # trips of single lanes beyond these
        self._latest: dict[int, tuple[Group, int]] = {}  # trips of the group that was the last to go round

    def see(self, number: int, group: Group) -> None:
        """Note that `group` is about to run the block `number`."""
        if group.chunk.lanes != self._lanes:
            self._begin(group.chunk.lanes)
        for head in self._entries.get(number, ()):
            self._end(head, group)
        if number in self.ends:
            latest = self._latest.get(number)
            if latest is not None and latest[0] is group:
                self._latest[number] = group, latest[1] + 1
            else:
                self._settle(number)
                self._latest[number] = group, 1

    def own(self, head: int, lanes: int) -> np.ndarray:
        """Return the trips of each of the chunk's lanes since it entered the loop, int64, to be counted on in place
        until another method is called."""
        if lanes != self._lanes:
            self._begin(lanes)
        self._settle(head)
        own = self._own.setdefault(head, np.zeros(lanes, np.int64))
        own += self._all[head]
        self._all[head] = 0
        return own

    def add(self, ended: np.ndarray) -> None:
        """Count loops that ended. `ended`: rows of a loop's head, trips, and how many threads went round so often."""
        for head, trips, threads in ended.tolist():
            self.found[head][trips] = self.found[head].get(trips, 0) + threads

    def end_chunk(self) -> None:
        """Note that all lanes have ended."""
        for head in self.ends:
            self._end(head, None)
        self._begin(0)

    def _settle(self, head: int) -> None:
        latest = self._latest.pop(head, None)
        if latest is None:
            return
        group, trips = latest
        if group.lanes is None:
            self._all[head] += trips
        else:
            self._own.setdefault(head, np.zeros(self._lanes, np.int64))[group.lanes] += trips

    def _end(self, head: int, group: Group | None) -> None:
        """End the trips of `group` (None: of all lanes) so far: those of an entry that is over."""
        self._settle(head)
        own, every, found = self._own.get(head), self._all[head], self.found[head]
        if own is None and not every:
            return
        if group is None or group.lanes is None:
            if own is None:
                found[every] = found.get(every, 0) + self._lanes
            else:
                self._add(found, own + every)
            self._all[head] = 0
            self._own.pop(head, None)
            return
        if own is None:
            own = self._own[head] = np.zeros(self._lanes, np.int64)
        self._add(found, own[group.lanes] + every)
        own[group.lanes] = -every

    @staticmethod
    def _add(found: dict[int, int], trips: np.ndarray) -> None:
        for number, lanes in zip(*np.unique(trips, return_counts=True), strict=True):
            if number:
                found[int(number)] = found.get(int(number), 0) + int(lanes)


class Counting(Observer):
    """Counters of one launch, or of some of its blocks."""

    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        blocks = len(translation.blocks)
        self.block_threads = [0] * blocks
        self.block_warps = [0] * blocks
        self.divergent = [0] * blocks
        self.taken_threads, self.taken_warps = [0] * blocks, [0] * blocks  # of the branch that ends a block
        self.trips = TripCounts(translation.blocks)
        # By site and space: requests, distinct addresses, sectors, wavefronts, wavefronts without conflicts.
        self.accesses: dict[tuple[int, str], list[int]] = {}
        # The same, of machine code: sites, which the kernel has run, and their rows.
        self.added, self.sums = set[int](), np.zeros((len(translation.sites), 5), np.int64)
        self.bulk: dict[Where, int] = {}
        self.tensor: dict[tuple[Where, str, int], int] = {}
        self.touched: dict[Touched, np.ndarray] = {}

    def end_launch(self, profile: LaunchProfile, finished: bool) -> None:
        self.fill(profile)

    # -- events ----------------------------------------------------------------------------------------------------

    def wants(self, event: str, space: str = "") -> int | None:
        return 0

    def block(self, number: int, group: Group, time: int) -> None:
        self.block_threads[number] += group.count
        self.block_warps[number] += group.warps
        if number in self.trips.watched:
            self.trips.see(number, group)

    def end_chunk(self) -> None:
        self.trips.end_chunk()

    def diverge(self, block: Block, group: Group, taken: Group, other: Group) -> None:
        self.divergent[block.index] += taken.warps + other.warps - group.warps
        self.jump(block, taken)

    def jump(self, block: Block, group: Group) -> None:
        self.taken_threads[block.index] += group.count
        self.taken_warps[block.index] += group.warps

    def load(self, site: Site, space: str, addresses: Addresses, lanes, _=None) -> None:
        group = self.chunk.group
        row = self.accesses.get((site.index, space))
        if row is None:
            row = self.accesses[site.index, space] = [0, 0, 0, 0, 0]
        if space == "global":
            row[0] += group.warps
            if site.op == "atomic":
                row[2] += addresses.atomic_sectors(site.offset, group, site.summed)
            else:
                row[1] += addresses.distinct(group)
                row[2] += addresses.sectors(site.offset, group)
            self._touch(site, addresses)
        elif space == "shared":
            if site.counted_bytes:
                row[0] += group.warps
                wavefronts, needed = addresses.wavefronts(site.offset, site.counted_bytes, group, site.bank_op)
                row[3] += wavefronts
                row[4] += needed
        else:
            row[0] += group.warps

    copy_request = store = atomic = load

    def copy(self, site: Site, reader: Site, source: Addresses, target: Addresses, read: np.ndarray | None) -> None:
        """Count the writing side; what the reader loads is counted already."""
        group = self.chunk.group
        row = self.accesses.setdefault((site.index, "shared"), [0, 0, 0, 0, 0])
        every = np.ones(group.count, bool) if read is None else read
        words = [
            np.broadcast_to(a.at(k).view(np.int64) >> 2, group.count)
            for a, k in ((target, site.offset), (source, reader.offset))
        ]
        wavefronts, needed, more = group.copy_passes(*words, site.width // 4, every, site.past_l1)
        if more:
            self.accesses[reader.index, "global"][2] += more
        row[0] += group.warps
        row[3] += wavefronts
        row[4] += wavefronts if site.past_l1 else needed  # ncu reports no conflicts of these

    def bulk_copy(self, site: Site, copies: int) -> None:
        self.bulk[site.where] = self.bulk.get(site.where, 0) + copies

    def matrix_product(self, product: Product | WarpgroupProduct) -> None:
        key = product.where, product.name, product.machine
        self.tensor[key] = self.tensor.get(key, 0) + self.chunk.group.warps // product.warps

    def add(self, sites: list[int], rows: np.ndarray) -> None:
        """Add what machine code counted of accesses that `load` was not told of."""
        self.added.update(sites)
        self.sums[sites] += rows

    def add_resolved(self, site: int, space: str, row: np.ndarray) -> None:
        """Do so for one site whose accesses went to a space, which generic addresses do not name."""
        own = self.accesses.setdefault((site, space), [0, 0, 0, 0, 0])
        own[:] = (own + row).tolist()

    def add_blocks(self, numbers: Sequence[int], rows: np.ndarray) -> None:
        """Add, by block: threads and warps that ran it, those that took its branch, warps that parted there."""
        taken = self.taken_threads, self.taken_warps
        for number, row in zip(numbers, rows.tolist(), strict=True):
            for amounts, more in zip((self.block_threads, self.block_warps, *taken, self.divergent), row, strict=True):
                amounts[number] += more

    def _touch(self, site, addresses: Addresses) -> None:
        """Record the sectors for the footprint in one bitmap per source line and allocation."""
        allocation = self.chunk.access.allocation(site, addresses)
        if allocation is None:
            return
        bitmap = self.bitmap(site, allocation)
        sectors = None
        if addresses.pattern is not None:
            sectors = addresses.pattern.numbers_of_sectors(site.offset - allocation.address)
        if sectors is None:
            sectors = (addresses.at(site.offset).view(np.int64) - allocation.address) >> 5
        bitmap[sectors] = True

    def bitmap(self, site, allocation) -> np.ndarray:
        """Return the sectors of an allocation that accesses of a site's source line have touched."""
        key = site.op, site.where, allocation.address
        if key not in self.touched:
            self.touched[key] = np.zeros(-(-allocation.nbytes // SECTOR_BYTES), bool)
        return self.touched[key]

    # -- the result ----------------------------------------------------------------------------------------

    def fill(self, profile: LaunchProfile) -> None:
        """Write everything counted into a profile."""
        for index in sorted(self.added):
            row = self.accesses.setdefault((index, self.translation.sites[index].space), [0, 0, 0, 0, 0])
            row[:] = [a + b for a, b in zip(row, self.sums[index].tolist(), strict=True)]
        self.added.clear()
        lines: dict[tuple[str, int], Counts] = {}

        def line(where) -> Counts:
            return lines.setdefault((where.file, where.line), Counts())

        translation = self.translation
        heads = set(translation.predicated.values())
        for number, block in enumerate(translation.blocks):
            threads = self.block_threads[number]
            # Under a predicate, instructions are issued for all threads that come by.
            issued = translation.predicated.get(number, number)
            issued_threads, issued_warps = self.block_threads[issued], self.block_warps[issued]
            if not issued_warps:
                continue
            for where, static in translation.static_counts[number].items():
                counts = line(where)
                counts.warp_instructions += issued_warps * static.instructions
                counts.thread_instructions += issued_threads * static.instructions
                counts.branches += issued_warps * static.branches
                for precision, amount in static.flops.items():
                    name = f"flops_{precision}"
                    setattr(counts, name, getattr(counts, name) + threads * amount)
                mix = profile.line_mix.setdefault((where.file, where.line), {})
                for kind, amount in static.mix.items():
                    if amount:
                        mix[kind] = mix.get(kind, 0) + issued_warps * amount
            if block.end == BRANCH and number not in heads and not exits(translation.blocks, block):
                line(block.terminator.where).branches += issued_warps
                line(block.terminator.where).divergent_branches += self.divergent[number]
            elif block.end == BARRIER:
                line(block.terminator.where).barriers += self.block_warps[number]
        for (index, space), (requests, addresses, sectors, wavefronts, needed) in self.accesses.items():
            site = self.translation.sites[index]
            counts = line(site.where)
            if site.op == "atomic":
                counts.atomics += requests
            if space == "const" or (space == "local" and site.op == "atomic"):
                continue
            place = translation.site_blocks[index]
            once = requests == self.block_warps[place] and site.space == space and site.counter != "copy"
            if once and space != "global":
                # A warp issues the instruction even if its predicate is false for all lanes, which ncu counts here.
                requests = self.block_warps[translation.predicated.get(place, place)]
            amounts = {"requests": requests}
            if space == "global":
                amounts.update(sectors=sectors)
                if site.op != "atomic":
                    amounts.update(bytes=addresses * site.width)
            elif space == "shared":
                amounts.update(wavefronts=wavefronts, conflicts=wavefronts - needed)
            for what, amount in amounts.items():
                name = f"{space}_{site.counter}_{what}"
                setattr(counts, name, getattr(counts, name) + amount)
        for where, copies in self.bulk.items():
            line(where).bulk_copies += copies
        for (where, name, machine), amount in self.tensor.items():
            line(where).tensor_operations += machine * amount
            products = profile.line_tensor_operations.setdefault((where.file, where.line), {})
            products[name] = products.get(name, 0) + amount
        profile.lines = dict(sorted(lines.items()))
        profile.counts = sum(lines.values(), Counts())
        profile.mix = summed(profile.line_mix)
        profile.tensor_operations = summed(profile.line_tensor_operations)
        profile.flow = BlockFlow(
            self.translation,
            list(self.block_threads),
            list(self.block_warps),
            list(self.taken_threads),
            list(self.taken_warps),
            list(self.divergent),
            {head: dict(trips) for head, trips in self.trips.found.items()},
        )
        fill_footprint(profile, self.touched_sectors())

    def touched_sectors(self) -> "dict[Touched, int]":
        """Count the distinct sectors touched so far by kind of access, source line (None: all lines) and allocation."""
        every: dict[tuple[str, int], np.ndarray] = {}
        result: dict[Touched, int] = {}
        for (op, where, address), bitmap in self.touched.items():
            result[op, where, address] = int(np.count_nonzero(bitmap))
            before = every.get((op, address))
            every[op, address] = bitmap if before is None else before | bitmap
        return result | {(op, None, address): int(np.count_nonzero(bitmap)) for (op, address), bitmap in every.items()}

    def sectors_of(self, key: "Touched") -> int:
        """Count all sectors of an allocation that `touched_sectors` names."""
        return next(bitmap.shape[0] for (*_, address), bitmap in self.touched.items() if address == key[2])


# Kind of access, source line (None: all lines), address of the allocation.
Touched = tuple[str, Where | None, int]


def summed(lines: dict[Place, dict[str, int]]) -> dict[str, int]:
    """Sum amounts by name over the source lines."""
    total: dict[str, int] = {}
    for amounts in lines.values():
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


def fill_footprint(profile: LaunchProfile, sectors: dict[Touched, int]) -> None:
    """Compute a profile's `footprint` and `line_footprint` from the sectors touched."""
    profile.footprint = {"global_load_bytes": 0, "global_store_bytes": 0}
    profile.line_footprint = {}
    for (op, where, _), number in sectors.items():
        name = f"global_{op}_bytes"
        own = profile.footprint if where is None else profile.line_footprint.setdefault((where.file, where.line), {})
        own[name] = own.get(name, 0) + SECTOR_BYTES * number
