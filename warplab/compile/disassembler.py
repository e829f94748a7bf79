"""Machine code as text: NVIDIA's nvdisasm, which comes as a pip package and needs no GPU."""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from warplab.compile.errors import CompilerNotFound
from warplab.simulator.translate import kept_code

SECONDS = 60.0  # it takes some 0.1 s; a file of megabytes takes longer
_SECTION = re.compile(r"^//-+ \.text\.(\S+)", re.MULTILINE)
_PLACE = re.compile(r'\s*//## File "(.*?)", line (\d+)(?: inlined at "(.*)", line (\d+))?')
_INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_LABEL = re.compile(r"(\.L_x_\d+):")
_FUNCTION = re.compile(r"(\$\S+):")
_CALLED = re.compile(r"\((\$\S+)\)$")
_JUMP = re.compile(r"BRA \S*\((\.L_x_\d+)\)$")


class MachineInstruction(NamedTuple):
    """One instruction. `address`: bytes from the kernel's start. `label`: its own name, "" if nothing jumps there.

    `text`: predicate, opcode and operands, as in "@P0 LDG.E.128 R8, desc[UR4][R2.64]". `file`, `line`: where the source
    has it; "" and 0 where the compiler does not say. `function`: the function that begins here, called by the kernel,
    such as the slow path of a division. `inside`: the called function that it belongs to, "" for the kernel's own code.
    `callers`: file and line of each call that was inlined around it, the nearest first.
    """

    address: int
    label: str
    text: str
    file: str
    line: int
    function: str = ""
    inside: str = ""
    callers: tuple[tuple[str, int], ...] = ()

    @property
    def predicate(self) -> str:
        """Return the predicate, as in "@!P0"; "" for an instruction that always runs."""
        first = self.text.split()[0]
        return first if first.startswith("@") else ""

    @property
    def opcode(self) -> str:
        """Return the opcode with its modifiers, as in "LDG.E.128"."""
        return self.text.split()[1 if self.predicate else 0]

    @property
    def target(self) -> str:
        """Return the label that it jumps to, "" for any other instruction."""
        found = re.search(r"(\.L_x_\d+)", self.text)
        return found[1] if found else ""

    @property
    def called(self) -> str:
        """Return the `function` that it calls, "" for any other instruction and for a function elsewhere."""
        found = _CALLED.search(self.text) if "CALL" in self.text else None
        return found[1] if found else ""


def disassemble(cubin: bytes, entry: str) -> list[MachineInstruction]:
    """Return the instructions of the kernel `entry` in an ELF file, without the padding behind them.

    Raises CompilerNotFound where nvdisasm is missing, RuntimeError where it takes too long, ValueError for a file that
    it does not read and for a kernel that the file does not have.
    """
    return parse(listing(cubin), entry)


def listing(cubin: bytes) -> str:
    """Return what nvdisasm prints of an ELF file's machine code, with source lines; errors as of `disassemble`.

    It takes tenths of a second for the smallest file, so the text is kept for later processes."""
    own = os.stat(nvdisasm())
    key = f"listing-{hashlib.sha256(f'{own.st_size} {own.st_mtime_ns} '.encode() + cubin).hexdigest()}"
    if kept := kept_code.find(key):
        return zlib.decompress(kept).decode()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [nvdisasm(), "-gi", "-c", file.name]
        done = run(command, SECONDS)
    if done.returncode:
        raise ValueError(f"nvdisasm does not read this machine code: {done.stderr.strip()}")
    kept_code.keep(key, zlib.compress(done.stdout.encode()))
    return done.stdout


def run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run one of NVIDIA's programs. Raises RuntimeError where it does not end in time, as on a busy machine."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{Path(command[0]).name} did not end within {seconds:g} s") from None


def nvdisasm() -> str:
    """Return nvdisasm's path. Raises CompilerNotFound."""
    found = program("nvdisasm")
    if not found:
        raise CompilerNotFound("nvdisasm, which prints machine code,", FileNotFoundError("no such program"), "estimate")
    return found


@functools.cache
def program(name: str) -> str | None:
    """Return the path of a program of NVIDIA's: of the pip package for CUDA 13, or of a toolkit of the machine."""
    packages = Path(sysconfig.get_path("purelib")) / "nvidia"
    return next((str(path) for path in sorted(packages.glob(f"cu1*/bin/{name}"))), None) or shutil.which(name)


def parse(text: str, entry: str) -> list[MachineInstruction]:
    """Read what `nvdisasm -gi -c` printed. ValueError if it has no kernel `entry`."""
    parts = _SECTION.split(text)  # text before, then name and code of each kernel
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if entry not in sections:
        raise ValueError(f"the machine code has no kernel {entry}; it has {', '.join(sections) or 'none'}")
    found: list[MachineInstruction] = []
    file, line, label, function, inside = "", 0, "", "", ""
    callers: tuple[tuple[str, int], ...] = ()
    inlined = False  # whether the place read last goes on with the call that was inlined
    for row in sections[entry].splitlines():
        if place := _PLACE.match(row):
            if inlined:
                callers = (*callers, (place[1], int(place[2])))
            else:
                file, line, callers = place[1], int(place[2]), ()
            inlined = place[3] is not None
        elif name := _LABEL.match(row):
            label = name[1]
        elif name := _FUNCTION.match(row):
            function = inside = name[1]
            file, line, callers = "", 0, ()  # a slow path has no line, and not that of the code before it
        elif instruction := _INSTRUCTION.match(row):
            text = instruction[2].replace("`", "")
            found.append(
                MachineInstruction(int(instruction[1], 16), label, text, file, line, function, inside, callers)
            )
            label = function = ""
    return _without_names_unused(_without_padding(found))


def at_their_calls(rows: Sequence[MachineInstruction]) -> list[MachineInstruction]:
    """Give called code that has no line of its own, such as the slow path of a division, the line of its first call."""
    calls: dict[str, MachineInstruction] = {}
    for row in rows:
        if row.called:
            calls.setdefault(row.called, row)

    def call(row: MachineInstruction) -> MachineInstruction:
        seen = set()
        while not row.line and row.inside in calls and row.inside not in seen:
            seen.add(row.inside)
            row = calls[row.inside]
        return row

    placed = [(row, call(row)) for row in rows]
    return [row._replace(file=at.file, line=at.line, callers=at.callers) for row, at in placed]


def _without_padding(found: list[MachineInstruction]) -> list[MachineInstruction]:
    """Drop what stands behind the last exit and never runs: a jump to itself and NOPs."""
    last = len(found)
    while last and found[last - 1].opcode == "NOP":
        last -= 1
    if last and (jump := _JUMP.match(found[last - 1].text)) and jump[1] == found[last - 1].label:
        last -= 1
    return found[:last]


def _without_names_unused(found: list[MachineInstruction]) -> list[MachineInstruction]:
    used = {instruction.target for instruction in found}
    return [row if row.label in used else row._replace(label="") for row in found]
