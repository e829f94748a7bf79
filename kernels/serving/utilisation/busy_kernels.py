"""Kernels that keep a GPU busy in three ways, and the functions that check arrays and launch them.

`spin` computes, `copy` moves memory, `chase` waits for one load after the other. What NVML calls utilisation is the
same for all of them; `utilisation` and `three_roads` tell them apart.
"""

import math
from typing import Any

import numpy as np

from warpcourse.bench.device_arguments import check_apart, check_array
from warpcourse.bench.lab_kernels import Kernel, Sources, by_name, choose

SOURCES = Sources(__package__)
KERNELS = by_name(
    Kernel("cuda_spin", SOURCES, "spin.cu", "spin"),
    Kernel("numba_spin", SOURCES, "numba_kernels.py", "spin"),
    Kernel("cuda_copy", SOURCES, "copy.cu", "copy", alignment=16),
    Kernel("numba_copy", SOURCES, "numba_kernels.py", "copy"),
    Kernel("cuda_scatter", SOURCES, "scatter.cu", "scatter"),
    Kernel("cuda_chase", SOURCES, "chase.cu", "chase"),
)
BLOCK = 256  # threads per block


def blocks(n: int, block: int = BLOCK) -> int:
    """Return blocks for n threads."""
    return math.ceil(n / block)


def spin_arguments(kernel: Kernel, c: Any, rounds: int, out: Any) -> tuple:
    """Return what a spinning kernel takes: Numba's arrays know their size, CUDA C++ needs the count as `size_t`."""
    given = (c, np.uint32(rounds), out)
    return given if kernel.language == "Numba" else (*given, np.uint64(out.size))


def copy_arguments(kernel: Kernel, x: Any, out: Any) -> tuple:
    """Return what a copying kernel takes; that in CUDA C++ counts groups of four elements."""
    return (x, out) if kernel.language == "Numba" else (x, out, np.uint64(out.size // 4))


def spin(c: Any, rounds: int, out: Any, kernel: str = "cuda_spin", *, block: int = BLOCK) -> Any:
    """Store z in out[i] after `rounds` steps z = z · z + c[i] from 0, float32, rounded once each; return `out` at once.

    One thread per element: of one element this is the one-thread kernel. `c`, `out`: device arrays, float32, shape
    (n,). TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen = _chosen(kernel, "spin")
    check_array("c", c, (None,))
    check_array("out", out, tuple(c.shape))
    if not 0 <= rounds < 2**32:
        raise ValueError(f"rounds is {rounds}; the kernel counts them with 32 bits, from 0 to {2**32 - 1}")
    if out.size:  # a grid of no blocks is an invalid launch
        chosen.launch(blocks(out.size, block), block, spin_arguments(chosen, c, rounds, out))
    return out


def copy(x: Any, out: Any, kernel: str = "cuda_copy", *, grid: int | None = None) -> Any:
    """Store x[i] in out[i]; return `out` at once.

    `x`, `out`: device arrays, float32, shape (n,), apart from each other; for "cuda_copy" n is a multiple of 4 and both
    start at a multiple of 16 bytes. `grid`: blocks, else one per 1024 elements. TypeError for arrays in host memory,
    ValueError for every other argument that does not fit.
    """
    chosen = _chosen(kernel, "copy")
    check_array("x", x, (None,), alignment=chosen.alignment)
    check_array("out", out, tuple(x.shape), alignment=chosen.alignment)
    if chosen.alignment == 16 and out.size % 4:
        raise ValueError(f"out has {out.size} elements; {kernel} moves four at a time, so give it a multiple of 4")
    if out.size:
        check_apart("x", x, out)
        chosen.launch(grid or blocks(out.size, 4 * BLOCK), BLOCK, copy_arguments(chosen, x, out))
    return out


def scatter(x: Any, out: Any, columns: int) -> Any:
    """Store x[i] in out[i mod rows, i // rows], `out` of so many `columns`, row after row; return `out` at once.

    `x`, `out`: device arrays, float32, shape (n,), n below 2**32 and a multiple of `columns`, apart from each other.
    TypeError for arrays in host memory, ValueError for what else does not fit.
    """
    check_array("x", x, (None,))
    check_array("out", out, tuple(x.shape))
    if columns < 1 or out.size % columns or out.size >= 2**32:
        raise ValueError(f"{out.size} elements do not fill rows of {columns}; give a multiple of it, below 2**32")
    if out.size:
        check_apart("x", x, out)
        arguments = (x, out, np.uint32(out.size // columns), np.uint32(columns))
        KERNELS["cuda_scatter"].launch(blocks(out.size), BLOCK, arguments)
    return out


def chase(places: Any, steps: int, out: Any) -> Any:
    """Store in out[i] where thread i stands after `steps` steps place -> places[place] from i; return `out` at once.

    `places`: device array, uint32, shape (m,), each element below m, as `chain` makes them. `out`: uint32, shape (n,),
    n <= m: one thread per element. TypeError for arrays in host memory, ValueError for what else does not fit.
    """
    check_array("places", places, (None,), dtype=np.uint32)
    check_array("out", out, (None,), dtype=np.uint32)
    if out.size > places.size:
        raise ValueError(f"out has {out.size} elements, one per thread, and places only {places.size} to begin at")
    if not 0 <= steps < 2**32:
        raise ValueError(f"steps is {steps}; the kernel counts them with 32 bits, from 0 to {2**32 - 1}")
    if out.size:
        arguments = (places, np.uint32(steps), out, np.uint64(out.size))
        KERNELS["cuda_chase"].launch(blocks(out.size, 32), 32, arguments)
    return out


def chain(n: int, rng: np.random.Generator, stride: int = 1) -> np.ndarray:
    """Return one cycle through the places 0, stride, 2 · stride … below n in random order; shape (n,), uint32.

    The other places lead to themselves. A `stride` of 32 puts a place on every 128 bytes, so that no load finds its
    data in a cache line that an earlier one brought. Raises ValueError for n that 32 bits do not count.
    """
    if not 1 <= n < 2**32:
        raise ValueError(f"a chain has 1 to {2**32 - 1} places, not {n}")
    places = np.arange(n, dtype=np.uint32)
    order = rng.permutation(np.arange(0, n, stride, dtype=np.uint32))
    places[order] = np.roll(order, -1)
    return places


def constants(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n values of c with which `spin` never comes to rest: -2 < c < -1.5. float32, shape (n,)."""
    return rng.uniform(-2, -1.5, n).astype(np.float32)


def _chosen(name: str, kind: str) -> Kernel:
    return choose({known: kernel for known, kernel in KERNELS.items() if kernel.entry == kind}, name)
