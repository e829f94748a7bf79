"""The machine code of a kernel beside its source, as Compiler Explorer shows it; needs no GPU.

    sass(kernel, a, b, out)          # a kernel of either language; arguments decide a Numba kernel's types
    sass(profile[0], card="A100")    # a launch

SASS is what a GPU runs: NVIDIA's assembler makes it of PTX, for one architecture. What PTX only asks for shows here:
loops that were unrolled, branches that became predicates, vector loads, registers that were spilled.
"""

from __future__ import annotations

import linecache
import re
from collections import Counter
from dataclasses import dataclass, field
from html import escape

from warplab.compile.disassembler import MachineInstruction, disassemble
from warplab.compile.source_files import display_name
from warplab.hardware.cards import Card
from warplab.launch import resources
from warplab.launch.kernel_source import CudaSource, source_of
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profiling import RecordedLaunches
from warplab.text.tables import count

_STYLE = (
    "<style>.warplab-sass div{max-height:32em;overflow:auto}"
    ".warplab-sass table{border-collapse:collapse;margin:.3em 0}"
    ".warplab-sass td,.warplab-sass th{text-align:left!important;vertical-align:top;padding:1px 10px;white-space:pre;"
    "font-family:var(--jp-code-font-family,monospace);color:inherit}"
    ".warplab-sass th{font-weight:600}.warplab-sass tr{border-top:1px solid var(--jp-border-color2,#8884)}"
    ".warplab-sass .n{opacity:.65}.warplab-sass p{margin:.2em 0}</style>"
)
_SPACES = {"LDG": "global", "STG": "global", "LDS": "shared", "STS": "shared", "LDL": "local", "STL": "local"}
_WIDTH = re.compile(r"\.(32|64|128|U8|S8|U16|S16)(?=\.|$)")
_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16}


@dataclass(frozen=True)
class MachineCode:
    """Machine code of one kernel, `str()` and a notebook's output as a listing.

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
        """How often each opcode stands in the code, without modifiers: {"FFMA": 4, ...}. Not how often it runs."""
        return Counter(row.opcode.split(".")[0] for row in self.instructions)

    @property
    def accesses(self) -> Counter[tuple[str, str, int]]:
        """Loads and stores in the code, by memory and bits per thread: {("global", "load", 128): 2, ...}."""
        found: Counter[tuple[str, str, int]] = Counter()
        for row in self.instructions:
            opcode = row.opcode.split(".")[0]
            if opcode in _SPACES:
                width = _WIDTH.search(row.opcode)
                bits = 32 if width is None else _BITS.get(width[1]) or int(width[1])
                found[_SPACES[opcode], "load" if opcode.startswith("LD") else "store", bits] += 1
        return found

    @property
    def loops(self) -> int:
        """Jumps backwards. A loop that was unrolled as a whole has none."""
        at = {row.label: row.address for row in self.instructions if row.label}
        return sum(at.get(row.target, row.address + 1) <= row.address for row in self.instructions if row.target)

    def summary(self) -> str:
        """One sentence on what to look for."""
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

    def _blocks(self) -> list[tuple[str, int, list[MachineInstruction]]]:
        """Neighbouring instructions of one source line: file, line, instructions."""
        blocks: list[tuple[str, int, list[MachineInstruction]]] = []
        for row in self.instructions:
            if not blocks or blocks[-1][:2] != (row.file, row.line):
                blocks.append((row.file, row.line, []))
            blocks[-1][2].append(row)
        return blocks

    def _source(self, file: str, line: int) -> str:
        text = self.texts.get(file) or self.texts.get(display_name(file))
        lines = text.splitlines() if text else linecache.getlines(file)
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def _place(self, file: str, line: int) -> str:
        """The line's number, with the file's name for another than the kernel's own."""
        own = self.instructions[0].file
        return str(line) if file == own else f"{display_name(file)}:{line}"

    def __str__(self) -> str:
        lines = [self._head()]
        for file, line, rows in self._blocks():
            lines.append(f"{self._place(file, line):>5}  {self._source(file, line)}" if line else "")
            lines += [f"{row.label:>9} {row.address:04x}  {row.text}" for row in rows]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for file, line, block in self._blocks():
            code = "\n".join(f"{row.label:>8} {row.address:04x}  {row.text}" for row in block)
            place = escape(self._place(file, line)) if line else ""
            source = escape(self._source(file, line)) if line else ""
            rows.append(f'<tr><td class="n">{place}</td><td>{source}</td><td>{escape(code)}</td></tr>')
        head = "<tr><th>line</th><th>source</th><th>machine code (SASS)</th></tr>"
        table = f'<div tabindex="0"><table>{head}{"".join(rows)}</table></div>'  # scrolls, also by keyboard
        return f'<div class="warplab-sass">{_STYLE}<p>{escape(self._head())}</p>{table}</div>'


def sass(kernel, *args, card: str | Card = "H100") -> MachineCode:
    """Return the machine code of `kernel` on a card.

    `kernel`: whatever `warplab.simulate` takes, or a launch of a profile. `args`: as for a launch; a Numba kernel needs
    them for their types, others do not. Raises TypeError for what is no kernel, ValueError for an unknown card or a
    launch that cannot be compiled again, CompilerNotFound where nvdisasm is missing, and what the compilers raise.
    """
    found = resources.of(kernel, *args, card=card)
    name, assemble = resources.assembler_of(kernel, *args)
    assembled = assemble(found.arch)
    rows = tuple(disassemble(assembled.cubin, assembled.entry))
    return MachineCode(name, found.arch, rows, found, found.note, _texts(kernel))


def _texts(kernel) -> dict[str, str]:
    """Texts of sources that are on no disk, by file name."""
    if isinstance(kernel, RecordedLaunches | LaunchRecord):
        launch = kernel if isinstance(kernel, LaunchRecord) else kernel[0]
        return dict(launch.sources)
    source = source_of(kernel)
    return {source.file: source.code} if isinstance(source, CudaSource) else {}
