"""Which PTX instruction each machine instruction comes from: PTX assembled with a source line of its own for each.

Compilers write into PTX which source line an instruction belongs to (`.loc`), and the assembler hands that on. Here
each PTX instruction gets its own number as its line, so that nvdisasm's line information names the instruction. The
machine code stays as it is: lines take no part in what the assembler optimises
(`tests/warplab/compile/test_machine_lines.py` compares).
"""

import re
from collections.abc import Iterable

from warplab.compile.disassembler import MachineInstruction, disassemble
from warplab.compile.ptx_assembler import Assembled, assemble_whole

FILE = "instructions of the PTX"
_LINES = re.compile(r"^[ \t]*\.(?:loc|file)\b[^\n]*", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*\.section\b[^{]*\{[^}]*\}", re.MULTILINE)
_TARGET = re.compile(r"^(\s*\.target\s+)sm_(\d+[a-z]?)", re.MULTILINE)
_HEADER = re.compile(r"^\s*\.address_size\s+\d+[^\n]*\n", re.MULTILINE)


def numbered(text: str, positions: Iterable[int]) -> tuple[str, dict[int, int]]:
    """Return PTX in which line n is the n-th of `positions`, and the position by line.

    `text`: PTX without comments; `positions`: where its instructions begin (`Instruction.at`).
    """
    lines = {number: at for number, at in enumerate(sorted(set(positions)), 1)}
    parts, before = [], 0
    for number, at in lines.items():
        parts += [text[before:at], f"\n.loc 1 {number} 0\n"]
        before = at
    parts.append(text[before:])
    # What the compiler wrote about lines goes; the new lines stand at the beginning of theirs, without blanks.
    made = "".join(_without_lines(part) if k % 2 == 0 else part for k, part in enumerate(parts))
    return _HEADER.sub(lambda match: f'{match[0]}.file 1 "{FILE}"\n', made, count=1), lines


def _without_lines(part: str) -> str:
    return _LINES.sub("", _SECTION.sub("", part))


def assemble(
    text: str, positions: Iterable[int], entry: str, arch: int, max_registers: int | None = None
) -> tuple[Assembled, list[MachineInstruction], list[int]]:
    """Return the machine code of PTX, its instructions, and where in `text` each one's PTX begins, -1 for none.

    `arch`: 90 for compute capability 9.0; what the PTX names as its target is replaced. Raises RuntimeError for PTX
    that the assembler refuses, CompilerNotFound where a tool is missing.
    """
    ptx, lines = numbered(text, positions)
    target = _TARGET.search(ptx)
    name = f"{arch}a" if target is not None and target[2] == f"{arch}a" else str(arch)
    ptx = _TARGET.sub(rf"\g<1>sm_{name}", ptx, count=1)
    assembled = assemble_whole(ptx, entry, name, max_registers)
    rows = disassemble(assembled.cubin, entry)
    return assembled, rows, [lines.get(row.line, -1) if row.file.endswith(FILE) else -1 for row in rows]
