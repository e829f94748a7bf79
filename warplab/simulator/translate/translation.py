"""Basic blocks → Python functions on whole arrays.

A function `block(m, R, L)` runs the block for the lanes `L` (sorted indices, or None for all lanes) of chunk `m`. `R`
is the list of registers, each an array with one entry per lane, or a single entry for all. The body is the same either
way: with `L`, the registers that it reads are gathered first, and those that live on are scattered at the end.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from warplab.simulator.errors import MALFORMED, UnsupportedInstruction, refusing
from warplab.simulator.ptx.program import Entry, Instruction, Param, Variable, Where, layout
from warplab.simulator.translate import operations, unwritten_fragments, warpgroup_registers
from warplab.simulator.translate.access_fusion import fused_accesses
from warplab.simulator.translate.basic_blocks import CARRY, Block, cut
from warplab.simulator.translate.block_writer import DTYPES, SCOPE, BlockWriter, Site
from warplab.simulator.translate.machine_blocks import MachineBlocks
from warplab.simulator.translate.narrow_loops import NarrowLoops
from warplab.simulator.translate.ptxas_model import machine_instructions, predicated, rare_ways
from warplab.simulator.translate.special_registers import SPECIAL
from warplab.simulator.translate.value_numbering import ValueNumbering, plain_tests
from warplab.simulator.translate.waiting_loops import guarded_data, waiting_loops


@dataclass
class StaticCounts:
    """What the instructions of one line in a block count per execution: machine instructions, in total and by kind,
    their branches around rare cases, and FLOPs per thread by precision."""

    instructions: int = 0
    branches: int = 0
    flops: dict[str, int] = field(default_factory=dict)
    mix: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class Translation:
    """A kernel made runnable: its blocks, their functions and memory sites, register slots and variable offsets."""

    entry: Entry  # with calls inlined
    blocks: list[Block]
    functions: list
    sites: list[Site]
    slots: dict[str, int]
    slot_dtypes: list[str]
    shared_offsets: dict[str, int]
    shared_bytes: int
    local_bytes: int
    sources: list[str]
    static_counts: list[dict[Where, StaticCounts]]  # per block, by line
    predicated: dict[int, int]  # blocks that run under a predicate → the block with their condition
    block_where: list[Where]
    amounts: dict[int, int]  # machine instructions per PTX instruction, by `id`
    waiting_loops: dict[int, frozenset[int]]  # see `waiting_loops`
    site_blocks: list[int]  # of each site
    narrow_loops: NarrowLoops  # what a few lanes run in place of the functions
    machine_blocks: MachineBlocks  # what all lanes run in place of the functions

    @functools.cached_property
    def asynchronous(self) -> bool:
        """Return whether the kernel has what sees shared memory at the addresses of a GPU."""
        every = self.entry.instructions
        return any(i.opcode in ("wgmma", "tcgen05") or (i.opcode == "cp" and "bulk" in i.modifiers) for i in every)

    @functools.cached_property
    def masks_ranks(self) -> bool:
        """Return whether the kernel loads for pairs of blocks: CUTLASS finds the even one by clearing bit 24."""
        return any(i.opcode == "cp" and "cta_group::2" in i.modifiers for i in self.entry.instructions)

    @functools.cached_property
    def counts_arrivals(self) -> bool:
        """Return whether the kernel asks the states of mbarriers how many threads have arrived."""
        return any(i.opcode == "mbarrier" and "pending_count" in i.modifiers for i in self.entry.instructions)

    @functools.cached_property
    def dynamic_alignment(self) -> int:
        """Return so many bytes that dynamic shared memory begins at a multiple of."""
        return max((16, *(variable.align for variable in self.entry.shared_variables(dynamic=True))))


def translate(entry: Entry) -> Translation:
    """Translate a kernel, once. Raises UnsupportedInstruction naming the instruction and its source line."""
    if entry.translated is None:
        with refusing(f"cannot read the PTX of kernel {entry.name}"):
            try:
                entry.translated = _Translator(entry.inlined).run()
            except MALFORMED:
                _name_malformed(entry.inlined)
                raise
    return entry.translated


def _name_malformed(entry: Entry) -> None:
    """Raise UnsupportedInstruction for an instruction that could not be read though it were all of the kernel."""
    refused: UnsupportedInstruction | None = None
    for instruction in entry.instructions:
        labels = dict.fromkeys(entry.labels, 0)
        try:
            _Translator(replace(entry, instructions=[instruction], labels=labels, translated=None)).run()
        except UnsupportedInstruction as error:
            refused = refused or error
        except MALFORMED:
            what = f"malformed PTX: `{instruction.text[:200]}`"
            raise UnsupportedInstruction(what, **entry.at(instruction.where)) from None
    if refused is not None:
        raise refused


class _Translator:
    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.params: dict[str, Param] = {p.name: p for p in entry.params}
        self.variables: dict[str, Variable] = {**entry.program.variables, **entry.variables}
        self.shared_offsets, self.shared_bytes = layout(entry.shared_variables())
        self.local_offsets, self.local_bytes = layout([v for v in entry.variables.values() if v.space == "local"])
        dtypes = {name: self._register_dtype(kind) for name, kind in entry.registers.items()}
        dtypes.update(SPECIAL, **{CARRY: "b1"})
        self.dtypes = dtypes
        self.slots: dict[str, int] = {}
        self.sites: list[Site] = []
        self.site_of: dict[int, Site] = {}  # by `id` of the instruction
        self.constants: dict[str, object] = {}
        # Where CAS loops swap. A plain load there may read any value, as the CAS tells whether it was the right one.
        self.place = ValueNumbering(entry).location
        self.swapped = {self.place(i) for i in entry.instructions if i.opcode == "atom" and "cas" in i.modifiers}

    def _register_dtype(self, kind: str) -> str:
        try:
            return DTYPES[kind]
        except KeyError:
            raise UnsupportedInstruction(f"registers of type .{kind} in kernel {self.entry.name}") from None

    def run(self) -> Translation:
        blocks = cut(self.entry)
        self.maybe_unwritten = unwritten_fragments.maybe_unwritten(blocks, self.entry.registers)
        self.dtypes.update({unwritten_fragments.flag(name): "b1" for name in self.maybe_unwritten})
        self.tested = plain_tests(blocks, self.place)
        self.guarded = guarded_data(blocks)
        self.register_faults = warpgroup_registers.find_faults(blocks)
        self.fused = fused_accesses(self.entry, blocks, self.variables, self.shared_offsets)
        amounts = machine_instructions(blocks)
        without_branch = predicated(blocks, amounts)
        waiting = waiting_loops(blocks)
        texts: list[str] = []
        site_blocks: list[int] = []
        for block in blocks:
            texts.append(self._function(block))
            site_blocks += [block.index] * (len(self.sites) - len(site_blocks))
        scope = {**SCOPE, **self.constants, **{f"S{site.index}": site for site in self.sites}}
        functions = []
        for block, text in zip(blocks, texts, strict=True):
            name = f"<simulated {self.entry.name} block {block.index}>"
            exec(compile(text, name, "exec"), scope)
            functions.append(scope.pop("block"))
        return Translation(
            self.entry,
            blocks,
            functions,
            self.sites,
            self.slots,
            [self.dtypes[name] for name in self.slots],
            self.shared_offsets,
            self.shared_bytes,
            self.local_bytes,
            texts,
            [self._static_counts(block, amounts) for block in blocks],
            without_branch,
            [next((i.where for i in block.counted), Where("", 0)) for block in blocks],
            amounts,
            waiting,
            site_blocks,
            NarrowLoops(self, blocks, waiting),
            MachineBlocks(self, blocks),
        )

    def _static_counts(self, block: Block, amounts: dict[int, int]) -> dict[Where, StaticCounts]:
        counts: dict[Where, StaticCounts] = {}
        for instruction in block.counted:
            static = counts.setdefault(instruction.where, StaticCounts())
            static.instructions += amounts[id(instruction)]
            static.branches += rare_ways(instruction)
            precision, amount = operations.flops(instruction)
            if precision:
                static.flops[precision] = static.flops.get(precision, 0) + amount
            kind = operations.kind(instruction)
            static.mix[kind] = static.mix.get(kind, 0) + amounts[id(instruction)]
        return counts

    def emitter(self, instruction: Instruction) -> Callable[[BlockWriter, Instruction], None] | None:
        """Return the function that writes the code for an instruction, None if the simulator does not know it."""
        least, most = operations.OPERANDS.get(instruction.opcode, (0, len(instruction.operands)))
        if not least <= len(instruction.operands) <= most:
            return None
        emit = operations.TABLE.get(instruction.opcode)
        if emit is not None and self.register_faults:
            emit = warpgroup_registers.examined(emit, self.register_faults)
        return unwritten_fragments.tracked(emit) if emit is not None and self.maybe_unwritten else emit

    def slot(self, register: str) -> int:
        return self.slots.setdefault(register, len(self.slots))

    def _function(self, block: Block) -> str:
        writer = BlockWriter(self, block)
        writer.check_scheduled()
        for instruction in block.body:
            writer.instruction(instruction)
        return writer.finish()
