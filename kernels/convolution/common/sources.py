"""The lab's CUDA C++ as it is compiled, and a convolution's sizes as kernels take them (`Sizes` in sizes.cuh)."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import numpy as np

from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.lab_kernels import Sources

FOLDER = Path(__file__).parents[1]  # of the lab; files are named from there, such as "steps/1_direct.cu"
INCLUDE = tuple(f"-I{FOLDER / room}" for room in ("common", "steps"))  # where headers are
_FIELDS = (
    *("n", "c", "h", "w", "k", "r", "s", "p", "q"),
    *("pad_h", "pad_w", "stride_h", "stride_w", "dilation_h", "dilation_w"),
    *("group_c", "group_k", "depth"),
)
SIZES = np.dtype([(name, np.int32) for name in _FIELDS])


def _headers() -> str:
    """Return a digest of the headers. CuPy keeps compiled code by source and options, and does not look into
    headers."""
    texts = (path.read_bytes() for path in sorted(FOLDER.glob("*/*.cuh")))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


OPTIONS = (*INCLUDE, f"-DHEADERS=0x{_headers()}")
FILES = [path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.glob("*/*.cu"))]
SOURCES = Sources("kernels.convolution", options=dict.fromkeys(FILES, OPTIONS), cuda_headers=True)


@functools.lru_cache(maxsize=1024)
def sizes(conv: Convolution) -> np.ndarray:
    """Return `Sizes` of a convolution: an array of one element, which CuPy passes by value."""
    pairs = *conv.padding, *conv.stride, *conv.dilation
    groups = conv.c // conv.groups, conv.k // conv.groups, conv.depth
    whole = (conv.n, conv.c, conv.h, conv.w, conv.k, conv.r, conv.s, conv.p, conv.q, *pairs, *groups)
    return np.array([whole], SIZES)
