"""What an access to memory by machine code needs besides the bytes, in the language of `machine_compiler`.

`access` tests an access as the checks and race detection do, and counts it as `count.launch_counting` does. It returns
1, with nothing changed, where anything is unusual: then the arrays' code does all of it.

The present run's numbers are at `S` (`FIELDS`), and a memory instruction's at `P` (`PLACE`), eight bytes each.
"""

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from warplab.simulator.translate import narrow_groups
from warplab.simulator.translate.machine_compiler import Compiled, Source, available, why_not

FIELDS = (
    # Addresses of arrays: the group's lanes (int32), the addresses that they access, for each lane its warp, number in
    # the warp and block (int32), where its shared and local memory begin; the lanes that take a branch and those that
    # do not; registers, and which of them the arrays' code holds as a single entry; scratch.
    *("LIST", "ADDRESS", "WARP_OF", "LANE_OF", "BLOCK_OF", "SHARED", "LOCAL", "TAKEN", "OTHER", "REGISTERS"),
    *("KEYS", "OLD"),
    *("PLACES", "PENDING", "PARAMETERS", "VARIABLES", "TRIPS", "BLOCKS", "SINGLE"),
    # By block of the loop and those behind it, a byte: do lanes wait there, is it inside?
    *("WAITING", "INSIDE"),
    # The group: its lanes, and their warps.
    *("COUNT", "WARPS"),
    # The launch: lanes of the chunk, bytes from one register to the next, words of 64 lanes, whether it is counted,
    # where dynamic shared memory begins, whether the chunk is a single block.
    *("LANES", "STRIDE", "WORDS", "COUNTED", "DYNAMIC", "ONE_BLOCK"),
    # Race detection: has anything been ordered, barriers by block, warp syncs by warp, numbers in the grid.
    *("ORDERED", "EPOCHS", "TIMES", "FIRST_THREAD", "FIRST_BLOCK", "FIRST_WARP", "SITE_BYTES"),
    # Fences that each thread has passed, of any scope and wider than its block (0: none has).
    *("FENCES", "WIDE_FENCES"),
    # What threads know of others, by names of `vector_clocks`: warps of a cluster (0: there are no clocks),
    # the time of the access, …
    *("COLUMNS", "NOW", "WHOLE", "PART", "MASK", "SYNCED", "MET"),
    # Sectors read by the watched block, in order: where (four times the sector, and 2 for the first of a request, 1 for
    # the first of an instruction), how many, how many may come, its threads; requests, lines and passes through the
    # banks.
    *("READS", "READS_DONE", "READS_ROOM", "WATCHED", "READ_REQUESTS", "READ_LINES", "READ_PASSES"),
    # Trips of loops that ended: triples of loop, trips, threads.
    *("ENDED", "ENDED_DONE"),
    # The scheduler: block, the lowest with waiting lanes, how many there are, limits and what they limit.
    *("CURRENT", "LOWEST", "NODES", "CEILING", "FOREIGN"),
    *("EXECUTED", "PATH", "BUDGET", "PATH_ENDS", "WAITED", "PATIENCE"),
    *("ADVANCED", "STEPS", "READS_MOST", "ENDED_MOST", "CALLBACK"),
    # Is an observer told of each step, of each access before and after it is made, of each branch?
    *("STEPS_SEEN", "ACCESSES_SEEN", "DONE_SEEN", "BRANCHES_SEEN"),
    # A block for all lanes (`machine_blocks`): addresses of the registers that it reads and of what it writes; is there
    # a result that it cannot compute? The instruction, from 1 on, whose address was out of bounds, and the address.
    *("INPUTS", "OUTPUTS", "FAILED", "STRAYED", "STRAYED_TO"),
    # Room for new records of addresses; was there too little?
    *("POOL", "POOL_END", "FULL"),
    # Do loads of shared memory concern nobody, once they are known to be within bounds?
    "PLAIN",
)
PLACE = (
    # Where the array begins, how far behind it (or behind each lane's own memory) an access may begin, the bytes
    # themselves, which were written (0: that does not matter), which sectors were touched.
    *("LOW", "LIMIT", "DATA", "WRITTEN", "TOUCHED", "OWN", "WIDTH", "ITEM", "SPACE", "COUNTED_BYTES", "IS_LOAD"),
    # Records of race detection: writer (0: not recorded), bytes of a word, …
    *("WRITER", "READER", "READER_WARP", "READER_BLOCK", "WRITE_EPOCH", "WRITE_TIME", "READ_EPOCH", "READ_TIME"),
    *("WRITE_SITE", "READ_SITE", "ATOMIC", "WORD_SHIFT", "RACE_WORDS", "SITE"),
    *("IS_ATOMIC", "WRITE_FENCES", "WRITE_WIDE", "WRITTEN_AT", "READ_AT", "READ_BY", "AGAIN_BY", "FIRST_READ_AT"),
    *("AGAIN_AT", "READER_CLUSTER"),
    # Reads of wgmma (`check.operand_reads`; 0: none): when each warpgroup of a block read each piece, the bits of a
    # word's number that do not matter to its piece, pieces of all blocks and of one, warpgroups and threads of a block,
    # when it passed a barrier. Do writes end them? Does a load leave no record, as that is the one of wgmma?
    *("OPERANDS", "PIECE_SHIFT", "PIECES", "BLOCK_PIECES", "GROUPS", "THREADS", "PASSED", "ENDS_READS", "UNRECORDED"),
    # Counters.
    *("REQUESTS", "DISTINCT", "SECTORS", "WAVEFRONTS", "NEEDED", "FAST"),
    # A block for all lanes: the record of the latest warp's addresses, and one that may be overwritten; the sectors
    # touched, and how many; where, for each warp, the first address without the offset and the record are wanted (0:
    # nowhere), and the offset; did anybody read the words?
    *("RECORD", "OWN_RECORD", "TOUCHES", "TOUCHED_DONE", "BASES", "OFFSET", "WAS_READ"),
)
F, P = ({name: k for k, name in enumerate(names)} for names in (FIELDS, PLACE))
CONSTANTS = {name: 8 * k for name, k in F.items()} | {f"P_{name}": 8 * k for name, k in P.items()}
PLACE_BYTES = 8 * len(PLACE)


def place_of(array: Any) -> int:
    """Return where an array lies. Most can lend their bytes, which takes a fifth of the time that they take to tell."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):  # read-only, empty, with gaps, or of a type that ctypes does not know
        return array.__array_interface__["data"][0]


def fill(row: np.ndarray, numbers: Mapping[str, int], fields: Mapping[str, Any]) -> None:
    """Set numbers of `FIELDS` or `PLACE`, by name. Of arrays, which the caller keeps, they are where these lie."""
    for name, value in fields.items():
        row[numbers[name]] = place_of(value) if isinstance(value, np.ndarray) else value


SOURCE = """
def ordered(keys, n):
    for i in range(n - 1):
        value = ld8(keys + 8 * i + 8)
        if ld8(keys + 8 * i) > value:
            j = i
            while j >= 0 and ld8(keys + 8 * j) > value:
                st8(keys + 8 * j + 8, ld8(keys + 8 * j))
                j = j - 1
            st8(keys + 8 * j + 8, value)


def distinct(keys, n, shift):
    found = 1
    for i in range(n - 1):
        if (ld8(keys + 8 * i) >> shift) != (ld8(keys + 8 * i + 8) >> shift):
            found = found + 1
    return found


def busiest(keys, n, shift, mask):
    # Different keys, by 1 << shift, that one bank has at most; the banks are mask + 1. `keys`: in order.
    banks = keys + 8 * 128
    for i in range(mask + 1):
        st8(banks + 8 * i, 0)
    most = 0
    last = -1
    for i in range(n):
        key = ld8(keys + 8 * i) >> shift
        if key != last:
            bank = banks + 8 * (key & mask)
            times = ld8(bank) + 1
            st8(bank, times)
            if times > most:
                most = times
        last = key
    return most


def alike(S, first, n, distance):
    list = ld8(S + LIST)
    address = ld8(S + ADDRESS)
    table = ld8(S + KEYS) + 8 * 192
    for i in range(32):
        st8(table + 8 * i, -1)
    for i in range(n):
        lane = ld4(list + 4 * (first + i))
        st8(table + 8 * ld4(ld8(S + LANE_OF) + 4 * lane), ld8(address + 8 * (first + i)) >> 2)
    for i in range(32):
        a = ld8(table + 8 * i)
        b = ld8(table + 8 * (i ^ distance))
        if a != b and a >= 0 and b >= 0:
            return 0
    return 1


def wavefronts(S, P, first, n):
    address = ld8(S + ADDRESS)
    keys = ld8(S + KEYS)
    width = (ld8(P + P_COUNTED_BYTES) + 3) >> 2
    if width == 1:
        straight = 1
        before = ld8(address + 8 * first) >> 2
        for i in range(n - 1):
            word = ld8(address + 8 * (first + i + 1)) >> 2
            if word != before + 1:
                straight = 0
            before = word
        passes = 1
        if straight == 0:
            for i in range(n):
                st8(keys + 8 * i, ld8(address + 8 * (first + i)) >> 2)
            ordered(keys, n)
            passes = busiest(keys, n, 0, 31)
        st8(P + P_WAVEFRONTS, ld8(P + P_WAVEFRONTS) + passes)
        st8(P + P_NEEDED, ld8(P + P_NEEDED) + 1)
        return 0
    list = ld8(S + LIST)
    lane_of = ld8(S + LANE_OF)
    size = udiv(32, width)
    if ld8(P + P_IS_LOAD) and (alike(S, first, n, 1) or alike(S, first, n, 2)):
        size = 2 * size
    i = 0
    while i < n:
        part = udiv(ld4(lane_of + 4 * ld4(list + 4 * (first + i))), size)
        m = 0
        while i < n and udiv(ld4(lane_of + 4 * ld4(list + 4 * (first + i))), size) == part:
            word = ld8(address + 8 * (first + i)) >> 2
            for k in range(width):
                st8(keys + 8 * m, word + k)
                m = m + 1
            i = i + 1
        ordered(keys, m)
        st8(P + P_WAVEFRONTS, ld8(P + P_WAVEFRONTS) + busiest(keys, m, 0, 31))
        st8(P + P_NEEDED, ld8(P + P_NEEDED) + 1)


def sectors(S, P, first, n):
    address = ld8(S + ADDRESS)
    keys = ld8(S + KEYS)
    for i in range(n):
        st8(keys + 8 * i, ld8(address + 8 * (first + i)))
    ordered(keys, n)
    st8(P + P_DISTINCT, ld8(P + P_DISTINCT) + distinct(keys, n, 0))
    found = distinct(keys, n, 5)
    st8(P + P_SECTORS, ld8(P + P_SECTORS) + found)
    if ld8(P + P_IS_LOAD):
        lanes = ld8(S + WATCHED)
        list = ld8(S + LIST)
        if ld8(S + READS_ROOM) > 0 and ld4(list + 4 * first) < lanes:
            done = ld8(S + READS_DONE)
            last = -1
            mark = 2
            if first == 0:
                mark = 3
            for i in range(n):
                sector = ld8(keys + 8 * i) >> 5
                if sector != last:
                    st8(ld8(S + READS) + 8 * done, (sector << 2) + mark)
                    mark = 0
                    done = done + 1
                last = sector
            st8(S + READS_DONE, done)
            st8(S + READ_REQUESTS, ld8(S + READ_REQUESTS) + 1)
            st8(S + READ_LINES, ld8(S + READ_LINES) + distinct(keys, n, 7))
            st8(S + READ_PASSES, ld8(S + READ_PASSES) + passes(P, keys, n))


def passes(P, keys, n):
    # Passes of a load of global memory through the banks of the L1. `keys`: addresses in order.
    shift = 2
    while (1 << shift) < ld8(P + P_WIDTH):
        shift = shift + 1
    return busiest(keys, n, shift, (128 >> shift) - 1)


def count(S, P):
    n = ld8(S + COUNT)
    list = ld8(S + LIST)
    warp_of = ld8(S + WARP_OF)
    space = ld8(P + P_SPACE)
    before = ld8(S + READS_DONE)
    i = 0
    while i < n:
        warp = ld4(warp_of + 4 * ld4(list + 4 * i))
        first = i
        while i < n and ld4(warp_of + 4 * ld4(list + 4 * i)) == warp:
            i = i + 1
        if space != 1 or ld8(P + P_COUNTED_BYTES):
            st8(P + P_REQUESTS, ld8(P + P_REQUESTS) + 1)
            if space == 0:
                sectors(S, P, first, i - first)
            elif space == 1:
                wavefronts(S, P, first, i - first)
    st8(S + READS_ROOM, ld8(S + READS_ROOM) - (ld8(S + READS_DONE) - before))
    touched = ld8(P + P_TOUCHED)
    if touched:
        address = ld8(S + ADDRESS)
        low = ld8(P + P_LOW)
        for i in range(n):
            st1(touched + ((ld8(address + 8 * i) - low) >> 5), 1)


def behind(S, P, lane, other, word, epochs, times):
    # Is what lane `other` of the chunk did ordered before this access?
    if ld8(S + ORDERED) == 0:
        return 0
    if other < 0 or other >= ld8(S + LANES):
        return 0
    block = ld4(ld8(S + BLOCK_OF) + 4 * lane)
    if block == ld4(ld8(S + BLOCK_OF) + 4 * other):
        if sx32(ld4(epochs + 4 * word)) < sx32(ld4(ld8(S + EPOCHS) + 4 * block)):
            return 1
    warp = ld4(ld8(S + WARP_OF) + 4 * lane)
    if warp == ld4(ld8(S + WARP_OF) + 4 * other):
        if sx32(ld4(times + 4 * word)) < sx32(ld4(ld8(S + TIMES) + 4 * warp)):
            return 1
    return 0


def after_readers(S, P, lane, word):
    # Are the reads of a word by several lanes, or by another one, ordered before this access?
    if ld8(S + ORDERED) == 0:
        return 0
    block = ld4(ld8(S + BLOCK_OF) + 4 * lane)
    if sx32(ld4(ld8(P + P_READER_BLOCK) + 4 * word)) == block + ld8(S + FIRST_BLOCK):
        if sx32(ld4(ld8(P + P_READ_EPOCH) + 4 * word)) < sx32(ld4(ld8(S + EPOCHS) + 4 * block)):
            return 1
    warp = ld4(ld8(S + WARP_OF) + 4 * lane)
    if sx32(ld4(ld8(P + P_READER_WARP) + 4 * word)) == warp + ld8(S + FIRST_WARP):
        if sx32(ld4(ld8(P + P_READ_TIME) + 4 * word)) < sx32(ld4(ld8(S + TIMES) + 4 * warp)):
            return 1
    return 0


def knows(S, lane, other, time):
    # Does what lane `other` did at a time come before this access, as far as a lane knows? (`Clocks.knows`)
    if other < 0 or other >= ld8(S + LANES) or ld8(S + COLUMNS) == 0:
        return 0
    columns = ld8(S + COLUMNS)
    warp = ld4(ld8(S + WARP_OF) + 4 * other)
    if udiv(ld4(ld8(S + WARP_OF) + 4 * lane), columns) != udiv(warp, columns):
        return 0
    at = 4 * (columns * lane + urem(warp, columns))
    if sx32(ld4(ld8(S + WHOLE) + at)) > time:
        return 1
    if sx32(ld4(ld8(S + PART) + at)) <= time:
        return 0
    return (ld4(ld8(S + MASK) + at) >> ld4(ld8(S + LANE_OF) + 4 * other)) & 1


def knows_warps(S, lane, warps, time):
    # Do the reads at a time by warps of the cluster come before this access? (`Clocks.knows_warps`)
    at = 4 * ld8(S + COLUMNS) * lane
    warp = ld4(ld8(S + WARP_OF) + 4 * lane)
    for i in range(ld8(S + COLUMNS)):
        if (warps >> i) & 1:
            known = sx32(ld4(ld8(S + WHOLE) + at + 4 * i)) > time or sx32(ld4(ld8(S + PART) + at + 4 * i)) > time
            if i == urem(warp, ld8(S + COLUMNS)) and known == 0:
                known = sx32(ld4(ld8(S + SYNCED) + 4 * warp)) > time or sx32(ld4(ld8(S + MET) + 4 * warp)) > time
            if known == 0:
                return 0
    return 1


def cluster(S, warp):
    # The number in the grid, from 1 on, of the cluster of a warp.
    return udiv(warp + ld8(S + FIRST_WARP) - 1, ld8(S + COLUMNS)) + 1


def knows_readers(S, P, lane, word):
    if ld8(S + COLUMNS) == 0:
        return 0
    at = 4 * word
    time = sx32(ld4(ld8(P + P_READ_AT) + at))
    warp = ld4(ld8(S + WARP_OF) + 4 * lane)
    if sx32(ld4(ld8(P + P_READER_WARP) + at)) == warp + ld8(S + FIRST_WARP):
        if time < sx32(ld4(ld8(S + MET) + 4 * warp)):
            return 1
    reader = sx32(ld4(ld8(P + P_READER) + at))
    if reader > 0:
        return knows(S, lane, reader - ld8(S + FIRST_THREAD), time)
    if sx32(ld4(ld8(P + P_READER_CLUSTER) + at)) != cluster(S, warp):
        return 0
    again = ld4(ld8(P + P_AGAIN_BY) + at)
    if knows_warps(S, lane, ld4(ld8(P + P_READ_BY) + at) & ~again, sx32(ld4(ld8(P + P_FIRST_READ_AT) + at))) == 0:
        return 0
    return knows_warps(S, lane, again, sx32(ld4(ld8(P + P_AGAIN_AT) + at)))


def multiplied(S, P, lane, word):
    # May a wgmma still read a word, as far as a lane knows that writes there? (`OperandReads.unaware`)
    piece = word >> ld8(P + P_PIECE_SHIFT)
    for group in range(ld8(P + P_GROUPS)):
        time = sx32(ld4(ld8(P + P_OPERANDS) + 4 * (group * ld8(P + P_PIECES) + piece)))
        if time:
            block = udiv(piece, ld8(P + P_BLOCK_PIECES))
            known = 0
            if ld4(ld8(S + BLOCK_OF) + 4 * lane) == block:
                known = time <= sx32(ld4(ld8(P + P_PASSED) + 4 * block))
            if known == 0 and knows(S, lane, ld8(P + P_THREADS) * block + 128 * group, time - 1) == 0:
                return 1
    return 0


def race(S, P, lane, word):
    me = lane + ld8(S + FIRST_THREAD)
    for k in range(ld8(P + P_RACE_WORDS)):
        writer = sx32(ld4(ld8(P + P_WRITER) + 4 * (word + k)))
        several = 0
        if ld8(P + P_ATOMIC):
            several = ld1(ld8(P + P_ATOMIC) + word + k) == 2
        if writer != 0 and (writer != me or several):
            other = writer - ld8(S + FIRST_THREAD)
            known = behind(S, P, lane, other, word + k, ld8(P + P_WRITE_EPOCH), ld8(P + P_WRITE_TIME))
            if known == 0 and ld8(S + COLUMNS):
                known = knows(S, lane, other, sx32(ld4(ld8(P + P_WRITTEN_AT) + 4 * (word + k))))
            if known == 0:
                if ld8(P + P_IS_ATOMIC) == 0 or ld1(ld8(P + P_ATOMIC) + word + k) == 0:
                    return 1
        if ld8(P + P_IS_LOAD) == 0:
            reader = sx32(ld4(ld8(P + P_READER) + 4 * (word + k)))
            if reader != 0 and reader != me:
                if after_readers(S, P, lane, word + k) == 0 and knows_readers(S, P, lane, word + k) == 0:
                    return 1
    return ld8(P + P_IS_LOAD) == 0 and multiplied(S, P, lane, word)


def write_site(S, place, word, site):
    if ld8(S + SITE_BYTES) == 1:
        st1(place + word, site)
    elif ld8(S + SITE_BYTES) == 2:
        st2(place + 2 * word, site)
    else:
        st4(place + 4 * word, site)


def record_read(S, P, lane, word):
    me = lane + ld8(S + FIRST_THREAD)
    block = ld4(ld8(S + BLOCK_OF) + 4 * lane)
    warp = ld4(ld8(S + WARP_OF) + 4 * lane)
    for k in range(ld8(P + P_RACE_WORDS)):
        at = 4 * (word + k)
        write_site(S, ld8(P + P_READ_SITE), word + k, ld8(P + P_SITE))
        reader = sx32(ld4(ld8(P + P_READER) + at))
        if reader != me:
            fresh = reader == 0
            if fresh == 0:
                fresh = after_readers(S, P, lane, word + k)
            if fresh:
                st4(ld8(P + P_READER) + at, me)
                st4(ld8(P + P_READER_WARP) + at, warp + ld8(S + FIRST_WARP))
                st4(ld8(P + P_READER_BLOCK) + at, block + ld8(S + FIRST_BLOCK))
                if ld8(S + COLUMNS):
                    st4(ld8(P + P_READER_CLUSTER) + at, cluster(S, warp))
            else:
                st4(ld8(P + P_READER) + at, -1)
                if sx32(ld4(ld8(P + P_READER_WARP) + at)) != warp + ld8(S + FIRST_WARP):
                    st4(ld8(P + P_READER_WARP) + at, -1)
                if sx32(ld4(ld8(P + P_READER_BLOCK) + at)) != block + ld8(S + FIRST_BLOCK):
                    st4(ld8(P + P_READER_BLOCK) + at, -1)
                if ld8(S + COLUMNS):
                    if sx32(ld4(ld8(P + P_READER_CLUSTER) + at)) != cluster(S, warp):
                        st4(ld8(P + P_READER_CLUSTER) + at, -1)
        if ld8(S + COLUMNS):
            st4(ld8(P + P_READ_AT) + at, ld8(S + NOW))
        elif ld8(S + ORDERED):
            st4(ld8(P + P_READ_EPOCH) + at, ld4(ld8(S + EPOCHS) + 4 * block))
            st4(ld8(P + P_READ_TIME) + at, ld4(ld8(S + TIMES) + 4 * warp))


def note_readers(S, P):
    # Note when words are read, and by which warps, before `record_read` (`WordRaces._add_reading_warps`).
    n = ld8(S + COUNT)
    list = ld8(S + LIST)
    address = ld8(S + ADDRESS)
    low = ld8(P + P_LOW)
    shift = ld8(P + P_WORD_SHIFT)
    fresh = ld8(S + OLD)
    now = ld8(S + NOW)
    for k in range(ld8(P + P_RACE_WORDS)):
        mine = 1
        for i in range(n):
            lane = ld4(list + 4 * i)
            word = ((ld8(address + 8 * i) - low) >> shift) + k
            reader = sx32(ld4(ld8(P + P_READER) + 4 * word))
            if reader != lane + ld8(S + FIRST_THREAD):
                mine = 0
            st4(fresh + 4 * i, 1 if reader == 0 else after_readers(S, P, lane, word))
        if mine == 0:
            for i in range(n):
                at = 4 * (((ld8(address + 8 * i) - low) >> shift) + k)
                if ld4(fresh + 4 * i):
                    st4(ld8(P + P_FIRST_READ_AT) + at, now)
                    st4(ld8(P + P_READ_BY) + at, 0)
                    st4(ld8(P + P_AGAIN_BY) + at, 0)
            for i in range(n):
                at = 4 * (((ld8(address + 8 * i) - low) >> shift) + k)
                bit = 1 << urem(ld4(ld8(S + WARP_OF) + 4 * ld4(list + 4 * i)), ld8(S + COLUMNS))
                st4(ld8(P + P_READ_BY) + at, ld4(ld8(P + P_READ_BY) + at) | bit)
                if ld4(fresh + 4 * i) == 0:
                    again = ld4(ld8(P + P_AGAIN_BY) + at)
                    if again == 0:
                        st4(ld8(P + P_AGAIN_AT) + at, now)
                    st4(ld8(P + P_AGAIN_BY) + at, again | bit)
            for i in range(n):
                at = 4 * (((ld8(address + 8 * i) - low) >> shift) + k)
                if ld4(fresh + 4 * i) == 0 and ld4(ld8(P + P_AGAIN_BY) + at) == ld4(ld8(P + P_READ_BY) + at):
                    st4(ld8(P + P_FIRST_READ_AT) + at, ld4(ld8(P + P_AGAIN_AT) + at))
                    st4(ld8(P + P_AGAIN_BY) + at, 0)


def record_write(S, P, lane, word):
    block = ld4(ld8(S + BLOCK_OF) + 4 * lane)
    warp = ld4(ld8(S + WARP_OF) + 4 * lane)
    if ld8(P + P_ENDS_READS):
        for group in range(ld8(P + P_GROUPS)):
            piece = group * ld8(P + P_PIECES) + (word >> ld8(P + P_PIECE_SHIFT))
            st4(ld8(P + P_OPERANDS) + 4 * piece, 0)
    for k in range(ld8(P + P_RACE_WORDS)):
        at = 4 * (word + k)
        kind = ld8(P + P_IS_ATOMIC)
        if kind == 2:
            kind = 1
            known = ld1(ld8(P + P_ATOMIC) + word + k)
            other = sx32(ld4(ld8(P + P_WRITER) + at)) - ld8(S + FIRST_THREAD)
            if known == 2 or (known != 0 and other != lane):
                kind = 2 - behind(S, P, lane, other, word + k, ld8(P + P_WRITE_EPOCH), ld8(P + P_WRITE_TIME))
        st4(ld8(P + P_WRITER) + at, lane + ld8(S + FIRST_THREAD))
        st4(ld8(P + P_READER) + at, 0)
        write_site(S, ld8(P + P_WRITE_SITE), word + k, ld8(P + P_SITE))
        if ld8(S + COLUMNS):
            st4(ld8(P + P_WRITTEN_AT) + at, ld8(S + NOW))
        elif ld8(S + ORDERED):
            st4(ld8(P + P_WRITE_EPOCH) + at, ld4(ld8(S + EPOCHS) + 4 * block))
            st4(ld8(P + P_WRITE_TIME) + at, ld4(ld8(S + TIMES) + 4 * warp))
        if ld8(P + P_ATOMIC):
            st1(ld8(P + P_ATOMIC) + word + k, kind)
        if ld8(S + FENCES):
            me = lane + ld8(S + FIRST_THREAD)
            st4(ld8(P + P_WRITE_FENCES) + at, ld4(ld8(S + FENCES) + 4 * me))
            st4(ld8(P + P_WRITE_WIDE) + at, ld4(ld8(S + WIDE_FENCES) + 4 * me))


def apart(S, P):
    # Do the lanes of a store write different words?
    n = ld8(S + COUNT)
    list = ld8(S + LIST)
    address = ld8(S + ADDRESS)
    old = ld8(S + OLD)
    writer = ld8(P + P_WRITER)
    low = ld8(P + P_LOW)
    shift = ld8(P + P_WORD_SHIFT)
    rising = 1
    for i in range(n - 1):
        if ld8(address + 8 * i) >= ld8(address + 8 * i + 8):
            rising = 0
    if rising:
        return 1
    first = ld8(S + FIRST_THREAD)
    for i in range(n):
        at = writer + 4 * ((ld8(address + 8 * i) - low) >> shift)
        st4(old + 4 * i, ld4(at))
        st4(at, ld4(list + 4 * i) + first)
    good = 1
    for i in range(n):
        at = writer + 4 * ((ld8(address + 8 * i) - low) >> shift)
        if ld4(at) != ld4(list + 4 * i) + first:
            good = 0
    if good == 0:
        for i in range(n):
            j = n - 1 - i
            st4(writer + 4 * ((ld8(address + 8 * j) - low) >> shift), ld4(old + 4 * j))
    return good


def recorded(S, P):
    # Compare accesses with the records of their words, and record them. Returns 1, with nothing changed, where some may
    # race.
    n = ld8(S + COUNT)
    list = ld8(S + LIST)
    address = ld8(S + ADDRESS)
    low = ld8(P + P_LOW)
    shift = ld8(P + P_WORD_SHIFT)
    is_load = ld8(P + P_IS_LOAD)
    for i in range(n):
        if race(S, P, ld4(list + 4 * i), (ld8(address + 8 * i) - low) >> shift):
            return 1
    if is_load and ld8(P + P_UNRECORDED):
        return 0
    if is_load == 0 and ld8(P + P_IS_ATOMIC) == 0 and apart(S, P) == 0:
        return 1
    if is_load and ld8(S + COLUMNS):
        note_readers(S, P)
    for i in range(n):
        word = (ld8(address + 8 * i) - low) >> shift
        if is_load:
            record_read(S, P, ld4(list + 4 * i), word)
        else:
            record_write(S, P, ld4(list + 4 * i), word)
    return 0


def examined(S, P):
    # Do so for accesses given by their words.
    for i in range(ld8(S + COUNT)):
        if ult(ld8(P + P_LIMIT), ld8(ld8(S + ADDRESS) + 8 * i)):
            return 1
    return recorded(S, P)


def written(P, e):
    width = ld8(P + P_WIDTH)
    at = ld8(P + P_WRITTEN) + e
    if width == 4:
        return ld4(at) == 0xFFFFFFFF
    if width == 1:
        return ld1(at) == 0xFF
    if width == 2:
        return ld2(at) == 0xFFFF
    if width == 16 and ld8(at + 8) != -1:
        return 0
    return ld8(at) == -1


def mark(P, e):
    width = ld8(P + P_WIDTH)
    at = ld8(P + P_WRITTEN) + e
    if width == 4:
        st4(at, -1)
    elif width == 1:
        st1(at, -1)
    elif width == 2:
        st2(at, -1)
    else:
        st8(at, -1)
        if width == 16:
            st8(at + 8, -1)


def access(S, P):
    n = ld8(S + COUNT)
    list = ld8(S + LIST)
    address = ld8(S + ADDRESS)
    low = ld8(P + P_LOW)
    limit = ld8(P + P_LIMIT)
    own = ld8(P + P_OWN)
    starts = ld8(S + SHARED) if own == 1 else ld8(S + LOCAL)
    width = ld8(P + P_WIDTH)
    is_load = ld8(P + P_IS_LOAD)
    known = ld8(P + P_WRITTEN)
    writer = ld8(P + P_WRITER)
    if limit < 0:
        return 1
    for i in range(n):
        e = ld8(address + 8 * i) - low
        d = e
        if own:
            d = e - ld8(starts + 8 * ld4(list + 4 * i))
        if d < 0 or d > limit or (d & (width - 1)) != 0:
            return 1
    if known != 0 and is_load != 0:
        for i in range(n):
            if written(P, ld8(address + 8 * i) - low) == 0:
                return 1
    if writer:
        if recorded(S, P):
            return 1
    if known != 0 and is_load == 0:
        for i in range(n):
            mark(P, ld8(address + 8 * i) - low)
    if ld8(S + COUNTED):
        count(S, P)
    st8(P + P_FAST, ld8(P + P_FAST) + 1)
    if ld8(S + ACCESSES_SEEN):
        return call(ld8(S + CALLBACK), 4, ld8(P + P_SITE), 0, 0, 0)
    return 0
"""


_compiled: list[Compiled] = []


@cache
def _source() -> Source:
    return Source(SOURCE + narrow_groups.SOURCE, CONSTANTS)


def ready() -> bool:
    """Tell whether the functions have been compiled, by this process or one before it."""
    return bool(_compiled or (available() and _source().kept))


_OF_ALL = ("ordered", "distinct", "wavefronts", "mark", "race", "write_site")  # for `machine_blocks`
NAMES = {f"F_{name.upper()}": name for name in ("access", "examined", *_OF_ALL, *narrow_groups.FUNCTIONS)}


@cache
def addresses() -> dict[str, int]:
    """Return where the functions that a loop's code calls begin, by `NAMES`. Compiles them at the first call."""
    _compiled.append(Compiled(_source()))
    return {other: _compiled[0].address(name) for other, name in NAMES.items()}


@cache
def examined() -> tuple[Any, str]:
    """Return the function of that name in `SOURCE`, None where it cannot be compiled, and why."""
    why = why_not(addresses)
    return (None if why else _compiled[0].function("examined", 2)), why
