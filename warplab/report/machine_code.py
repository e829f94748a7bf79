"""The machine code of a kernel beside its source, as Compiler Explorer shows it; needs no GPU.

    sass(kernel, a, b, out)          # a kernel of either language; arguments decide a Numba kernel's types
    sass(profile[0], card="A100")    # a launch

SASS is what a GPU runs: NVIDIA's assembler makes it of PTX, for one architecture. What PTX only asks for shows here:
loops that were unrolled, branches that became predicates, vector loads, registers that were spilled.
"""

from collections import Counter
from dataclasses import dataclass, field

from warplab.compile.disassembler import MachineInstruction, at_their_calls, disassemble
from warplab.hardware.cards import Card
from warplab.launch import resources
from warplab.launch.kernel_source import CudaSource, source_of
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profiling import RecordedLaunches
from warplab.report import machine_code_listing as listing
from warplab.text.tables import Table, count


@dataclass(frozen=True)
class MachineCode:
    """Machine code of one kernel, `str()` and a notebook's output as an overview by source line and a listing.

    `kernel`: its name. `arch`: 90 for compute capability 9.0. `instructions`: in the order of their addresses.
    `resources`: registers, spills and shared memory, from the assembler's report. `note`: what to know about the
    architecture, "" for nothing.
    """

    kernel: str
    arch: int
    instructions: tuple[MachineInstruction, ...]
    resources: resources.Resources
    note: str = ""
    texts: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.instructions)

    @property
    def opcodes(self) -> Counter[str]:
        """Return how often each opcode stands in the code, without modifiers: {"FFMA": 4, ...}. Not how often it
        runs."""
        return Counter(row.opcode.split(".")[0] for row in self.instructions)

    @property
    def accesses(self) -> Counter[tuple[str, str, int]]:
        """Return loads and stores in the code, by memory and bits per thread: {("global", "load", 128): 2, ...}."""
        found: Counter[tuple[str, str, int]] = Counter()
        for row in self.instructions:
            kind = listing.access(row)
            if kind:
                found[kind] += 1
        return found

    @property
    def loops(self) -> int:
        """Return the jumps backwards. A loop that was unrolled as a whole has none."""
        return len(self._backwards())

    def _backwards(self) -> set[int]:
        at = {row.label: row.address for row in self.instructions if row.label}
        jumps = (row for row in self.instructions if row.target)
        return {row.address for row in jumps if at.get(row.target, row.address + 1) <= row.address}

    def summary(self) -> str:
        """Return one sentence on what to look for."""
        parts = [
            f"{len(self)} instructions",
            f"{sum(bool(row.predicate) for row in self.instructions)} of them predicated",
        ]
        parts.append(f"{self.loops} jump{'s' * (self.loops != 1)} backwards")
        for (space, kind, bits), number in sorted(self.accesses.items()):
            parts.append(f"{number} {space} {kind}{'s' * (number != 1)} of {bits} bits")
        spills = self.resources.spill_bytes
        parts.append(
            f"{self.resources.registers} registers, {count(spills) + ' bytes of spills' if spills else 'no spills'}"
        )
        return ", ".join(parts)

    def _head(self) -> str:
        text = f"{self.kernel} for sm_{self.arch}: {self.summary()}."
        return f"{text} ({self.note})" if self.note else text

    @property
    def by_line(self) -> Table:
        """Return how many instructions each source line became, and what stands out in them, in the order of the
        source.

        A line in a loop that stands for several of the same, as 16 × FFMA, was unrolled.
        """
        spills = self.resources.spill_bytes > 0
        return listing.overview(self.instructions, self._source(), self._backwards(), spills)

    def _source(self) -> listing.Source:
        return listing.Source(self.instructions, self.texts)

    def __str__(self) -> str:
        return listing.text(self._head(), self.instructions, self._source(), self.by_line)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return listing.html(self._head(), self.instructions, self._source(), self.by_line)


def sass(kernel, *args, card: str | Card = "H100") -> MachineCode:
    """Return the machine code of `kernel` on a card.

    `kernel`: whatever `warplab.simulate` takes, or a launch of a profile. `args`: as for a launch; a Numba kernel needs
    them for their types, others do not. Raises TypeError for what is no kernel, ValueError for an unknown card or a
    launch that cannot be compiled again, CompilerNotFound where nvdisasm is missing, and what the compilers raise.
    """
    found = resources.of(kernel, *args, card=card)
    name, assemble = resources.assembler_of(kernel, *args)
    assembled = assemble(found.arch)
    rows = tuple(at_their_calls(disassemble(assembled.cubin, assembled.entry)))
    return MachineCode(name, found.arch, rows, found, found.note, _texts(kernel))


def _texts(kernel) -> dict[str, str]:
    """Return the texts of sources that are on no disk, by file name."""
    if isinstance(kernel, RecordedLaunches | LaunchRecord):
        launch = kernel if isinstance(kernel, LaunchRecord) else kernel[0]
        return dict(launch.sources)
    source = source_of(kernel)
    return {source.file: source.code} if isinstance(source, CudaSource) else {}
