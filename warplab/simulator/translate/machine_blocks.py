"""Basic blocks that all lanes of a chunk run, as machine code: what the arrays' code does in one pass for each warp.

A block becomes one function. Warp by warp it computes, tests and counts all that the arrays' code and `Checks` and
`Counting` would, with intermediate values in rows of 32 lanes that stay in the nearest cache. It changes nothing but
what it is given for its results: where a warp does anything unusual (an address unaligned or out of the bounds of the
array, a byte that nobody wrote), the function returns at once, and the arrays' code runs the block as if
nothing had been; so errors are always the arrays'. Then the stores are made (`store`), each by all lanes, or by the
arrays' code where lanes may race; and other observers are told of what concerns them (`run.machine_runs`).

Warps often access memory in one pattern: a record of the latest one, with what it costs at its place within a sector,
is kept for each memory instruction, and compared in a few vector instructions. Whoever wants addresses gets, for each
warp, the first one and the record. Of loads of shared memory from one base, the first is tested and counted for all.

Left to the arrays' code (`LaunchProfile.log` says why): instructions that `machine_operations` does not know,
atomic and volatile accesses, generic addresses, loads of shared or local memory behind a store there, groups that are
not all lanes, short blocks of chunks of few lanes, chunks of warps that are not full.
"""

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from warplab.simulator.constants import SECTOR_BYTES
from warplab.simulator.ptx.program import Immediate, Instruction, Symbol, as_address, items_of, name_of
from warplab.simulator.translate import kept_code, machine_access, machine_compiler
from warplab.simulator.translate.basic_blocks import BARRIER, Block, destinations, sources
from warplab.simulator.translate.block_writer import DTYPES, _fit, item_bytes
from warplab.simulator.translate.machine_access import CONSTANTS, PLACE_BYTES
from warplab.simulator.translate.machine_operations import TABLE, NoMachineCode
from warplab.simulator.translate.machine_writer import UNKNOWN, MachineWriter, left_to_arrays

# Nanoseconds that the arrays' code takes for an instruction, and more for each lane, roughly; those to write a block
# and each of its instructions, to compile them where no earlier process has, and before the first one of a process;
# and how many times over they are spent before: so a launch that ends just then has lost little. What earlier processes
# have spent counts. Less where chunks of the launch are still to come, which will take as long as this one.
_INSTRUCTION, _MULTIPLY_ADD, _ACCESS, _GLOBAL = (1500, 0.5), (8000, 2.0), (15000, 5.0), (15000, 15.0)
_WRITE, _WRITE_INSTRUCTION, _TIMES, _TIMES_AHEAD = 1e6, 3e4, 10, 2
_BLOCK, _OF_INSTRUCTION, _OF_MULTIPLY_ADD, _FIRST = 15e6, 1.5e6, 0.3e6, 150e6
_MOST_MISSES = 8
_MOST_VERSIONS = 3  # of a block, by which of its registers are single entries
ROW = 8 * 32
_FAILED = "failed = 1"
_WORDS = ("f4", "u4", "i4")  # registers of 32 bits
_SPAN = "span_of_{}_"  # stands for how far below and above an access those lie that are tested with it

# Entries of a record behind the lanes' distances from the first: which bits of an address tell where it lies in a
# sector or bank, and these; the lowest and highest distance, their bits, how the lanes lie (`_KINDS`), what a warp
# costs; from 64 on the numbers of its sectors.
_RECORD = ("MASK", "PHASE", "LOWEST", "HIGHEST", "BITS", "KIND", "DISTINCT", "SECTORS", "WAVEFRONTS", "NEEDED")
RECORD_ENTRIES = 96
PHASE = 32 + _RECORD.index("PHASE")
# Anywhere; all of each half of a warp at one place; one element behind the other, so in each half.
_KINDS = ("ANY", "SAME", "LINE", "HALVES")
_NAMES = {f"R_{name}": ROW + 8 * k for k, name in enumerate(_RECORD)} | {"R_NUMBERS": 8 * 64}
_NAMES |= {"RECORD_BYTES": 8 * RECORD_ENTRIES} | {name: k for k, name in enumerate(_KINDS)}

_LOADS = """
def load{n}(P, other, base, row):
    # Load 32 numbers of {n} bytes.
    record = ld8(other + P_RECORD)
    at = ld8(P + P_DATA) - ld8(P + P_LOW) + base
    half = at + ld8(record + 128)
    kind = ld8(record + R_KIND)
    if kind == ANY:
        for i in lanes(32):
            st{n}(row + {n} * i, ld{n}(at + ld8(record + 8 * i)))
    elif kind == SAME:
        for i in lanes(16):
            st{n}(row + {n} * i, ld{n}(at))
            st{n}(row + {h} + {n} * i, ld{n}(half))
    else:
        for i in lanes(16):
            st{n}(row + {n} * i, ld{n}(at + {n} * i))
            st{n}(row + {h} + {n} * i, ld{n}(half + {n} * i))
"""
_FMAS = """
def fma{ftz}(S, a, b, c, out):
    # Compute rows of float32.
    for i in lanes(32):
        y = f32fma({flush}(ld4(a + 4 * i)), {flush}(ld4(b + 4 * i)), {flush}(ld4(c + 4 * i)))
        tiny = either((y & 0x7FFFFFFF) == 8388608)
        y = {flush}(y)
        if f32nan(y, y):
            y = 0x7FFFFFFF
        st4(out + 4 * i, y)
"""
_FMA = {
    ("rn", "f32"): _FMAS.format(ftz="", flush="").replace("        tiny = either((y & 0x7FFFFFFF) == 8388608)\n", ""),
    ("rn", "ftz", "f32"): _FMAS.format(ftz="ftz", flush="f32flush") + "    if tiny:\n        st8(S + FAILED, 1)\n",
}
_LOADED = (2, 4, 8)  # bytes of numbers that these load
# What the code of a block calls.
_CALLED = ("ACCESS", "AGAIN", "FMA", "FMAFTZ", *(f"LOAD{n}" for n in _LOADED))

SOURCE = (
    """
def learn(S, P):
    # Make a record of the addresses of a warp. Returns 1 if there is no room for it.
    address = ld8(S + ADDRESS)
    record = ld8(P + P_OWN_RECORD)
    if ld8(P + P_BASES):
        record = ld8(S + POOL)
        if record == ld8(S + POOL_END):
            st8(S + FULL, 1)
            return 1
        st8(S + POOL, record + RECORD_BYTES)
    st8(P + P_RECORD, record)
    base = ld8(address)
    low = 0
    high = 0
    bits = 0
    for i in range(32):
        distance = ld8(address + 8 * i) - base
        st8(record + 8 * i, distance)
        low = distance if distance < low else low
        high = distance if distance > high else high
        bits = bits | distance
    space = ld8(P + P_SPACE)
    mask = 31 if space == 0 else 3
    st8(record + R_MASK, mask)
    st8(record + R_PHASE, base & mask)
    st8(record + R_LOWEST, low)
    st8(record + R_HIGHEST, high)
    st8(record + R_BITS, bits)
    width = ld8(P + P_WIDTH)
    half = ld8(record + 128)
    for i in lanes(16):
        rising = either((ld8(record + 8 * i) ^ (width * i)) | ((ld8(record + 128 + 8 * i) - half) ^ (width * i)))
        spread = either(ld8(record + 8 * i) | (ld8(record + 128 + 8 * i) - half))
    kind = SAME if spread == 0 else ANY
    if rising == 0:
        kind = LINE if half == 16 * width else HALVES
    st8(record + R_KIND, kind)
    if space == 0:
        keys = ld8(S + KEYS)
        for i in range(32):
            st8(keys + 8 * i, ld8(address + 8 * i))
        call(F_ORDERED, keys, 32)
        st8(record + R_DISTINCT, call(F_DISTINCT, keys, 32, 0))
        n = 0
        last = -1
        for i in range(32):
            sector = ld8(keys + 8 * i) >> 5
            if sector != last:
                st8(record + R_NUMBERS + 8 * n, sector - (base >> 5))
                n = n + 1
            last = sector
        st8(record + R_SECTORS, n)
    elif space == 1 and ld8(P + P_COUNTED_BYTES) != 0:
        passes = ld8(P + P_WAVEFRONTS)
        needed = ld8(P + P_NEEDED)
        call(F_WAVEFRONTS, S, P, 0, 32)
        st8(record + R_WAVEFRONTS, ld8(P + P_WAVEFRONTS) - passes)
        st8(record + R_NEEDED, ld8(P + P_NEEDED) - needed)
        st8(P + P_WAVEFRONTS, passes)
        st8(P + P_NEEDED, needed)
    return 0


def settle(S, P, record, base, first, below, above):
    # Test and count the accesses of one warp, whose pattern is in `record`; test others, so far below or above, with
    # them. Returns 1 where anything is unusual.
    start = ld8(P + P_LOW)
    limit = ld8(P + P_LIMIT)
    own = ld8(P + P_OWN)
    if ((base | ld8(record + R_BITS)) & (ld8(P + P_WIDTH) - 1)) != 0:
        return 1
    if own == 2:
        starts = ld8(S + LOCAL) + 8 * first
        for i in lanes(32):
            bad = either(ult(limit, base + ld8(record + 8 * i) - start - ld8(starts + 8 * i)))
        if bad != 0 or limit < 0:
            return 1
    else:
        if own:
            start = start + ld8(ld8(S + SHARED) + 8 * first)
        if base + ld8(record + R_LOWEST) + below < start or base + ld8(record + R_HIGHEST) + above - start > limit:
            st8(S + STRAYED, ld8(P + P_SITE) + 1)
            st8(S + STRAYED_TO, base)
            return 1
    if ld8(P + P_WRITTEN) != 0 and ld8(P + P_IS_LOAD) != 0:
        at = ld8(P + P_WRITTEN) + base - ld8(P + P_LOW)
        half = at + ld8(record + 128)
        kind = ld8(record + R_KIND)
        width = ld8(P + P_WIDTH)
        missing = 0
        if width == 4 and kind == SAME:
            missing = (ld4(at) & ld4(half)) ^ 0xFFFFFFFF
        elif width == 4 and kind != ANY:
            for i in lanes(16):
                missing = either((ld4(at + 4 * i) & ld4(half + 4 * i)) ^ 0xFFFFFFFF)
        else:
            k = 0
            while k < width:
                if width < 4:
                    for i in lanes(32):
                        none = either(ld1(at + k + ld8(record + 8 * i)) ^ 0xFF)
                    k = k + 1
                else:
                    for i in lanes(32):
                        none = either(ld4(at + k + ld8(record + 8 * i)) ^ 0xFFFFFFFF)
                    k = k + 4
                missing = missing | none
        if missing:
            return 1
    bases = ld8(P + P_BASES)
    if bases:
        bases = bases + (first >> 1)
        st8(bases, base - ld8(P + P_OFFSET))
        st8(bases + 8, record)
    if ld8(S + COUNTED) == 0:
        return 0
    space = ld8(P + P_SPACE)
    if space == 1:
        if ld8(P + P_COUNTED_BYTES) == 0:
            return 0
        st8(P + P_WAVEFRONTS, ld8(P + P_WAVEFRONTS) + ld8(record + R_WAVEFRONTS))
        st8(P + P_NEEDED, ld8(P + P_NEEDED) + ld8(record + R_NEEDED))
    st8(P + P_REQUESTS, ld8(P + P_REQUESTS) + 1)
    if space == 0:
        n = ld8(record + R_SECTORS)
        st8(P + P_DISTINCT, ld8(P + P_DISTINCT) + ld8(record + R_DISTINCT))
        st8(P + P_SECTORS, ld8(P + P_SECTORS) + n)
        done = ld8(P + P_TOUCHED_DONE)
        touches = ld8(P + P_TOUCHES) + 4 * done
        sector = (base >> 5) - (ld8(P + P_LOW) >> 5)
        for i in range(n):
            st4(touches + 4 * i, sector + ld8(record + R_NUMBERS + 8 * i))
        st8(P + P_TOUCHED_DONE, done + n)
    return 0


def access(S, P, first, below, above):
    # Do so, for the addresses of a warp.
    address = ld8(S + ADDRESS)
    record = ld8(P + P_RECORD)
    base = ld8(address)
    for i in lanes(32):
        differ = either((ld8(address + 8 * i) - base) ^ ld8(record + 8 * i))
    lent = ld8(P + P_BASES) != 0 and record == ld8(P + P_OWN_RECORD)
    if differ != 0 or (base & ld8(record + R_MASK)) != ld8(record + R_PHASE) or lent:
        if learn(S, P):
            return 1
        record = ld8(P + P_RECORD)
    return settle(S, P, record, base, first, below, above)


def again(S, P, other, base, first):
    # Do as `access`, for lanes that have the pattern of another instruction's present access.
    return settle(S, P, ld8(other + P_RECORD), base, first, 0, 0)


"""
    + "\n".join([*_FMA.values(), *(_LOADS.format(n=n, h=16 * n) for n in _LOADED)])
    + """


def taken(S, P, first, k, away):
    # Write down that lanes are about to write their words. Returns whether any of these may race.
    base = ld8(ld8(P + P_BASES) + (first >> 1)) - away
    record = ld8(ld8(P + P_BASES) + (first >> 1) + 8)
    old = ld8(S + OLD) + 4 * (first + k * ld8(S + LANES))
    shift = ld8(P + P_WORD_SHIFT)
    writer = ld8(P + P_WRITER) + 4 * k
    reader = ld8(P + P_READER) + 4 * k
    me = ld8(S + FIRST_THREAD) + first
    odd = 0
    half = ld8(record + 128)
    rows = ld8(record + R_KIND) > SAME and ld8(P + P_RACE_WORDS) == 1
    if rows:
        for h in range(2):
            at = 4 * ((base + h * half) >> shift)
            mine = me + 16 * h
            for i in lanes(16):
                other = ld4(writer + at + 4 * i)
                st4(old + 64 * h + 4 * i, other)
                unlike = either(other != 0 and other != mine + i)
            odd = odd | unlike
            if ld8(P + P_WAS_READ):
                for i in lanes(16):
                    read = ld4(reader + at + 4 * i)
                    unlike = either(read != 0 and read != mine + i)
                odd = odd | unlike
    else:
        for i in lanes(32):
            word = (base + ld8(record + 8 * i)) >> shift
            other = ld4(writer + 4 * word)
            read = ld4(reader + 4 * word)
            st4(old + 4 * i, other)
            odd = either((other != 0 and other != me + i) or (read != 0 and read != me + i))
    if odd:
        for i in range(32):
            if call(F_RACE, S, P, first + i, (base + ld8(record + 8 * i)) >> shift):
                return 1
    if rows:
        for h in range(2):
            at = writer + 4 * ((base + h * half) >> shift)
            for i in lanes(16):
                st4(at + 4 * i, me + 16 * h + i)
    else:
        for i in lanes(32):
            st4(writer + 4 * ((base + ld8(record + 8 * i)) >> shift), me + i)
    return 0


def put(P, first, k, base, record, values):
    # Write the values of a warp: `k`, those of the element.
    item = ld8(P + P_ITEM)
    data = ld8(P + P_DATA) + k * item + base
    if item == 4:
        values = values + 4 * first
        if ld8(record + R_KIND) > SAME and ld8(P + P_WIDTH) == 4:
            half = data + ld8(record + 128)
            for i in lanes(16):
                st4(data + 4 * i, ld4(values + 4 * i))
                st4(half + 4 * i, ld4(values + 64 + 4 * i))
        else:
            for i in lanes(32):
                st4(data + ld8(record + 8 * i), ld4(values + 4 * i))
    elif item == 8:
        values = values + 8 * first
        for i in lanes(32):
            st8(data + ld8(record + 8 * i), ld8(values + 8 * i))
    elif item == 2:
        for i in range(32):
            st2(data + ld8(record + 8 * i), ld2(values + 2 * (first + i)))
    else:
        for i in range(32):
            st1(data + ld8(record + 8 * i), ld1(values + first + i))


def spread(to, shift, base, record, words, number):
    # Write a number of 32 bits for each word that a warp writes.
    if ld8(record + R_KIND) > SAME and words == 1:
        half = to + 4 * ((base + ld8(record + 128)) >> shift)
        to = to + 4 * (base >> shift)
        for i in lanes(16):
            st4(to + 4 * i, number)
            st4(half + 4 * i, number)
    else:
        for k in range(words):
            for i in lanes(32):
                st4(to + 4 * (((base + ld8(record + 8 * i)) >> shift) + k), number)


def noted(S, P, first, base, record):
    # Note what a warp has written: which words, and which bytes.
    if ld8(P + P_WRITER):
        shift = ld8(P + P_WORD_SHIFT)
        words = ld8(P + P_RACE_WORDS)
        site = ld8(P + P_WRITE_SITE)
        number = ld8(P + P_SITE)
        if ld8(S + ORDERED):
            epoch = ld4(ld8(S + EPOCHS) + 4 * ld4(ld8(S + BLOCK_OF) + 4 * first))
            time = ld4(ld8(S + TIMES) + 4 * ld4(ld8(S + WARP_OF) + 4 * first))
            spread(ld8(P + P_WRITE_EPOCH), shift, base, record, words, epoch)
            spread(ld8(P + P_WRITE_TIME), shift, base, record, words, time)
        if ld8(P + P_WAS_READ):
            spread(ld8(P + P_READER), shift, base, record, words, 0)
        if ld8(record + R_KIND) > SAME and words == 1 and ld8(S + SITE_BYTES) == 1:
            half = site + ((base + ld8(record + 128)) >> shift)
            site = site + (base >> shift)
            for i in lanes(16):
                st1(site + i, number)
                st1(half + i, number)
        else:
            for k in range(words):
                for i in range(32):
                    call(F_WRITE_SITE, S, site, ((base + ld8(record + 8 * i)) >> shift) + k, number)
        if ld8(P + P_ATOMIC):
            for k in range(words):
                for i in range(32):
                    st1(ld8(P + P_ATOMIC) + ((base + ld8(record + 8 * i)) >> shift) + k, 0)
    if ld8(P + P_WRITTEN):
        if ld8(P + P_WIDTH) >= 4:
            spread(ld8(P + P_WRITTEN), 2, base, record, ld8(P + P_WIDTH) >> 2, -1)
        else:
            for i in range(32):
                call(F_MARK, P, base + ld8(record + 8 * i))


def store(S, P, values, items):
    # Make a store of all lanes. Returns 1, with nothing changed, where words may race or lanes share them.
    away = ld8(P + P_LOW) - ld8(P + P_OFFSET)
    warps = ld8(S + WARPS)
    if ld8(P + P_WRITER):
        words = ld8(P + P_RACE_WORDS)
        shift = ld8(P + P_WORD_SHIFT)
        writer = ld8(P + P_WRITER)
        bad = 0
        done = 0
        while done < warps and bad == 0:
            for k in range(words):
                bad = bad | taken(S, P, 32 * done, k, away)
            done = done + 1
        warp = 0
        while warp < done and bad == 0:
            base = ld8(ld8(P + P_BASES) + 16 * warp) - away
            record = ld8(ld8(P + P_BASES) + 16 * warp + 8)
            me = ld8(S + FIRST_THREAD) + 32 * warp
            if words == 1 and ld8(record + R_KIND) > SAME:
                at = writer + 4 * (base >> shift)
                half = writer + 4 * ((base + ld8(record + 128)) >> shift)
                for i in lanes(16):
                    odd = either((ld4(at + 4 * i) ^ (me + i)) | (ld4(half + 4 * i) ^ (me + 16 + i)))
                bad = bad | odd
            else:
                for k in range(words):
                    for i in lanes(32):
                        odd = either(ld4(writer + 4 * (((base + ld8(record + 8 * i)) >> shift) + k)) ^ (me + i))
                    bad = bad | odd
            warp = warp + 1
        if bad:
            while done > 0:
                done = done - 1
                base = ld8(ld8(P + P_BASES) + 16 * done) - away
                record = ld8(ld8(P + P_BASES) + 16 * done + 8)
                k = words
                while k > 0:
                    k = k - 1
                    old = ld8(S + OLD) + 4 * (32 * done + k * ld8(S + LANES))
                    for i in lanes(32):
                        st4(writer + 4 * (((base + ld8(record + 8 * i)) >> shift) + k), ld4(old + 4 * i))
            return 1
    for warp in range(warps):
        first = 32 * warp
        base = ld8(ld8(P + P_BASES) + 16 * warp) - away
        record = ld8(ld8(P + P_BASES) + 16 * warp + 8)
        for k in range(items):
            put(P, first, k, base, record, ld8(values + 8 * k))
        noted(S, P, first, base, record)
    return 0
"""
)


@dataclass
class BlockAccess:
    """An access of a block: its instruction, and whether its address is a single entry. A load that `waits` comes
    behind a store to global memory. `values`: of a store, the outputs that hold them; are they single entries?
    """

    site: Any
    single: bool
    waits: bool = False
    values: tuple[tuple[int, bool], ...] = ()


class BlockCode(MachineWriter):
    """Writes one block for all lanes. `single`: registers that it reads and that hold a single entry."""

    def __init__(self, translator, block: Block, single: frozenset[str], one_block: bool) -> None:
        super().__init__(translator)
        self.now, self.one_block = block, one_block
        self.single = dict.fromkeys(single, True)
        self.begins_single = single
        self.inputs: list[str] = []
        self.outputs: list[tuple[str, str | None]] = []  # dtype, and the register (None: for a store)
        self.reaches: list[BlockAccess] = []
        # By base register, space and bytes: a load whose pattern is that of later ones.
        self.patterns: dict[tuple[Any, ...], Any] = {}
        self.like: dict[int, int] = {}  # by site of shared memory: the earlier one, which is tested and counted for it
        self.spans: dict[int, list[int]] = {}  # by the latter: distances of all from it
        self.indent = "        "

    def write(self) -> str:
        """Return the function. Raises what `UNKNOWN` names."""
        block = self.now
        self.block(block)
        wanted = {*block.live_out, getattr(block.condition, "name", "")}
        for name in sorted(self.written & wanted):  # in this order for `_for_more`
            dtype, size = self.translator.dtypes[name], _size(self.translator.dtypes[name])
            if self.single[name]:
                self.emit(f"st{size}({self.output(dtype, name, '0')}, ld{size}({self.place(name)}))")
            else:
                self.emit("for i in lanes(32):")
                self.emit(f"    st{size}({self.output(dtype, name, '(first + i)')}, {self.row(name)})")
        head = [
            "def block(S):",
            "    address = ld8(S + ADDRESS)",
            "    rows = ld8(S + REGISTERS)",
            "    places = ld8(S + PLACES)",
            "    inputs = ld8(S + INPUTS)",
            "    outputs = ld8(S + OUTPUTS)",
            "    plain = ld8(S + PLAIN)",
            *(f"    in{k} = ld8(inputs + {8 * k})" for k in range(len(self.inputs))),
            *(
                f"    u{k} = ld{_size(self.translator.dtypes[name])}(in{k})"
                for k, name in enumerate(self.inputs)
                if name in self.begins_single
            ),
            *(f"    out{k} = ld8(outputs + {8 * k})" for k in range(len(self.outputs))),
            "    for warp in range(ld8(S + WARPS)):",
            "        first = 32 * warp",
        ]
        text = "\n".join([*head, *self.text, "    return ld8(S + FAILED)"])
        for index, distances in self.spans.items():
            text = text.replace(_SPAN.format(index), f"{min(distances)}, {max(distances)}")
        return text

    def place(self, register: str) -> str:
        return f"rows + {ROW * self.number(register)}"

    def row(self, register: str) -> str:
        """Return a lane's entry of the row of a register."""
        size = _size(self.translator.dtypes[register])
        return f"ld{size}({self.place(register)} + {size} * i)"

    def keep(self, register: str, value: str) -> str:
        """Return what sets a lane's entry of the row of a register."""
        size = _size(self.translator.dtypes[register])
        return f"st{size}({self.place(register)} + {size} * i, {value})"

    def output(self, dtype: str, register: str | None, lane: str) -> str:
        """Return the address of a lane's entry of a new output."""
        self.outputs.append((dtype, register))
        return f"out{len(self.outputs) - 1} + {_size(dtype)} * {lane}"

    def fetch(self, name: str) -> str:
        if name in self.written:
            return self.row(name)
        if name not in self.inputs:
            self.inputs.append(name)
        k, size = self.inputs.index(name), _size(self.translator.dtypes[name])
        return f"u{k}" if name in self.begins_single else f"ld{size}(in{k} + {size} * lane)"

    def finish(self, needed: set[str] | frozenset[str]) -> None:
        stored = [name for name in self.written_here if name in needed]
        if self.lines and (stored or any("st" in line for line in self.lines)):
            self.emit("for i in lanes(32):")
            self.emit("    lane = first + i")
            fails = any(_FAILED in line for line in self.lines)
            if fails:
                self.emit("    failed = 0")
            for name in sorted(self.read_here):
                self.emit(f"    x{self.number(name)} = {self.fetch(name)}")
            for line in self.lines:
                self.emit(f"    {line}")
            if fails:
                self.emit("    st8(S + FAILED, ld8(S + FAILED) | either(failed))")
            for name in stored:
                self.emit(f"    {self.keep(name, f'x{self.number(name)}')}")
        self.written.update(stored)
        self.lines, self.read_here, self.written_here, self.flushes = [], set(), {}, {}

    def _single(self, block: Block) -> None:
        """Leave what `MachineWriter` does for single entries: here they are known while code is written."""

    def rows_of(self, i: Instruction) -> list[str] | None:
        """Return where 32 entries of each of an instruction's registers of 32 bits lie; None if there are none."""
        named = [getattr(o, "name", "") for o in i.operands]
        names = [name for name in named if self.translator.dtypes.get(name) in _WORDS]
        if len(names) < len(i.operands) or any(
            name in self.begins_single and name not in self.written | self.written_here.keys() for name in names
        ):
            return None
        if self.written_here.keys() & names or names[0] in self.read_here:
            self.finish(self.needed())
        rows = [self.place(names[0])]
        for name in names[1:]:
            if name not in self.written and name not in self.inputs:
                self.inputs.append(name)
            rows.append(self.place(name) if name in self.written else f"in{self.inputs.index(name)} + 4 * first")
        return rows

    def instruction(self, i: Instruction) -> None:
        rows = self.rows_of(i) if i.opcode == "fma" and i.modifiers in _FMA else None
        if rows is not None:  # as what calls a function is compiled in a tenth of the time
            self.emit(f"call(FMA{'FTZ' * ('ftz' in i.modifiers)}, S, {', '.join([*rows[1:], rows[0]])})")
            self.written.add(name_of(i.operands[0]))
        else:
            super().instruction(i)
        apart = self.own_spaces(i) - ({"shared"} if self.one_block else set())
        single = not apart and all(self.single.get(name, False) for name in sources(i))
        written = destinations(i)
        self.single.update(dict.fromkeys(written, single))
        self.patterns = {of: site for of, site in self.patterns.items() if of[0] not in written}

    def by_arrays(self, i: Instruction) -> None:
        raise NoMachineCode(i.text)

    def rarely(self, *lines: str) -> None:
        """Leave the block to the arrays' code where the condition that has just been written holds."""
        self.line(f"    {_FAILED}")

    def again(self, template: str, values: list[str], bits: int = 64, out: int = 64) -> str:
        """Leave the block to the arrays' code where this result is wanted: a NaN of float64 is one of its operands."""
        self.rarely()
        return "0"

    def access_site(self, i: Instruction, place: int) -> tuple[Any, str]:
        site, start = self.start(i, i.operands[place])
        if site.flag or site.strong or ".volatile" in site.text or site.space == "generic":
            raise NoMachineCode(i.text)
        return site, start

    def reached(self, i: Instruction, site: Any, start: str, place: int, row: str = "", size: int = 0) -> str:
        """Write the test of an access whose address is the operand `place`, and, if there is a `row`, what loads
        numbers of `size` bytes into it. Returns the place that has the record of the addresses."""
        like = name_of(as_address(i.operands[place]).base), site.op, site.space, site.width, site.counted_bytes
        other = self.patterns.get(like)
        unlike = SECTOR_BYTES if site.space == "global" else max(4, site.width)
        known = other is not None and (site.offset - other.offset) % unlike == 0
        together = known and site.space == "shared" and site.op == "load"
        if other is None or not known:
            self.line(f"st8(address + 8 * i, {start} + {site.offset})")
            self.patterns[like] = other = site
        self.finish(self.needed())
        record = f"places + {PLACE_BYTES * other.index}"
        self.emit(f"P = places + {PLACE_BYTES * site.index}")
        if known:
            away = site.offset - other.offset
            self.emit(f"base{site.index} = base{other.index} + {away}")
            if together:
                self.like[site.index] = other.index
                self.spans[other.index].append(away)
            again = f"call(AGAIN, S, P, {record}, base{site.index}, first)"
            self.emit(f"if plain == 0 and {again}:" if together else f"if {again}:")
        else:
            self.spans[site.index] = [0]
            self.emit(f"if call(ACCESS, S, P, first, {_SPAN.format(site.index)}):")
        self.emit("    return 1")
        if not known:
            self.emit(f"base{site.index} = ld8(address)")
        if row:
            self.emit(f"call(LOAD{size}, P, {record if known else 'P'}, base{site.index}, {row})")
        return record

    def load(self, i: Instruction, dtype: str) -> None:
        named = self.targets(i, dtype)
        site, start = self.access_site(i, 1)
        behind = [step for step in self.reaches if step.site.op == "store" and step.site.space == site.space]
        if behind and site.space != "global":
            raise NoMachineCode(i.text)
        self.reaches.append(BlockAccess(site, self.single_address(i, 1), bool(behind)))
        size = item_bytes(dtype)
        (name, own), *others = named
        if not others and name is not None and item_bytes(own) == size and size in _LOADED:
            self.reached(i, site, start, 1, self.place(name), size)
            self.written.add(name)
            return
        record = self.reached(i, site, start, 1)
        self.emit(f"record = ld8({record} + P_RECORD)")
        self.emit(f"away = ld8(P + P_DATA) - ld8(P + P_LOW) + base{site.index}")
        self.emit("for i in lanes(32):")
        self.emit("    at = away + ld8(record + 8 * i)")
        for k, (name, own) in enumerate(named):
            if name is not None:
                self.emit(f"    {self.keep(name, self.loaded(f'at + {k * size}', dtype, own))}")
                self.written.add(name)

    def store(self, i: Instruction, bits: int) -> None:
        dtype, size = DTYPES[i.modifiers[-1]], bits // 8
        site, start = self.access_site(i, 0)
        step = BlockAccess(site, self.single_address(i, 0))
        for item in items_of(i.operands[1]):
            if isinstance(item, Immediate):
                value, single = str(int(_fit(item.value, f"u{size}"))), True
            else:
                own = self.dtype(item)
                if own == "b1" or item_bytes(own) < size:
                    raise NoMachineCode(i.text)
                value, single = self.register(item), self.single.get(name_of(item), False)
            self.line(f"st{size}({self.output(dtype, None, 'lane')}, {value})")
            step.values += ((len(self.outputs) - 1, single),)
        self.reaches.append(step)
        self.reached(i, site, start, 0)

    def single_address(self, i: Instruction, place: int) -> bool:
        base = as_address(i.operands[place]).base
        if isinstance(base, Symbol):
            variable = self.translator.variables[base.name]
            return variable.space not in ("shared", "local") or (variable.space == "shared" and self.one_block)
        return self.single.get(name_of(base), False)


def _cost(i: Instruction, site: Any) -> tuple[int, float]:
    if site is None:
        return _MULTIPLY_ADD if i.opcode == "fma" else _INSTRUCTION
    return _GLOBAL if site.space == "global" else _ACCESS


def _size(dtype: str) -> int:
    return 1 if dtype == "b1" else item_bytes(dtype)


@dataclass(eq=False)
class MachineBlock:
    """`inputs`: slots of the registers that it reads, and whether they are single entries. `outputs`: dtype, slot
    (None: no register that lives on), the same, and whether the code writes one entry. `condition`: the output that
    holds the condition of its end; None if it is none. `steps`: its accesses, in order; `spaces`: their sites, by space
    and whether they load. `rows`: registers in rows. `variables`: of the module, whose addresses it uses. `like`: by
    number, sites whose counts are those of other ones.
    """

    inputs: list[tuple[int, bool]]
    outputs: list[tuple[str, int | None, bool, bool]]
    condition: int | None
    steps: list[BlockAccess]
    spaces: dict[tuple[str, bool], list[Any]]
    rows: int
    variables: list[str]
    like: dict[int, int]
    call: Any


# A block by its number, those of its registers that are single entries, and whether the chunk is one block.
Version = tuple[int, tuple[str, ...], bool]


class MachineBlocks:
    """The blocks of a kernel as machine code, compiled when the arrays' code has run them for long.

    `declined`: by block, why it is left to the arrays' code. `own_spaces`: of shared and local memory, those that the
    kernel uses.
    """

    times = _TIMES  # over that what compiling takes must have been spent
    spent = 0.0  # nanoseconds that blocks that may be compiled have taken in this process, roughly

    def __init__(self, translator, blocks: list[Block]) -> None:
        self._translator, self._blocks = translator, blocks
        site_of = translator.site_of
        costs = [[_cost(i, site_of.get(id(i))) for i in block.body] for block in blocks]
        self._costs = [tuple(map(sum, zip((0, 0.0), *each, strict=True))) for each in costs]
        self._spent: dict[Version, float] = {}
        self._kept: dict[Version, float] = {}  # of these, what later processes will know
        self._codes: dict[Version, MachineBlock | None] = {}
        self._written: dict[Version, tuple[BlockCode, machine_compiler.Source] | None] = {}
        self._quiet: dict[int, bool] = {}
        self._read: dict[int, list[tuple[str, int]]] = {}  # by block: registers that live when it begins, their slots
        self.declined: dict[int, str] = {}
        self._misses = [0] * len(blocks)  # runs that the arrays' code had to repeat, less those that went well
        self.kept: dict[str, Any] = {}  # by `run.machine_runs`, for chunks to come
        used = {of.space for of in (*translator.variables.values(), *translator.sites)}
        own = {"shared", "local"}
        self.own_spaces = sorted(own if "generic" in used else used & own)

    def takes(self, number: int, lanes: int) -> float:
        """Return about how many nanoseconds the arrays' code takes for a block."""
        fixed, each = self._costs[number]
        return fixed + each * lanes

    def longest(self, lanes: int) -> float:
        return max(self.takes(number, lanes) for number in range(len(self._blocks)))

    def at(self, number: int, chunk, spent: dict[Version | None, float]) -> MachineBlock | None:
        """Return the code of a block that all lanes of a chunk are about to run; None if the arrays' code runs it.
        `spent`: what the chunk has spent, by version, and in all (None)."""
        registers, block = chunk.registers, self._blocks[number]
        if not block.body:
            return None
        if number in self.declined:
            return self.left(number, chunk, self.declined[number])
        if number not in self._read:  # registers such as clocks, which are read when an instruction runs, have no slots
            slots = self._translator.slots
            self._read[number] = [(name, slots[name]) for name in sorted(block.live_in) if name in slots]
        single = tuple([name for name, slot in self._read[number] if registers[slot].shape[0] == 1])
        key = number, single, chunk.blocks == 1
        if key not in self._codes:
            alike = [of for of in self._codes if (of[0], of[2]) == (number, key[2]) and self._codes[of] is not None]
            wider = [of for of in alike if set(of[1]) < set(single)]
            if wider:  # a single entry can stand for all lanes
                self._codes[key] = self._for_more(self._codes[max(wider, key=lambda of: len(of[1]))], *key)
                return self._codes[key]
            now, ahead = self.takes(number, chunk.lanes), chunk.launch.chunks_ahead
            self._spent[key] = self._spent.get(key, 0.0) + now
            MachineBlocks.spent += now
            for of in (key, None):
                spent[of] = spent.get(of, 0.0) + now
            if not self._worth(key, spent, ahead):
                return None
            self._codes[key] = self._compile(key)
        code = self._codes[key]
        return code or self.left(number, chunk, self.declined.get(number, "other registers held one value for all"))

    def _worth(self, key: Version, spent: dict[Version | None, float], ahead: float) -> bool:
        """Tell whether a block has taken long enough to be compiled: less where an earlier process has done that."""

        def enough(takes: float) -> bool:
            return self._spent[key] >= self.times * takes or spent[key] * ahead >= _TIMES_AHEAD * takes

        body = self._blocks[key[0]].body
        sums = sum(i.opcode == "fma" for i in body)
        writing = _WRITE + _WRITE_INSTRUCTION * len(body)
        if key not in self._kept and self._spent[key] >= writing:
            self._kept[key] = float(kept_code.find(self._name(key)) or 0)
            self._spent[key] += self._kept[key]
        if not enough(writing):
            return False
        if key not in self._written:
            self._written[key] = self._write(*key)
        written = self._written[key]
        if written is None:
            return True
        compiling = _BLOCK + _OF_INSTRUCTION * (len(body) - sums) + _OF_MULTIPLY_ADD * sums
        if not (written[1].kept or enough(compiling)):
            self._keep(key, self._spent[key], compiling)
            return False
        self._keep(key, self.times * compiling, 0)
        known = _access.cache_info().currsize or (machine_access.ready() and _source().kept)
        return bool(known or self.spent >= self.times * _FIRST or spent[None] * ahead >= _TIMES_AHEAD * _FIRST)

    def _keep(self, key: Version, spent: float, step: float) -> None:
        """Let later processes know what has been spent, if it is more by `step` than what they know."""
        if spent > self._kept.get(key, 0.0) + step:
            self._kept[key] = spent
            kept_code.keep(self._name(key), str(spent).encode())

    def _name(self, key: Version) -> str:
        return hashlib.sha256(repr((self._text, key)).encode()).hexdigest()

    @functools.cached_property
    def _text(self) -> str:
        return "\n".join(i.text for block in self._blocks for i in block.body)

    @staticmethod
    def left(number: int, chunk, why: str) -> None:
        """Say in the log of the launch that the arrays' code runs a block."""
        line = chunk.translation.block_where[number].line
        chunk.launch.log[f"NumPy ran the code from line {line} on: {why}"] = None

    def hit(self, number: int) -> None:
        """Note that a block could be run."""
        self._misses[number] = max(0, self._misses[number] - 1)

    def miss(self, number: int) -> None:
        """Note that the arrays' code has to repeat the run of a block."""
        self._misses[number] += 1
        if self._misses[number] == _MOST_MISSES:
            self.declined[number] = "addresses or results were often unusual"

    def _write(
        self, number: int, single: tuple[str, ...], one_block: bool
    ) -> tuple[BlockCode, machine_compiler.Source] | None:
        """Return what writes a block's code, and this; None if there can be none."""
        why = left_to_arrays(self._translator)
        if why:
            self.declined[number] = why
        elif sum(key[0] == number and key in self._written for key in self._codes) < _MOST_VERSIONS:
            w = BlockCode(self._translator, self._blocks[number], frozenset(single), one_block)
            try:
                return w, machine_compiler.Source(w.write(), CONSTANTS, _CALLED)
            except UNKNOWN as error:
                self.declined[number] = str(error) or type(error).__name__
        return None

    def _for_more(self, code, number: int, single: tuple[str, ...], one_block: bool) -> MachineBlock:
        """Return a block's code for a version in which more registers are single entries: so are then its results."""
        w = BlockCode(self._translator, self._blocks[number], frozenset(single), one_block)
        w.write()
        known = [name is not None and w.single[name] for _, name in w.outputs]
        outputs = [(*of[:2], single, of[3]) for of, single in zip(code.outputs, known, strict=True)]
        return replace(code, outputs=outputs, steps=w.reaches)

    def _compile(self, key: Version) -> MachineBlock | None:
        written = self._written[key]
        try:
            return None if written is None else self._compiled(self._blocks[key[0]], key[1], *written)
        except (machine_compiler.Untranslatable, RuntimeError, OSError) as error:  # the latter from LLVM
            self.declined[key[0]] = str(error) or type(error).__name__
        return None

    def _compiled(self, block: Block, single: Sequence[str], w: BlockCode, source: Any) -> MachineBlock:
        compiled = machine_compiler.Compiled(source, {name: _access().address(name.lower()) for name in _CALLED})
        slots, condition = self._translator.slots, None
        outputs: list[tuple[str, int | None, bool, bool]] = []
        for k, (dtype, name) in enumerate(w.outputs):
            slot, one = slots[name] if name in block.live_out else None, name is not None and w.single[name]
            outputs.append((dtype, slot, one, one))
            if name is not None and block.condition is not None and name == block.condition.name:
                condition = k
        spaces: dict[tuple[str, bool], list[Any]] = {}
        for step in w.reaches:
            spaces.setdefault((step.site.space, step.site.op == "load"), []).append(step.site)
        inputs, rows = [(slots[name], name in single) for name in w.inputs], len(w.numbers)
        known = list(w.variables), w.like, compiled.function("block")
        return MachineBlock(inputs, outputs, condition, w.reaches, spaces, rows, *known)

    def quiet(self, number: int) -> bool:
        """Tell whether, once all lanes are at a block, none can write shared memory before a barrier of its block, so
        that nothing has to be known of what they load there."""
        if number not in self._quiet:
            self._quiet[number] = self._is_quiet(number)
        return self._quiet[number]

    def _is_quiet(self, number: int) -> bool:
        seen, ahead = set[int](), [number]
        while ahead:
            block = self._blocks[ahead.pop()]
            if block.index in seen:
                continue
            seen.add(block.index)
            if any(self._may_write_shared(i) for i in block.body):
                return False
            if not (block.end == BARRIER and _of_whole_blocks(block.terminator)):
                ahead += block.successors()
        return True

    def _may_write_shared(self, i: Instruction) -> bool:
        site = self._translator.site_of.get(id(i))
        if i.opcode not in TABLE:
            return True
        return site is not None and site.op != "load" and site.space in ("shared", "generic")


@functools.cache
def _source() -> machine_compiler.Source:
    return machine_compiler.Source(SOURCE, {**CONSTANTS, **_NAMES}, machine_access.NAMES)


@functools.cache
def _access() -> machine_compiler.Compiled:
    """Return the code of `access`, which that of all blocks calls."""
    return machine_compiler.Compiled(_source(), machine_access.addresses())


@functools.cache
def store() -> Any:
    """Return the function that makes a store of all lanes (`store` in `SOURCE`)."""
    return _access().function("store", 4)


def _of_whole_blocks(i: Instruction) -> bool:
    """Tell whether an instruction is __syncthreads()."""
    operands = i.operands
    return (
        {"sync"} <= set(i.modifiers) <= {"sync", "cta", "aligned"}
        and len(operands) == 1
        and isinstance(operands[0], Immediate)
    )
