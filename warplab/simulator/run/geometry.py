"""Which threads the lanes of a chunk are: their indices, blocks and warps, in arrays that launches share."""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import Index3


@dataclass(eq=False, frozen=True)
class Geometry:
    """The lanes of a chunk: `blocks` thread blocks of `threads` threads from block number `first` on.

    Blocks are numbered as CUDA does it, x first; in clusters of several blocks those of the first cluster come first.
    """

    grid: Index3
    block: Index3
    cluster: Index3  # blocks of a cluster
    first: int
    blocks: int
    threads: int
    special: dict[str, np.ndarray]
    block_of: np.ndarray
    warp_of: np.ndarray
    lane_of: np.ndarray
    warp_sizes: np.ndarray
    small: tuple[np.ndarray, np.ndarray]  # `block_of` and `warp_of` as int32

    def block_index(self, number: int) -> Index3:
        """Return the index in the grid of a block, by its number."""
        x, y, z = (int(axis) for axis in _places(np.array(number), self.grid, self.cluster))
        return x, y, z

    def of_clusters(self, register: str) -> np.ndarray:
        """Return, for each lane, the value of a register that tells of clusters, uint32."""
        return np.repeat(_cluster_registers(self.grid, self.cluster, self.first, self.blocks)[register], self.threads)


@functools.lru_cache(maxsize=16)
def chunk_geometry(grid: Index3, block: Index3, first: int, blocks: int, cluster: Index3 = (1, 1, 1)) -> Geometry:
    """Return the geometry of the chunk of `blocks` thread blocks from block number `first` of a grid on."""
    lanes = _lanes(block, blocks)
    special = dict(lanes.special)
    places = _places(np.arange(first, first + blocks), grid, cluster)
    for axis, name in enumerate("xyz"):
        index = _register(places[axis])
        special[f"%ctaid.{name}"] = index if index.shape[0] == 1 else np.repeat(index, lanes.threads)
        special[f"%nctaid.{name}"] = _register(grid[axis])
    return replace(lanes, grid=grid, first=first, special=special, cluster=cluster)


def _places(number: np.ndarray, grid: Index3, cluster: Index3) -> list[np.ndarray]:
    """Return indices x, y and z of blocks in the grid, by their numbers."""
    size = math.prod(cluster)
    if size == 1:
        return list(np.unravel_index(number, grid, order="F"))
    per_grid = [n // k for n, k in zip(grid, cluster, strict=True)]
    found = []
    for axis in range(3):
        of_cluster = number // size // math.prod(per_grid[:axis]) % per_grid[axis]
        inside = number % size // math.prod(cluster[:axis]) % cluster[axis]
        found.append(of_cluster * cluster[axis] + inside)
    return found


@functools.lru_cache(maxsize=16)
def _cluster_registers(grid: Index3, cluster: Index3, first: int, blocks: int) -> dict[str, np.ndarray]:
    """Return each block's rank and place in its cluster, and its cluster's place in the grid, for a chunk."""
    number = np.arange(first, first + blocks)
    found = {"%cluster_ctarank": (number % math.prod(cluster)).astype(np.uint32)}
    for name, index, size in zip("xyz", _places(number, grid, cluster), cluster, strict=True):
        found[f"%cluster_ctaid.{name}"] = (index % size).astype(np.uint32)
        found[f"%clusterid.{name}"] = (index // size).astype(np.uint32)
    return found


@functools.lru_cache(maxsize=16)
def _lanes(block: Index3, blocks: int) -> Geometry:
    """Return what all chunks with this many blocks have in common."""
    threads = block[0] * block[1] * block[2]
    lane = np.arange(blocks * threads)
    block_of, thread = lane // threads, lane % threads
    warps_per_block = -(-threads // WARP_SIZE)
    sizes = np.full(warps_per_block, WARP_SIZE)
    sizes[-1] = threads - WARP_SIZE * (warps_per_block - 1)
    special = {}
    for axis, name in enumerate("xyz"):
        special[f"%tid.{name}"] = _register(thread // math.prod(block[:axis]) % block[axis])
        special[f"%ntid.{name}"] = _register(block[axis])
    special["%laneid"] = _register(thread % WARP_SIZE)
    special["%warpid"] = _register(thread // WARP_SIZE)
    special["%nwarpid"] = _register(warps_per_block)
    bit = np.uint64(1) << (thread % WARP_SIZE).astype(np.uint64)
    for name, mask in (("eq", bit), ("le", 2 * bit - 1), ("lt", bit - 1), ("ge", -bit), ("gt", -(2 * bit))):
        special[f"%lanemask_{name}"] = _register(mask.astype(np.uint64) & np.uint64(0xFFFFFFFF))
    warp_of = block_of * warps_per_block + thread // WARP_SIZE
    lane_of = (thread % WARP_SIZE).astype(np.uint32)
    alike = np.tile(sizes, blocks)
    places = block_of, warp_of, lane_of, alike, (block_of.astype(np.int32), warp_of.astype(np.int32))
    return Geometry((0, 0, 0), block, (1, 1, 1), 0, blocks, threads, special, *places)


def _register(values) -> np.ndarray:
    """Return one entry per lane, or a single one where all are equal."""
    values = np.asarray(values, np.uint32).reshape(-1)
    return values[:1].copy() if (values == values[0]).all() else values
