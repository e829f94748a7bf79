"""What NVIDIA's assembler makes of PTX: machine code and a report on it.

nvJitLink assembles code that is to be linked, which finds its shared variables by some more instructions. `ptxas`
assembles a whole program, as NVRTC does for CUDA C++ and the driver for Numba's PTX. Both come as pip packages.
"""

import functools
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from warplab.compile.disassembler import program, run
from warplab.compile.errors import CompilerNotFound

SECONDS = 300.0  # most kernels take less than one


class Assembled(NamedTuple):
    """A kernel in machine code: the assembler's report, the kernel's name in it, the code as an ELF file (cubin)."""

    log: str
    entry: str
    cubin: bytes


def assemble(ptx: str, entry: str, arch: int | str, max_registers: int | None = None) -> Assembled:
    """Return machine code as the driver makes it of Numba's PTX: by ptxas, or where there is none by nvJitLink.

    What runs on an H100 is what ptxas makes, instruction for instruction; nvJitLink, which leaves code to be linked,
    makes half as many of some kernels (2026-11-23, numba-cuda 0.30.4, CUDA 13.0.88). Errors as of `assemble_ptx`.
    """
    found = assemble_whole if program("ptxas") else assemble_ptx
    return found(ptx, entry, arch, max_registers)


@functools.lru_cache(maxsize=256)
def assemble_ptx(ptx: str, entry: str, arch: int | str, max_registers: int | None = None) -> Assembled:
    """Return machine code for capability `arch` (75 for 7.5) and nvJitLink's report on it. `entry`: the kernel's name.

    `max_registers`: most registers per thread that the assembler may use. Raises RuntimeError for PTX that it refuses.
    """
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()
    except Exception as error:  # a missing shared library raises classes of cuda.pathfinder
        raise CompilerNotFound("nvJitLink, which assembles PTX,", error, "numba") from error

    def text(kind: str) -> str:
        buffer = bytearray(getattr(nvjitlink, f"get_{kind}_log_size")(handle))
        getattr(nvjitlink, f"get_{kind}_log")(handle, buffer)
        return buffer.decode(errors="replace").strip("\0 \n")

    data = ptx.encode()
    # With its cache nvJitLink gives half a report.
    arguments = [f"-arch=sm_{arch}", "-verbose", "-no-cache", "-lineinfo"]
    if max_registers is not None:
        arguments.append(f"-maxrregcount={max_registers}")
    handle = nvjitlink.create(len(arguments), arguments)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel.ptx")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        return Assembled(text("info"), entry, bytes(cubin))
    except nvjitlink.nvJitLinkError as error:
        raise RuntimeError(f"the kernel could not be assembled for sm_{arch}: {text('error') or error}") from error
    finally:
        nvjitlink.destroy(handle)


@functools.lru_cache(maxsize=256)
def assemble_whole(ptx: str, entry: str, arch: int | str, max_registers: int | None = None) -> Assembled:
    """Return machine code as `assemble_ptx` does, by ptxas. Raises CompilerNotFound where there is none."""
    found = program("ptxas")
    if found is None:
        raise CompilerNotFound("ptxas, which assembles PTX,", FileNotFoundError("no such program"), "estimate")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        command = [found, f"-arch=sm_{arch}", "-v", "-lineinfo", "-o", str(cubin), str(source)]
        if max_registers is not None:
            command.append(f"-maxrregcount={max_registers}")
        done = run(command, SECONDS)
        if done.returncode:
            said = re.sub(r"ptxas \S+, line \d+; \w+\s*: ", "", done.stderr.strip())  # the file is gone
            raise RuntimeError(f"the kernel could not be assembled for sm_{arch}: {said}")
        return Assembled(done.stdout + done.stderr, entry, cubin.read_bytes())
