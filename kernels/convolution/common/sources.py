"""The lab's CUDA C++ as it is compiled, and a convolution's sizes as kernels take them (`Sizes` in sizes.cuh)."""

import functools
from pathlib import Path

import numpy as np

from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.lab_kernels import Sources

FOLDER = Path(__file__).parents[1]  # of the lab; files are named from there, such as "steps/1_direct.cu"
HEADERS = ("common", "steps")  # folders of headers
INCLUDE = tuple(f"-I{FOLDER / folder}" for folder in HEADERS)
SOURCES = Sources("kernels.convolution", cuda_headers=True, own_headers=HEADERS)
_FIELDS = (
    *("n", "c", "h", "w", "k", "r", "s", "p", "q"),
    *("pad_h", "pad_w", "stride_h", "stride_w", "dilation_h", "dilation_w"),
    *("group_c", "group_k", "depth"),
)
SIZES = np.dtype([(name, np.int32) for name in _FIELDS])


@functools.lru_cache(maxsize=1024)
def sizes(conv: Convolution) -> np.ndarray:
    """Return `Sizes` of a convolution: an array of one element, which CuPy passes by value."""
    pairs = *conv.padding, *conv.stride, *conv.dilation
    groups = conv.c // conv.groups, conv.k // conv.groups, conv.depth
    whole = (conv.n, conv.c, conv.h, conv.w, conv.k, conv.r, conv.s, conv.p, conv.q, *pairs, *groups)
    return np.array([whole], SIZES)
