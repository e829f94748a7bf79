"""Writes one basic block as a Python function on whole arrays, using what `operations` makes of each instruction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from warplab.simulator import numerics
from warplab.simulator.constants import BARRIERS
from warplab.simulator.errors import UnsupportedInstruction
from warplab.simulator.ptx.program import (
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
    Where,
    as_address,
    integer,
    name_of,
)
from warplab.simulator.translate.basic_blocks import BARRIER, BRANCH, GUARD, WARP_SYNC, Block
from warplab.simulator.translate.special_registers import REGISTERS, SPECIAL

# NumPy dtype of each PTX type. Registers hold bits; an instruction's type says how it reads them.
_LETTERS = {"b": "u", "u": "u", "s": "i"}
DTYPES = {f"{kind}{8 * size}": f"{letter}{size}" for kind, letter in _LETTERS.items() for size in (1, 2, 4, 8)}
DTYPES |= {"f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8", "f16x2": "u4", "bf16x2": "u4", "pred": "b1"}
DTYPES["b128"] = "V16"  # bits to move and to compare, no number
# What translated code finds by name, besides its own constants.
SCOPE: dict[str, Any] = {"np": np, **{d: np.dtype(d if d != "b1" else "?") for d in {*DTYPES.values()}}}
SCOPE |= numerics.FUNCTIONS


def item_bytes(dtype: str) -> int:
    return int(dtype[1:])


_STRONG = frozenset(("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"))
_RELEASES = frozenset(("release", "acq_rel"))
_BARRIERS, _CLUSTER_BARRIERS = frozenset(("sync", "arrive", "red")), frozenset(("arrive", "wait"))
_MASKED = frozenset(("shfl", "vote", "match", "redux", "elect"))  # their last operand is a mask


class Local(NamedTuple):
    """A Python variable of the function being written: its array's dtype, and the register that it merely renames."""

    name: str
    dtype: str
    alias_of: str | None = None


@dataclass(eq=False)
class Site:
    """One memory instruction: what `lane_access` needs to serve it and observers to check and count it."""

    index: int
    op: str  # "load", "store" or "atomic"
    space: str  # "global", "shared", "local", "const" or "generic"
    dtype: str
    count: int  # elements per lane: 1, 2, 4 or 8
    offset: int
    where: Where
    text: str
    strong: bool = (
        False  # meant to synchronise (volatile, relaxed, acquire, release), a first guess for CAS, or a plain test
    )
    flag: bool = False  # an atomic operation, or a load or store that is meant to synchronise
    releases: bool = False  # whoever sees the flag also sees what the thread did before
    fused: int | None = None  # bytes of the fused access that this one becomes, 0 if it vanishes in another

    def __post_init__(self) -> None:
        self.item = item_bytes(self.dtype)
        self.width = self.item * self.count
        self.counted_bytes = self.width if self.fused is None else self.fused
        self.bank_op = self.op  # as `Group.bank_passes` takes it
        self.counter = self.op  # in the names of counters; "copy" for the writing side of cp.async
        self.past_l1 = False  # is it the writing side of cp.async.cg?
        # May it reach the shared memory of other blocks of the cluster?
        self.cluster = self.space == "generic" or "shared::cluster" in self.text
        # For integers added to one address, ptxas lets one lane add the sum of its warp.
        self.summed = self.op == "atomic" and any(f".add.{kind}" in self.text for kind in ("u32", "s32", "u64"))


class BlockWriter:
    """Writes one block's function. The emitters in `operations` call `value`, `define` and `line`."""

    now: Instruction  # for which code is being written

    def __init__(self, translator, block: Block) -> None:
        self.translator, self.block = translator, block
        self.lines: list[str] = []
        self.read: dict[str, str] = {}  # live-in register → its Python variable
        self.current: dict[str, Local] = {}
        self.views: dict[tuple[str, str], str] = {}
        self.counter = 0

    # -- for emitters --------------------------------------------------------------------------------------

    def instruction(self, instruction: Instruction) -> None:
        self.now = instruction
        emit = self.translator.emitter(instruction)
        if emit is None:
            raise self.unsupported()
        try:
            emit(self, instruction)
        except (KeyError, IndexError, AttributeError, ValueError) as error:
            # A modifier or operand that the emitter does not know.
            raise self.unsupported() from error

    def unsupported(self, what: str = "", reason: str = "") -> UnsupportedInstruction:
        reason = reason or "A GPU may run it. Rewrite this line to run it here."
        what = f"the simulator does not know the PTX instruction `{self.now.text[:200]}`{what and ': ' + what}"
        return UnsupportedInstruction(what, reason=reason, **self.translator.entry.at(self.now.where))

    def fresh(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def line(self, text: str) -> None:
        self.lines.append(text)

    def local(self, register: str) -> Local:
        if register in REGISTERS:
            name, block = self.fresh(), self.block  # clocks differ from instruction to instruction of a block
            ahead = len(block.counted) - next((k for k, i in enumerate(block.body) if i is self.now), 0)
            self.line(f"{name} = m.system.register({register!r}, {ahead}, L)")
            return Local(name, REGISTERS[register][0])
        if register not in self.current:
            dtype = self.translator.dtypes.get(register)
            if dtype is None:
                raise self.unsupported(f"unknown register {register}")
            name = f"r{self.translator.slot(register)}"
            self.read[register] = name
            self.current[register] = Local(name, dtype, register)
        return self.current[register]

    def value(self, operand: Operand, dtype: str) -> str:
        """Return a Python expression for an operand, as an array (or a Python literal) of `dtype`."""
        if isinstance(operand, Register):
            local = self.local(operand.name)
            return self.viewed(local, dtype)
        if isinstance(operand, Negated) and dtype == "b1":
            return f"~{self.value(operand.register, dtype)}"
        if isinstance(operand, Immediate):
            return literal(operand.value, dtype)
        if isinstance(operand, Symbol):
            return self.address_of(operand.name, dtype)
        raise self.unsupported()

    def array(self, operand: Operand, dtype: str) -> str:
        """Return what `value` does, but always an array: a literal becomes a constant with a single entry."""
        return self.constant(operand.value, dtype) if isinstance(operand, Immediate) else self.value(operand, dtype)

    def arrays(self, operands, dtype: str) -> list[str]:
        """Return expressions for several operands, of which at least the first is an array."""
        return [self.array(operands[0], dtype), *(self.value(o, dtype) for o in operands[1:])]

    def constant(self, value: int | float, dtype: str) -> str:
        if dtype == "V16":
            raise self.unsupported("a number of 128 bits")
        number = np.array([_fit(value, dtype)], dtype=np.dtype(dtype if dtype != "b1" else "?"))
        name = f"K_{dtype}_{number.tobytes().hex()}"
        self.translator.constants[name] = number
        return name

    def object(self, value) -> str:
        """Return the name under which the function finds `value`, such as the tables of an instruction."""
        name = f"O{len(self.translator.constants)}"
        self.translator.constants[name] = value
        return name

    def viewed(self, local: Local, dtype: str) -> str:
        if local.dtype == dtype:
            return local.name
        key = (local.name, dtype)
        if key not in self.views:
            name = self.fresh()
            have, want = item_bytes(local.dtype), item_bytes(dtype)
            if "b1" in (local.dtype, dtype):
                raise self.unsupported("a predicate used as a number")
            if local.dtype == "V16":
                raise self.unsupported("a 128-bit register used as a number")
            if have == want:
                self.line(f"{name} = {local.name}.view({dtype})")
            elif want < have:  # the low bits, as st.u8 of a 16-bit register
                self.line(f"{name} = {local.name}.view(u{have}).astype(u{want}).view({dtype})")
            else:
                raise self.unsupported(f"{have * 8}-bit register read as {want * 8} bits")
            self.views[key] = name
        return self.views[key]

    def define(self, operand: Operand, expression: str, dtype: str, alias_of: Operand | None = None) -> None:
        """Write a register. `expression`: an array of `dtype`. `alias_of`: the register whose array it shares."""
        if isinstance(operand, Symbol) and operand.name == "_":
            return
        if not isinstance(operand, Register) or operand.name not in self.translator.dtypes:
            raise self.unsupported()
        register = self.translator.dtypes[operand.name]
        if (register == "b1") != (dtype == "b1"):
            raise self.unsupported("a predicate and a number in one")
        if register == "V16" and dtype != "V16":
            raise self.unsupported("a number written to a 128-bit register")
        if item_bytes(dtype) > item_bytes(register):
            raise self.unsupported(f"{item_bytes(dtype) * 8} bits written to a {item_bytes(register) * 8}-bit register")
        if register != "b1" and item_bytes(register) > item_bytes(dtype):  # ld.u8 into a wider register extends
            dtype_wide = dtype[0].replace("f", "u") + register[1:]
            expression = f"({expression}).astype({dtype_wide})"
            dtype, alias_of = dtype_wide, None
        root = self.local(alias_of.name).alias_of if isinstance(alias_of, Register) else None
        if root is None and expression.isidentifier():
            self.current[operand.name] = Local(expression, dtype)
            return
        name = self.fresh()
        self.line(f"{name} = {expression}")
        self.current[operand.name] = Local(name, dtype, root)

    def define_each(self, operands: Sequence[Operand], call: str, dtype: str) -> None:
        """Write registers, as many as `call` returns arrays of `dtype`."""
        names = [self.fresh() for _ in operands]
        self.line(f"{', '.join(names)}, = {call}")
        for operand, name in zip(operands, names, strict=True):
            self.define(operand, name, dtype)

    def address_of(self, symbol: str, dtype: str) -> str:
        """Return the address of a variable. Shared and local ones lie in the chunk's arrays, one per block or lane."""
        translator = self.translator
        variable = translator.variables.get(symbol)
        if symbol in translator.params and item_bytes(dtype) < 8:  # LLVM's short pointers: see `generic_of_param`
            return self.constant(translator.params[symbol].offset, dtype)
        if symbol in translator.params:
            return self._cast(f"m.param_address({translator.params[symbol].offset})", "u8", dtype)
        if symbol in translator.entry.program.functions:
            return self.constant(translator.entry.program.function_address(symbol), dtype)
        if variable is None:
            raise self.unsupported(f"unknown symbol {symbol}")
        if variable.space == "shared":
            offset = "m.static_shared_bytes" if variable.dynamic else translator.shared_offsets[symbol]
            base = f"m.shared_address({offset})"
        elif variable.space == "local":
            base = f"m.local_address({translator.local_offsets[symbol]})"
        else:
            return self._cast(f"m.variable_address({symbol!r})", "u8", dtype)
        name = self.fresh()
        self.line(f"{name} = {base} if L is None else m.at({base}, L)")
        return self._cast(name, "u8", dtype)

    def _cast(self, expression: str, have: str, dtype: str) -> str:
        if item_bytes(dtype) == item_bytes(have):
            return expression if dtype == have else f"{expression}.view({dtype})"
        return f"{expression}.astype({dtype})"

    def site(self, op: str, space: str, dtype: str, count: int, offset: int) -> str:
        now = self.now
        strong = not _STRONG.isdisjoint(now.modifiers)
        flag = now.opcode in ("atom", "red") or (strong and now.opcode in ("ld", "st"))
        strong = strong or self.translator.place(now) in self.translator.swapped or id(now) in self.translator.tested
        strong = strong and id(now) not in self.translator.guarded
        releases = flag and not _RELEASES.isdisjoint(now.modifiers)
        fused = self.translator.fused.get(id(now)) if space == "shared" else None
        number, where = len(self.translator.sites), now.where
        site = Site(number, op, space, dtype, count, offset, where, now.text, strong, flag, releases, fused)
        self.translator.sites.append(site)
        self.translator.site_of[id(now)] = site
        return f"S{site.index}"

    def addresses(self, operand: Operand, space: str = "") -> tuple[str, int]:
        """Return the Python variable that holds the `Addresses` of a base, one per base value, and the offset from
        it. Of a register of 64 bits shared and local memory see 32 (PTX ISA, "Addresses as operands")."""
        address, call = as_address(operand), "addresses"
        base = address.base
        if isinstance(base, Register):
            local = self.local(base.name)
            name = local.name if item_bytes(local.dtype) == 8 else None
            if name and space in ("shared", "local"):
                call = "cut_addresses"
            name = self.viewed(local, "u8") if name else self._widened(local)
        elif isinstance(base, Symbol):
            name = self.address_of(base.name, "u8")
        else:
            name = self.constant(0, "u8")
        key = (name, call)
        if key not in self.views:
            self.views[key] = self.fresh()
            self.line(f"{self.views[key]} = m.{call}({name}, L)")
        return self.views[key], address.offset

    def _widened(self, local: Local) -> str:
        """Return an address of 32 bits, in shared or local memory, as one of 64. Sums with an offset wrap round at 32
        bits; with its sign extended, one that begins below the memory ends up in it."""
        key = (local.name, "widened")
        if key not in self.views:
            if item_bytes(local.dtype) != 4:
                raise self.unsupported("an address of fewer than 32 bits")
            self.views[key] = self.fresh()
            self.line(f"{self.views[key]} = {local.name}.view(i4).astype(i8).view(u8)")
        return self.views[key]

    # -- the function --------------------------------------------------------------------------------------

    def check_scheduled(self) -> None:
        """Refuse what the scheduler, which reads operands without an emitter, could not: of barriers and masks."""
        block = self.block
        try:
            if block.end in (BARRIER, WARP_SYNC):
                self.now = block.terminator
                self._check_barrier(self.now.modifiers, list(self.now.operands))
            if block.warp_wide is not None and block.warp_wide.opcode in _MASKED:
                self.now = block.warp_wide
                if self.now.opcode in ("vote", "shfl") and "sync" not in self.now.modifiers:
                    has = "GPUs since Volta have it with a mask alone: write __ballot_sync, __any_sync, __shfl_sync."
                    raise self.unsupported(reason=has)
                self._check_integers(self.now.operands[-1:])
        except (IndexError, ValueError) as error:
            raise self.unsupported() from error

    def _check_barrier(self, modifiers: Sequence[str], operands: list[Operand]) -> None:
        if (_CLUSTER_BARRIERS if "cluster" in modifiers else _BARRIERS).isdisjoint(modifiers):
            raise self.unsupported()
        if "red" in modifiers:  # d, a{, b}, {!}c
            result, holds = operands.pop(0), operands.pop()
            operation = next((m for m in modifiers if m in ("popc", "and", "or")), None)
            kinds = {None: "", "popc": "ui"}.get(operation, "b")
            self._check_kind(holds.register if isinstance(holds, Negated) else holds, "b")
            self._check_kind(result, kinds)
        if len(operands) > 2 or (len(operands) < 2 and "arrive" in modifiers and "cluster" not in modifiers):
            raise self.unsupported()
        self._check_integers(operands)
        first = operands[0] if operands and self.block.end == BARRIER else None
        if isinstance(first, Immediate) and not 0 <= first.value < BARRIERS:
            raise self.unsupported(f"a block has barriers 0 to {BARRIERS - 1}")

    def _check_integers(self, operands: Sequence[Operand]) -> None:
        for operand in operands:
            if not isinstance(operand, Immediate):
                self._check_kind(operand, "ui")
            elif not -(1 << 31) <= integer(operand) < 1 << 32:
                raise self.unsupported(f"{operand.value} has more than 32 bits")

    def _check_kind(self, register: Operand, kinds: str) -> None:
        name = name_of(register)
        if self.translator.dtypes.get(name, "?")[0] not in kinds:
            raise self.unsupported(f"{name} is no {'predicate' if kinds == 'b' else 'register of whole numbers'}")
        self.translator.slot(name)

    def finish(self) -> str:
        block = self.block
        result = "None"
        if block.end in (BRANCH, GUARD):
            self.now = block.terminator
            assert block.condition is not None
            result = self.value(block.condition, "b1")
            if block.negated:
                result = f"~{result}"
        full, some = [], []
        for register in sorted(block.live_out):
            local = self.current.get(register)
            if local is None or local.alias_of == register:
                continue
            dtype = self.translator.dtypes[register]
            expression = local.name if local.dtype == dtype else f"{local.name}.view({dtype})"
            slot = self.translator.slot(register)
            # Scattering writes into an array; two registers must not share one.
            shared = local.alias_of is not None and local.alias_of not in SPECIAL
            full.append(f"R[{slot}] = {expression}{'.copy()' if shared else ''}")
            some.append(f"m.scatter({slot}, L, {expression})")
        slots = [(self.translator.slot(r), name) for r, name in self.read.items()]
        text = ["def block(m, R, L):"]
        if slots:
            text.append("    if L is None:")
            text += [f"        {name} = R[{slot}]" for slot, name in slots]
            text.append("    else:")
            text += [f"        {name} = m.at(R[{slot}], L)" for slot, name in slots]
        text += [f"    {line}" for line in self.lines]
        if full:
            text += ["    if L is None:", *(f"        {line}" for line in full)]
            text += ["    else:", *(f"        {line}" for line in some)]
        text.append(f"    return {result}")
        return "\n".join(text) + "\n"


def _fit(value: int | float, dtype: str) -> int | float:
    """Convert an immediate to a number that NumPy accepts for `dtype`. Integers wrap."""
    if dtype[0] == "f":
        return float(value)
    if dtype == "b1":
        return bool(value)
    bits = 8 * item_bytes(dtype)
    if isinstance(value, float):  # the bits of a float, as in `mov.b32 %r1, 0f3F800000`
        value = int(np.array(value, f"f{bits // 8}").view(f"u{bits // 8}"))
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value


def literal(value: int | float, dtype: str) -> str:
    number = _fit(value, dtype)
    if isinstance(number, float) and not math.isfinite(number):
        return f"np.{dtype.replace('f4', 'float32').replace('f8', 'float64').replace('f2', 'float16')}({str(number)!r})"
    return repr(number)
