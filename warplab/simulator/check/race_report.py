"""The error for a data race: who did what to which element, and the likely cause."""

import re

from warplab.simulator.check.race_records import LOCKSTEP_REASON as NO_LOCKSTEP
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import DataRace, Index3
from warplab.simulator.memory.array_locations import describe_shared, element
from warplab.simulator.memory.device_memory import Allocation
from warplab.simulator.translate.block_writer import Site

_BARRIER = (
    "Is a __syncthreads() missing between them (or a __syncwarp() within a warp)? "
    "In Numba: cuda.syncthreads(), cuda.syncwarp()."
)
_GONE_ROUND = (
    "The other thread waits at the barrier in line {}, which this thread has not passed. All threads of a block must "
    "reach it: move it out of the `if` or the loop."
)
_VOLATILE = "`volatile` only says that each access goes to memory; no thread waits for another. "
_FENCE = (
    "Is the array guarded by a flag? `volatile` puts accesses to different words in no order: put a __threadfence() "
    "before the flag is set, and one after it was seen."
)
_UPDATE = " Do threads add to one element, `x += ...`? That needs an atomic."
_SAME_PLACE = " Both store to one element: is the index right? (threadIdx.x / 32 is a warp's number, % 32 a lane's.)"
_NO_BARRIER = (
    "Threads of different blocks cannot wait for each other: give each its own element, use an atomic, or start a "
    "second kernel."
)
_LAST = (
    " Does an atomic operation tell that the other block is done? "
    "Then put a __threadfence() (in Numba cuda.threadfence()) before it."
)
_CLUSTER = (
    "The two belong to different blocks of a cluster. Is a cluster.sync() missing between them (barrier.cluster.arrive "
    "and wait), or an mbarrier at which one arrives and the other waits?"
)
_ASYNCHRONOUS = (
    "Bulk copies and wgmma read and write on their own. Before a stage is written again, whoever writes must know that "
    "all have read it: readers arrive at an mbarrier, or pass a barrier, after their loads or after wgmma.wait_group. "
    "Before a stage is read, each reader must wait at the mbarrier to which its copy reports."
)
_OPERAND = (
    "A wgmma reads its tiles until its warpgroup has executed wgmma.wait_group for it. Whoever writes there must know: "
    "arrive at the mbarrier, or pass the barrier, where the writer waits, after wgmma.wait_group, not before it."
)
_FLAG = (
    "Does this loop wait for a flag? Of an ordinary variable the compiler may load the value once, before the loop, "
    "and nothing orders what the flag guards. Make it `volatile` and put a __threadfence() before it is set, or use "
    "atomics (in Numba cuda.atomic functions and cuda.threadfence()). A thread may wait only for one that runs at the "
    "same time."
)


def race_error(
    chunk,
    verbs: tuple[str, str],
    *,
    threads: tuple[int, int],
    sites: tuple[Site, Site],
    allocation: Allocation | None,
    offset: int,
    readers_block: int,
    reason: str = "",
) -> DataRace:
    """Return the error for an access and an earlier one to the same word.

    `verbs`, `threads`, `sites`: of this access and of the earlier one, as in "reads" and "wrote"; threads are numbered
    through the grid, and the earlier one is negative for several threads. `allocation`: None in shared memory.
    `offset`: the word's first byte, in the allocation or in the shared memory of all blocks of the chunk.
    `readers_block`: block of the earlier accesses by several threads. `reason`: the cause, if known.
    """
    (thread, other), (site, earlier), (does, did) = threads, sites, verbs
    own_block_number = thread // chunk.threads
    name: str | None
    index: int | None
    item = earlier.item if _moves_pieces(site) else site.item
    if allocation is None:
        owner, offset = divmod(offset, chunk.shared_stride)
        what, name, index = describe_shared(chunk, offset, item)
        if chunk.first_block + owner != own_block_number:
            what += f" of block {chunk.geometry.block_index(chunk.first_block + owner)}"
    else:
        name, index = allocation.name, element(allocation, allocation.address + offset, item)
        what = f"byte {offset} of array `{name}` (element {index})" if name else f"byte {offset} of an array"
    if not reason:
        block = readers_block if other < 0 else other // chunk.threads
        cluster = chunk.cluster_blocks
        own_block = (allocation is None and cluster == 1) or block == own_block_number
        passed_by = _barrier_between(chunk, sites, threads) if own_block else None
        reason = _NO_BARRIER if not own_block else _GONE_ROUND.format(passed_by) if passed_by else _BARRIER
        if not own_block and (allocation is None or block // cluster == own_block_number // cluster):
            reason = _CLUSTER
        if allocation is None and any(".volatile" in place.text for place in sites):
            warp, other_warp = (number % chunk.threads // WARP_SIZE for number in threads)
            reason = NO_LOCKSTEP if own_block and other >= 0 and warp == other_warp else _VOLATILE + reason
        elif any(".volatile" in place.text for place in sites):
            reason = _FENCE
        if any(_moves_pieces(place) for place in sites):
            reason = _OPERAND if did.endswith("read") and earlier.text.startswith("wgmma") else _ASYNCHRONOUS
        elif any(_waits(chunk, place, name) for place in sites):
            reason = _FLAG
        elif reason is _NO_BARRIER and site.op == "load" and _counts(chunk):
            reason += _LAST
        elif own_block and other < 0 and earlier.where.line == site.where.line:
            reason += _UPDATE
        elif own_block and verbs == ("writes", "writes") and earlier.where.line == site.where.line:
            reason += _SAME_PLACE
    who = "other threads" if other < 0 else f"thread {_numbers(chunk.thread_index(other))}"
    by = f" by `{earlier.text.split()[0]}`" if _moves_pieces(earlier) else ""
    return DataRace(
        f"race: thread {_numbers(chunk.thread_index(thread))} {does} {what}, which {who} {did} "
        f"at line {earlier.where.line}{by}, and nothing orders the two",
        reason=reason,
        array=name,
        index=index,
        other_line=earlier.where.line,
        other_thread=chunk.thread_index(other) if other >= 0 else None,
        **chunk.where(site, thread - chunk.first_block * chunk.threads),
    )


def _barrier_between(chunk, sites: tuple[Site, Site], threads: tuple[int, int]) -> int | None:
    """Return the line of the block's barrier between the two accesses that only the earlier one's thread reached."""
    lane, other = (thread - chunk.first_block * chunk.threads for thread in threads)
    held = [(chunk.translation.blocks[n], lanes) for n, lanes in chunk.barriers.scheduler.gathering.items()]
    for state in chunk.barriers.states.values():
        held += [*state.waiting, *state.left]
    for block, lanes in held:
        line, whole = block.last.where.line, len(block.last.operands) < 2  # without a number of threads
        if whole and sites[1].where.line <= line < sites[0].where.line and other in lanes and lane not in lanes:
            return line
    return None


def _moves_pieces(site: Site) -> bool:
    """Tell whether an instruction reads or writes pieces of 16 bytes, whatever the elements are, on its own."""
    return ".bulk" in site.text or site.text.startswith("wgmma")


def _counts(chunk) -> bool:
    """Tell whether the kernel has atomic operations, but on shared memory."""
    return any(site.op == "atomic" and site.space != "shared" for site in chunk.translation.sites)


def _waits(chunk, site: Site, name: str | None) -> bool:
    """Tell whether an ordinary load of array `name` is in a loop's condition, by the text: compilers move it."""
    text = chunk.entry.program.sources.get(site.where.file, "")
    waits = name is not None and re.search(rf"\bwhile\b[^;{{\n]*\b{re.escape(name)}\b", text) is not None
    return waits and site.op == "load" and not site.strong


def _numbers(index: tuple[Index3, Index3]) -> str:
    block, thread = index
    return f"{thread} of block {block}"
