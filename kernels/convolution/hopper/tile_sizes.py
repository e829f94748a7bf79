"""Sizes that 5_wgmma_im2col.cu is compiled for. `autotune` measures candidates on a GPU and writes the fastest for each
layer into tiles.json; for a convolution that is not in it they are chosen by arithmetic.
"""

import functools
import json
import math
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.hopper import demand, multiprocessors

PATH = Path(__file__).parent / "tiles.json"
MAX_SHARED_BYTES = 227 * 1024  # of a block on compute capability 9.0
SHARED_BYTES = 228 * 1024  # of a multiprocessor; each block on it costs 1 KiB more than it asks for
STATIC_BYTES = 1024  # barriers, and what is lost so that tiles start at a multiple of 1024
DEPTH = 64  # channels of a stage
BOX_BYTES = 8192  # 64 lines of 128 bytes
HALF = 2  # bytes of an element

# What `clocks` reckons with: facts of an H100 SXM, bytes and products in a clock, ...
PRODUCTS = 2048  # of float16, of a multiprocessor
SHARED_BANDWIDTH = 128  # of a multiprocessor
# ... and what fits the times of kernels.
L2_BANDWIDTH = 6000  # of all
FAR_BANDWIDTH = 32  # of a multiprocessor, to the shared memory of another
LATENCY = 2000  # clocks from the demand for a stage to its arrival
ADDITION, ADDED_BANDWIDTH = 3500, 1500  # clocks of the kernel that adds what is deep, and bytes of sums in a clock
BEGIN = 400  # clocks of a tile beside its steps and results
EXPOSED = 2  # times that results count, which threads write to shared memory and TMA reads there


@dataclass(frozen=True)
class Im2colTiles:
    """Parameters of 5_wgmma_im2col.cu.

    `bm`, `bn`: pixels and channels of the result that a block computes at a time; `consumers`: warpgroups that do;
    `stages`: pairs of operands' tiles in shared memory; `blocks`: on a multiprocessor at a time; `split`: blocks that
    share the depth of a tile; `boxes`: of results in shared memory, for each consumer; `beside`: tiles side by
    side whose blocks share pixels. A cluster has split × beside blocks. `deep`: blocks that share the depth of a tile
    by sums in global memory.
    """

    bm: int
    bn: int
    consumers: int
    stages: int
    blocks: int
    split: int = 1
    boxes: int = 2
    beside: int = 1
    deep: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError, naming the rule that the sizes break."""
        if min(astuple(self)) < 1:
            raise ValueError(f"{self}: all sizes must be at least 1")
        partial = (self.split - 1) * self.bm * self.bn * 4 // self.split
        demand(
            self,
            (self.bm % (64 * self.consumers) == 0, "bm must be a multiple of 64 for each consumer"),
            (self.bm <= 256, "bm must be 256 at most"),
            (self.bn in (16, 32, 64, 128, 256), "bn must be 16, 32, 64, 128 or 256"),
            (self.bm * self.bn // self.consumers <= 64 * 256, "a consumer holds 64 × 256 sums at most"),
            (max(1, self.bn // 64) % self.split == 0, "split must divide bn / 64"),
            (self.split == 1 or self.deep == 1, "either split or deep must be 1"),
            (self.split == 1 or partial <= self.stages * self.stage_bytes, "the sums of a split must fit the stages"),
            (self.cluster <= 8, "a cluster has 8 blocks at most"),
            (self.bm % (8 * self.beside) == 0, "bm must be a multiple of 8 for each block beside"),
            (self.stages >= 2, "stages must be at least 2"),
            (
                self.blocks * (self.shared_bytes + STATIC_BYTES + 1024) <= SHARED_BYTES,
                f"{self.blocks} blocks need {self.blocks * (self.shared_bytes + STATIC_BYTES)} bytes of shared memory",
            ),
        )

    @property
    def cluster(self) -> int:
        """Return blocks of a cluster."""
        return self.split * self.beside

    @property
    def threads(self) -> int:
        """Return threads of a block: the consumers, and a warp that loads."""
        return 128 * self.consumers + 32

    @property
    def stage_bytes(self) -> int:
        """Return shared memory of a pair of operands' tiles."""
        return 2 * DEPTH * (self.bm + self.bn)

    @property
    def shared_bytes(self) -> int:
        """Return dynamic shared memory of a block: stages and boxes of results."""
        return self.stages * self.stage_bytes + self.consumers * self.boxes * BOX_BYTES

    @property
    def options(self) -> tuple[str, ...]:
        """Return options for the compiler."""
        names = "BM", "BN", "CONSUMERS", "STAGES", "BLOCKS", "SPLIT", "BOXES", "BESIDE", "DEEP"
        return tuple(f"-D{name}={value}" for name, value in zip(names, astuple(self), strict=True))

    def tiles(self, pixels: int, channels: int) -> int:
        """Return tiles of clusters that cover a result, each as often as blocks share its depth."""
        return self.deep * math.ceil(pixels / self.bm) * math.ceil(channels / (self.bn * self.beside))


@functools.cache
def table() -> dict[str, Any]:
    """Return tiles.json: `device`, `date`, and for each pass the fastest sizes by convolution; empty without the
    file."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def chosen(conv: Convolution, of: str) -> Im2colTiles:
    """Return the sizes for a pass of a convolution."""
    found = table().get(of, {}).get(str(conv))
    if found:
        return Im2colTiles(*found["sizes"])
    forward = of == "forward"
    deep = conv.groups == 1 and (forward or conv.stride == (1, 1))
    return by_arithmetic(*gemm(conv, of), conv.groups, narrow=forward, deep=deep)


@functools.lru_cache(maxsize=1024)
def by_arithmetic(
    pixels: int, channels: int, depth: int, groups: int = 1, *, narrow: bool = False, deep: bool = False
) -> Im2colTiles:
    """Return, for products of pixels × channels: the candidate that should take the fewest clocks.

    `narrow`, `deep`: whether those with fewer than 64 channels, and those with sums in global memory, are among them.
    """
    found = [*CANDIDATES, *(tiles for tiles in NARROW if narrow and channels <= tiles.bn)]
    found += [tiles for tiles in DEEP if deep and 4 * tiles.deep <= depth // DEPTH and (tiles.bn > 16 or narrow)]
    found = [tiles for tiles in found if tiles.bn > 16 or channels <= 16]
    return min(found, key=lambda tiles: clocks(tiles, pixels, channels, depth, groups))


def clocks(tiles: Im2colTiles, pixels: int, channels: int, depth: int, groups: int = 1) -> float:
    """Return a multiprocessor's clocks for a product: turns of tiles, whose steps wait for one of four things.

    With these constants, fitted to 900 times of ResNet-50's layers at batch 32 on an H100 80GB HBM3, 2026-11-22, the
    candidate of the fewest clocks took 2 % more time than the fastest in the mean, and 13 % at most; BEGIN, ADDITION
    and ADDED_BANDWIDTH came later, for layers of other networks, and EXPOSED of blocks that are not alone.
    """
    clusters, sms = groups * tiles.tiles(pixels, channels), multiprocessors()
    blocks = clusters * tiles.cluster
    together = min(tiles.blocks, math.ceil(blocks / sms))
    arriving = (tiles.bm // tiles.beside + tiles.bn) * DEPTH * HALF
    read = tiles.bm // 64 * (64 + tiles.bn) * DEPTH * HALF  # each 64 rows read all of w's tile
    step = max(
        tiles.bm * tiles.bn * DEPTH / PRODUCTS,
        (read + tiles.stage_bytes) / SHARED_BANDWIDTH,
        arriving * min(sms, blocks) / L2_BANDWIDTH,
        LATENCY / (tiles.stages - 1) / together,
    )
    results = EXPOSED * tiles.bm * tiles.bn * 2 * HALF / SHARED_BANDWIDTH
    sums = tiles.bm * tiles.bn * 4 * 2 / FAR_BANDWIDTH if tiles.split > 1 else 0
    turns = math.ceil(clusters / max(1, sms * tiles.blocks // tiles.cluster))
    steps = math.ceil(depth / DEPTH / tiles.split / tiles.deep)
    added = ADDITION + tiles.deep * pixels * channels * 4 / ADDED_BANDWIDTH if tiles.deep > 1 else 0
    return turns * together * (steps * step + results + sums + BEGIN) + added


def gemm(conv: Convolution, of: str) -> tuple[int, int, int]:
    """Return pixels, channels and depth of a group's result, the depth in whole stages; of the gradient of x its mean
    over the stride's phases."""
    pixels, filters, _ = conv.gemm
    channels, taps = conv.c // conv.groups, conv.r * conv.s
    if of == "forward":
        return pixels, filters, math.ceil(channels / DEPTH) * DEPTH * taps
    depth = math.ceil(filters / DEPTH) * DEPTH * taps // (conv.stride[0] * conv.stride[1])
    return conv.n * conv.h * conv.w, channels, max(1, depth)


CANDIDATES = (
    Im2colTiles(64, 64, 1, 4, 3, boxes=1),
    Im2colTiles(128, 64, 2, 3, 2),
    Im2colTiles(128, 64, 2, 4, 1),
    Im2colTiles(192, 64, 3, 4, 1),
    Im2colTiles(256, 64, 2, 4, 1),
    Im2colTiles(256, 64, 4, 4, 1),
    Im2colTiles(64, 128, 1, 4, 2),
    Im2colTiles(64, 128, 1, 4, 2, beside=4),
    Im2colTiles(128, 128, 2, 3, 2, boxes=1),
    Im2colTiles(128, 128, 2, 5, 1),
    Im2colTiles(128, 128, 2, 5, 1, beside=2),
    Im2colTiles(128, 128, 2, 6, 1, boxes=1),
    Im2colTiles(192, 128, 3, 4, 1),
    Im2colTiles(192, 128, 3, 5, 1, boxes=1),
    Im2colTiles(128, 256, 2, 4, 1),
    Im2colTiles(128, 128, 2, 5, 1, split=2),
    Im2colTiles(128, 128, 2, 5, 1, split=2, beside=2),
    Im2colTiles(128, 128, 2, 5, 1, split=2, beside=4),
)

FEW = Im2colTiles(64, 16, 1, 8, 2, boxes=1)
SHARED = (FEW, CANDIDATES[0], Im2colTiles(64, 64, 1, 8, 1), *CANDIDATES[1:3], Im2colTiles(128, 128, 2, 6, 1, boxes=1))
DEEP = tuple(replace(tiles, deep=deep) for tiles in SHARED for deep in (2, 3, 4, 6, 8, 12, 16))
NARROW = (  # for all channels of a result, which are few
    Im2colTiles(128, 16, 2, 4, 2, boxes=1),
    Im2colTiles(256, 16, 4, 5, 1, boxes=1),
    Im2colTiles(128, 32, 2, 4, 2, boxes=1),
    Im2colTiles(256, 32, 4, 4, 1, boxes=1),
)
