"""Launches of tasks.cu: tasks of different length, one per thread, one per warp, or from a queue."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.warp_divergence.kernel_table import BLOCK, MAX_BLOCK, WARP, blocks, kernel
from warpcourse.bench.device_arguments import check_array
from warplab import cp
from warplab.hardware import backend

CHUNK = 32  # tasks that a warp takes from the queue at a time; the fastest of 32, 64, 256 and 1024 on an H100
QUEUE_BLOCKS = 4  # a multiprocessor, for queues: the fastest of 2, 4 and 8 on an H100
ROW_SHAPE, TILE_SHAPE = (32, 8), (8, 32)  # blocks whose warps are 32 pixels of a row, or tiles of 8 x 4


@dataclass(frozen=True)
class View:
    """A piece of the complex plane: its corner, and its width (and height). float32 throughout."""

    left: float
    bottom: float
    width: float

    def scalars(self, pixels: int) -> tuple[np.float32, np.float32, np.float32]:
        """Return left, bottom and the step from pixel to pixel, `pixels` of them in a row."""
        return np.float32(self.left), np.float32(self.bottom), np.float32(self.width / pixels)


WHOLE = View(-2.2, -1.3, 2.6)
SPIRAL = View(-0.7463, 0.1102, 0.005)  # many pixels near the edge of the set, so lengths differ from one to the next


def collatz(first: int, order: Any, out: Any, name: str = "cuda_collatz") -> Any:
    """Compute out[t] = Collatz steps from first + t to 1; thread i has task t = order[i]. Return `out` at once.

    `first`: at least 1. `order`, `out`: device arrays, int32, of one axis and one length; `order` is a permutation.
    first + length must be below 2^32, and values on the way below 2^64. `name`: "cuda_collatz" or "numba_collatz".
    """
    chosen = kernel(name)
    check_array("order", order, (None,), dtype=np.int32)
    check_array("out", out, tuple(order.shape), dtype=np.int32)
    _check_first(first, out.size)
    if out.size:
        length = (np.int32(out.size),) if chosen.language != "Numba" else ()
        chosen.launch(blocks(out.size), BLOCK, (np.uint32(first), order, out, *length))
    return out


def collatz_queue(first: int, out: Any, *, chunk: int = CHUNK) -> Any:
    """Return `collatz` with the tasks taken from a queue, `chunk` (at least 32) at a time by a warp."""
    check_array("out", out, (None,), dtype=np.int32)
    _check_first(first, out.size)
    _check_chunk(chunk)
    if out.size:
        arguments = (np.uint32(first), cp.zeros(1, np.uint32), np.uint32(chunk), out, np.uint32(out.size))
        kernel("cuda_collatz_queue").launch(queue_blocks("cuda_collatz_queue"), BLOCK, arguments)
    return out


def mandelbrot(out: Any, limit: int, view: View = SPIRAL, *, block: tuple[int, int] = TILE_SHAPE) -> Any:
    """Compute out[y, x] = passes of z -> z z + c before |z| >= 2, at most `limit`; return `out` at once.

    `out`: device array, int32, of shape (pixels, pixels). `block`: threads in x and y; ROW_SHAPE or TILE_SHAPE.
    """
    pixels = _check_image(out, limit)
    if min(block) < 1 or block[0] * block[1] > MAX_BLOCK:
        raise ValueError(f"block is {block}; a block has 1 to {MAX_BLOCK} threads")
    if pixels:
        grid = tuple(blocks(pixels, size) for size in block)
        kernel("cuda_mandelbrot").launch(grid, block, mandelbrot_arguments(out, limit, view))
    return out


def mandelbrot_queue(out: Any, limit: int, view: View = SPIRAL, *, chunk: int = CHUNK) -> Any:
    """Return `mandelbrot` with the pixels taken from a queue, `chunk` (at least 32) at a time by a warp."""
    pixels = _check_image(out, limit)
    _check_chunk(chunk)
    if pixels:
        arguments = (cp.zeros(1, np.uint32), np.uint32(chunk), *mandelbrot_arguments(out, limit, view))
        kernel("cuda_mandelbrot_queue").launch(queue_blocks("cuda_mandelbrot_queue"), BLOCK, arguments)
    return out


def mandelbrot_arguments(out: Any, limit: int, view: View) -> tuple:
    """Return what `mandelbrot` takes; its queue takes the queue's two before that."""
    pixels = out.shape[0]
    return out, np.int32(pixels), np.int32(pixels), np.int32(limit), *view.scalars(pixels)


def row_sums(start: Any, value: Any, out: Any, name: str = "cuda_row_sums_warp") -> Any:
    """Compute out[r] = value[start[r]] + ... + value[start[r + 1] - 1]; return `out` at once.

    `start`, `value`, `out`: device arrays, int32, of one axis; `start` is one longer than `out`, rises, and ends with
    the length of `value`. `name`: "cuda_row_sums_thread", "cuda_row_sums_warp" or "numba_row_sums_warp".
    """
    chosen = kernel(name)
    check_array("value", value, (None,), dtype=np.int32)
    check_array("out", out, (None,), dtype=np.int32)
    check_array("start", start, (out.size + 1,), dtype=np.int32)
    if out.size:
        length = (np.int32(out.size),) if chosen.language != "Numba" else ()
        threads = out.size * (1 if name.endswith("thread") else WARP)
        chosen.launch(blocks(threads), BLOCK, (start, value, out, *length))
    return out


def queue_blocks(name: str) -> int:
    """Return blocks for a kernel with a queue: QUEUE_BLOCKS on each multiprocessor, if they fit."""
    fit = kernel(name).resident_blocks(BLOCK)
    if backend.name() != "gpu":
        return fit
    return min(fit, QUEUE_BLOCKS * cp.cuda.Device().attributes["MultiProcessorCount"])


def _check_first(first: int, n: int) -> None:
    if first < 1 or first + n >= 2**32:
        raise ValueError(f"first is {first} for {n} numbers; they must lie between 1 and 2^32 - 1")


def _check_chunk(chunk: int) -> None:
    if chunk < WARP:
        raise ValueError(f"chunk is {chunk}; a warp must take at least {WARP} tasks, one for each lane")


def _check_image(out: Any, limit: int) -> int:
    pixels = out.shape[0] if getattr(out, "ndim", 0) == 2 else -1
    if pixels < 0 or out.shape[1] != pixels or pixels > 2**15:
        raise ValueError(
            f"out has shape {getattr(out, 'shape', None)}; it must be square, of at most 32768 pixels per row"
        )
    check_array("out", out, (pixels, pixels), dtype=np.int32)
    if limit < 1:
        raise ValueError(f"limit is {limit}; at least one pass is needed")
    return pixels
