"""The control bits of machine code: for how long an instruction holds its warp up, and what it waits for.

From Volta to Hopper an instruction has 128 bits, of which bits 105 to 125 are for the warp scheduler: cycles until the
warp's next instruction may be issued, two of six scoreboards that the instruction holds until it has written its result
or read its operands, and the scoreboards that it waits for (Jia, Maggioni, Staiger, Scarpazza, "Dissecting the NVIDIA
Volta GPU architecture via microbenchmarking", 2018, section 2.1).
"""

import struct
from typing import NamedTuple

INSTRUCTION_BYTES = 16
NONE = 7  # number of no scoreboard
SCOREBOARDS = 6


class Control(NamedTuple):
    """`stall`: cycles until the warp's next instruction. `writes`, `reads`: scoreboard held until the result is written
    or the operands are read, NONE for none. `waits`: scoreboards that must be free, bit k for number k."""

    stall: int
    writes: int
    reads: int
    waits: int

    @property
    def boards(self) -> tuple[int, ...]:
        """Return numbers of the scoreboards that the instruction waits for."""
        return tuple(k for k in range(SCOREBOARDS) if self.waits >> k & 1)


def decode(high: int) -> Control:
    """Read the control bits in the upper 64 bits of an instruction."""
    return Control(high >> 41 & 15, high >> 46 & 7, high >> 49 & 7, high >> 52 & 63)


def controls(cubin: bytes, entry: str) -> dict[int, Control]:
    """Return the control bits of each instruction of a kernel by its address, from the kernel's start.

    Raises ValueError for what is no ELF file of 64 bits and for a kernel that the file does not have.
    """
    code = section(cubin, f".text.{entry}")
    return {
        at: decode(struct.unpack_from("<Q", code, at + 8)[0])
        for at in range(0, len(code) - INSTRUCTION_BYTES + 1, INSTRUCTION_BYTES)
    }


def section(elf: bytes, name: str) -> bytes:
    """Return the content of a section of an ELF file; errors as of `controls`."""
    if elf[:5] != b"\x7fELF\x02":
        raise ValueError("the machine code is no ELF file of 64 bits; give the cubin that the assembler made")
    start = struct.unpack_from("<Q", elf, 40)[0]
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, start + k * size) for k in range(count)]
    strings = headers[names][4]
    for header in headers:
        at = strings + header[0]
        if elf[at : elf.index(b"\0", at)].decode() == name:
            return elf[header[4] : header[4] + header[5]]
    raise ValueError(f"the machine code has no section {name}; it has the code of other kernels")
