"""`decode`: attention of one new token, from a paged cache of keys and values, with its arguments checked."""

import functools
import math
from typing import Any

import numpy as np

from kernels.attention.forward_pass import ENOUGH, HALVES, busy
from kernels.attention.sources import TYPES, Queued, check_size, checked_scale, compiled, queue
from warpcourse.bench import hopper
from warpcourse.bench.device_arguments import check_array
from warpcourse.bench.lab_kernels import card
from warplab import cp

FILE, STAGES, KEYS, HEADS = "decode.cu", 3, 16, 16  # as the file has them
MOST_WARPS, LEAST_KEYS = 8, 256  # of a block; of a split
CACHE = np.dtype(
    [*((name, np.int32) for name in ("heads", "shared_by", "page", "most_pages", "splits")), ("scale", np.float32)]
)


def warps_for(size: int) -> tuple[int, int]:
    """Return warps of a block for heads of this size, and bytes of their queues, which shared memory has room for."""
    _, room = card()
    of_warp = STAGES * 2 * KEYS * (size + 8) * 2
    warps = min(MOST_WARPS, 2 ** int(math.log2((room - 1024) // of_warp)))
    return warps, warps * of_warp


def splits_for(blocks: int, keys: int, multiprocessors: int) -> int:
    """Return over how many blocks to split `keys` for each of so many `blocks` in y and z: as few as keep nearly all
    multiprocessors at work to the end, none of fewer than LEAST_KEYS."""
    choices = range(1, max(1, keys // LEAST_KEYS) + 1)
    used = {splits: busy(blocks * splits, multiprocessors) for splits in choices}
    return next((splits for splits in choices if used[splits] >= ENOUGH), max(choices, key=used.__getitem__))


def launches(inputs: tuple, parts: tuple, outputs: tuple, cache: np.ndarray) -> list[Queued]:
    """Return the launch: `inputs`, q, k, v, table and lengths, into `parts`, values and logarithms of sums of each
    split, float32, and these into `outputs`, out, lse and, uint32, zeros, how many blocks have come."""
    batch, heads, size = inputs[0].shape
    kind, splits, shared_by = TYPES[inputs[0].dtype.name], int(cache["splits"][0]), int(cache["shared_by"][0])
    warps, shared_bytes = warps_for(size)
    grid = splits, heads // shared_by * math.ceil(shared_by / HEADS), batch
    kernel = compiled(FILE, f"attention_decode<{kind}, {size}, {warps}>")
    return [Queued("decode", kernel, grid, 32 * warps, (*inputs, *parts, *outputs, cache), shared_bytes)]


@functools.cache
def _none_arrived(blocks: int, device: int, stream: int) -> Any:
    """Return zeros that kernels of one stream, which run one after another, leave as they found them."""
    return cp.zeros(blocks, np.uint32)


def decode(
    q: Any,
    k: Any,
    v: Any,
    lengths: Any = None,
    table: Any = None,
    scale: float | None = None,
    splits: int | None = None,
) -> tuple[Any, Any]:
    """Compute attention of one query of each head to a cache; return out, like `q`, and lse, (batch, heads), at once.

    `q`: device array (batch, heads, size), float16 or the bits of bfloat16 in uint16. `k`, `v`: likewise, pages
    (pages, heads of k, page, size). `table`: int32, (batch, most pages), the pages of each sequence in their order;
    None where each sequence has one page, its own. `lengths`: int32, (batch,), keys of each sequence, no more than its
    pages hold; None for all. A page has a multiple of 16 keys, unless a sequence has only one. `splits`: over how many
    blocks the keys of a sequence are split; None to fill the GPU.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit. What `table` holds
    is on the device and not checked: numbers of pages that do not exist are read, but for those past a length.
    """
    check_array("q", q, (None, None, None), dtype=HALVES, alignment=16)
    batch, heads, size = q.shape
    check_size(size)
    for name, array in (("k", k), ("v", v)):
        check_array(name, array, dtype=q.dtype, alignment=16)
        if len(array.shape) != 4 or array.shape[3] != size or tuple(array.shape) != tuple(k.shape):
            raise ValueError(
                f"{name} has shape {tuple(array.shape)}; it must be (pages, heads of k, page, {size}), as k"
            )
    pages, of_keys, page, _ = k.shape
    if not of_keys or heads % of_keys:
        raise ValueError(f"q has {heads} heads, and k {of_keys}: the heads of q must be a multiple of those of k")
    if table is None:
        if pages != batch:
            raise ValueError(f"k has {pages} pages for {batch} sequences: give the table of their pages")
        table = cp.asarray(np.arange(batch, dtype=np.int32)[:, None])
    check_array("table", table, (batch, None), dtype=np.int32)
    most_pages = table.shape[1]
    if most_pages > 1 and page % KEYS:
        raise ValueError(f"a page has {page} keys; where a sequence has several, it must be a multiple of {KEYS}")
    if lengths is None:
        lengths = cp.asarray(np.full(batch, most_pages * page, np.int32))
    check_array("lengths", lengths, (batch,), dtype=np.int32)
    shared_by = heads // of_keys
    blocks = of_keys * math.ceil(shared_by / HEADS)
    if max(batch, blocks) > 65535 or most_pages * page >= 2**30:
        raise ValueError(
            f"q has shape {tuple(q.shape)}, and a sequence {most_pages * page:,} keys: too many for a grid"
        )
    out, lse = cp.empty(q.shape, q.dtype), cp.empty((batch, heads), np.float32)
    if not out.size:
        return out, lse
    if splits is None:
        splits = splits_for(batch * blocks, most_pages * page, hopper.multiprocessors())
    elif splits < 1:
        raise ValueError(f"splits is {splits}; it must be at least 1")
    cache = np.array([(heads, shared_by, page, most_pages, splits, checked_scale(scale, size))], CACHE)
    parts, part_lse = cp.empty((batch * heads, splits, size), np.float32), cp.empty((batch * heads, splits), np.float32)
    arrived = _none_arrived(batch * blocks, cp.cuda.Device().id, cp.cuda.get_current_stream().ptr)
    queue(launches((q, k, v, table, lengths), (parts, part_lse), (out, lse, arrived), cache))
    return out, lse
