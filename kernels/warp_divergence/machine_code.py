"""Machine code (SASS) of kernels whose branches lab 03 looks at, beside their PTX.

`sass` reads machine_code.json, so that the lesson shows the code that its text is about, whatever compiler is there.
`python -m kernels.warp_divergence.machine_code` writes that file; it needs no GPU.
"""

import functools
import hashlib
import json
import re
import subprocess

from kernels.warp_divergence.kernel_table import KERNELS, SOURCES, kernel
from warplab.compile.disassembler import disassemble, nvdisasm
from warplab.launch.kernel_source import CudaSource

ARCH = 90
PATH = SOURCES.folder / "machine_code.json"
RECORDED = ("cuda_condition<4>", "cuda_condition<7>", "cuda_condition<8>", "cuda_branch", "cuda_ordered")


def sass(name: str) -> list[str]:
    """Return the machine code of a kernel in RECORDED, for sm_90: instructions and labels, one per line."""
    if name not in RECORDED:
        raise ValueError(f"the machine code of {name!r} was not recorded; recorded are {', '.join(RECORDED)}")
    return recorded()["kernels"][name]


def ptx(name: str) -> list[str]:
    """Return the PTX of a kernel in CUDA C++, without declarations and comments, one instruction per line."""
    chosen = kernel(name)
    if chosen.language == "Numba":
        raise ValueError(f"{name} is a kernel of Numba; give one of CUDA C++")
    text = CudaSource(SOURCES.text(chosen.file), chosen.entry, SOURCES.options(chosen.file)).ptx
    body = _section(re.split(r"^\.(?:visible|weak) \.entry ", text, flags=re.MULTILINE)[1:], chosen.entry)
    body = body.split("{", 1)[1].split("\n}", 1)[0]
    lines = [re.sub(r"\s+", " ", re.sub(r"//.*", "", line)).strip() for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith((".", "{", "}"))]


def _section(parts: list[str], entry: str) -> str:
    """Return the part that begins with the name of `entry`, plain or as C++ mangles it. ValueError if there is none."""
    plain = re.split(r"[<(]", entry)[0]
    for part in parts:
        name = re.match(r"\w*", part)[0]
        if name == plain or name.startswith(f"_Z{len(plain)}{plain}I"):
            return part
    raise ValueError(f"there is no code of {entry}")


@functools.cache
def recorded() -> dict:
    """Return machine_code.json: compiler and disassembler, a checksum of each source file, and the kernels' lines."""
    return json.loads(PATH.read_text())


def checksums() -> dict[str, str]:
    """Return SHA-256 of the code, without comments, of each file with a kernel in RECORDED."""
    files = sorted({KERNELS[name].file for name in RECORDED})
    return {file: hashlib.sha256(_code(file).encode()).hexdigest() for file in files}


def _code(file: str) -> str:
    lines = [re.sub(r"\s*//.*", "", line) for line in SOURCES.text(file).splitlines()]
    return "\n".join(line for line in lines if line)


def _disassembled(name: str) -> list[str]:
    chosen = kernel(name)
    source = CudaSource(SOURCES.text(chosen.file), chosen.entry, SOURCES.options(chosen.file), file=chosen.file)
    assembled = source.assemble(ARCH)
    lines = []
    for row in disassemble(assembled.cubin, assembled.entry):
        lines += [f"{row.label}:"] * bool(row.label) + [f"    {row.text}"]
    return lines


def _version(command: list[str]) -> str:
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.search(r"V(\d+\.\d+\.\d+)", text)[1]


def main() -> None:
    """Write machine_code.json."""
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    content = {
        "compiler": f"NVRTC {major}.{minor}, sm_{ARCH}",
        "disassembler": f"nvdisasm {_version([nvdisasm(), '--version'])}",
        "sources": checksums(),
        "kernels": {name: _disassembled(name) for name in RECORDED},
    }
    PATH.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
