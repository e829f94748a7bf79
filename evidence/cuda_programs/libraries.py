"""Which libraries programs of HeCBench need beside CUDA's runtime, Thrust and CUB, by the headers that they include."""

import re
from pathlib import Path

# The beginning of a header's name → the library.
LIBRARIES = {
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cufft": "cuFFT",
    "curand.h": "cuRAND for the host",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "cutlass": "CUTLASS",
    "nccl": "NCCL",
    "nvml": "NVML",
    "boost/": "Boost",
    "gdal": "GDAL",
    "gsl/": "GSL",
    "mpi.h": "MPI",
    "opencv": "OpenCV",
    "tbb/": "TBB",
    "torch/": "PyTorch",
}
SOURCES = (".cu", ".cuh", ".h", ".hh", ".hpp", ".c", ".cc", ".cpp")
_DIRECTIVE = re.compile(
    r"^[ \t]*#[ \t]*(if\w*|endif|include)[ \t]*([^\n]*)(?:\n(?:[ \t]*\n)*[ \t]*#[ \t]*define[ \t]+(\w+))?", re.M
)


def needed(program: Path) -> list[str]:
    """Return the libraries whose headers the program includes whatever is defined, and does not bring along."""
    files = [file for file in program.rglob("*") if file.suffix in SOURCES]
    own = [str(file) for file in files]
    found = set()
    for file in files:
        for header in _included(file.read_text(encoding="utf-8", errors="replace")):
            for start, library in LIBRARIES.items():
                brought = f"/{start}" in str(file) or any(name.endswith(f"/{header}") for name in own)
                if header.startswith(start) and not brought:
                    found.add(library)
    return sorted(found)


def _included(text: str) -> list[str]:
    """Return the headers that a file includes outside of conditions; a guard against a second reading is none."""
    found, conditions = [], list[bool]()
    for kind, rest, defined in _DIRECTIVE.findall(text):
        if kind == "include":
            if not any(conditions) and (name := re.match(r'[<"]([^>"]+)', rest)):
                found.append(name[1])
        elif kind == "endif":
            del conditions[-1:]
        else:
            conditions.append(kind != "ifndef" or rest.split()[:1] != [defined])
    return found
