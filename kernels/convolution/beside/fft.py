"""Convolution by FFT: a product of spectra for each pair of filter and channel. The transforms are the library's.

y = F⁻¹(F(x) · conj(F(w))), summed over the channels before F⁻¹. The transform is circular, so images are padded to
where nothing wraps round into the elements that are kept. Stride is taken by leaving elements out, dilation by putting
zeros between those of w: both cost as much as without.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution, Pair
from kernels.convolution.steps.direct import FP32
from warplab import cp
from warplab.hardware import backend

SMALL_PRIMES = (2, 3, 5, 7)  # lengths of such factors are what FFTs are fast at


def lengths(conv: Convolution) -> Pair:
    """Return the height and width of the transforms: the padded image's, or the next longer ones of small factors.

    Windows begin within the image and end within it, so nothing that is kept wraps round.
    """
    return tuple(_fast(length) for length in conv.room)


def _fast(length: int) -> int:
    while True:
        rest = length
        for prime in SMALL_PRIMES:
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
        length += 1


def frequencies(conv: Convolution) -> int:
    """Return complex numbers of a real image's spectrum: half of them, and a column, say it all."""
    height, width = lengths(conv)
    return height * (width // 2 + 1)


def spectra_bytes(conv: Convolution) -> int:
    """Return bytes of the spectra of x, w and y, complex64, which all exist at the same time."""
    images = conv.n * conv.c + conv.k * (conv.c // conv.groups) + conv.n * conv.k
    return 8 * images * frequencies(conv)


@dataclass(frozen=True)
class FftStep(Step):
    """cupy.fft on a GPU; numpy.fft on the simulator, which knows no library's kernels."""

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the spectra. The library allocates them, and more for itself, in every call."""
        return spectra_bytes(conv)

    def workspace(self, conv: Convolution, dtype: Any) -> None:
        """Return None: the library allocates its own."""
        return None

    def preferred(self, conv: Convolution, dtype: Any) -> bool:
        """Return False: it is here to be compared."""
        return False

    def launch(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> None:
        """Queue the library's transforms and products."""
        library, on_gpu = (cp, True) if backend.name() == "gpu" else (np, False)
        if not on_gpu:
            x, w, bias = (None if array is None else cp.asnumpy(array) for array in (x, w, bias))
        result = _convolve(library, x, w, conv)
        if bias is not None:
            result = result + bias[:, None, None]
        if relu:
            result = library.maximum(result, np.float32(0))
        result = library.ascontiguousarray(result, np.float32)
        y[...] = result if on_gpu else cp.asarray(result)


def _convolve(library: Any, x: Any, w: Any, conv: Convolution) -> Any:
    """Return y before bias and ReLU, by `library.fft`."""
    groups, (top, left), (height, width) = conv.groups, conv.padding, lengths(conv)
    images = library.zeros((conv.n, groups, conv.c // groups, height, width), np.float32)
    images[..., top : top + conv.h, left : left + conv.w] = x.reshape(*images.shape[:3], conv.h, conv.w)
    filters = library.zeros((groups, conv.k // groups, conv.c // groups, height, width), np.float32)
    spaced = filters[..., : conv.extent[0] : conv.dilation[0], : conv.extent[1] : conv.dilation[1]]
    spaced[...] = w.reshape(spaced.shape)
    of_x, of_w = (library.fft.rfft2(array).astype(np.complex64) for array in (images, filters))
    # A matrix product for each group and frequency: images × channels by channels × filters.
    a = of_x.reshape(conv.n, groups, -1, of_x.shape[-2] * of_x.shape[-1]).transpose(1, 3, 0, 2)
    b = of_w.conj().reshape(groups, conv.k // groups, -1, a.shape[1]).transpose(0, 3, 2, 1)
    of_y = library.matmul(a, b).transpose(2, 0, 3, 1).reshape(conv.n, conv.k, *of_x.shape[-2:])
    whole = library.fft.irfft2(of_y, s=(height, width))
    (down, right), (p, q) = conv.stride, (conv.p, conv.q)
    return whole[..., : down * (p - 1) + 1 : down, : right * (q - 1) + 1 : right]


FORWARD = (FftStep(None, "fft", FP32),)
