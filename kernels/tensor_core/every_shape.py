"""Step 7, `7_every_shape.cu` and `any_rows.cu`: sizes, what a launch is made of, and products of any shape."""

import functools
import math
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.tensor_core.ladder import SOURCES, TYPES
from kernels.tensor_core.tiles import DEPTH
from warpcourse.bench import hopper
from warpcourse.bench.hopper import demand
from warpcourse.bench.lab_kernels import zeroed_counters
from warplab import cp

ENTRY, ENTRY_FILE = "tensor_core_every_shape", SOURCES.folder / "7_every_shape.cu"
ANY_ROWS_FILE = SOURCES.folder / "any_rows.cu"
WIDE = 8  # elements of float16 in 16 bytes, which TMA copies
BOX_BYTES = 64 * hopper.LINE_BYTES
SHARED_BYTES, BLOCK_BYTES = 228 * 1024, 227 * 1024  # of a multiprocessor, and of a block at most
EXTRA_BYTES = 2048  # of a block: barriers, the start at a multiple of 1024, and 1024 that each block costs
MOST_CLUSTER = 8  # blocks
PROMOTION = 128  # bytes that the L2 cache fetches together
MEETING_LANES, MOST_AT_ONCE = 4, 4  # that add up a four of sums, if there are few; and fours that a lane adds up
PAD_BLOCKS = 8  # of pad.cu on a multiprocessor
FACTORS = {"float16": "FLOAT16", "bfloat16": "BFLOAT16", "e4m3": "E4M3"}  # by their names in hopper.cuh
TWO_LEVELS = 2, 64 * 128  # consumers, and sums of each, at most, whose registers hold them twice
ANY_STAGES, ANY_SPLITS = 6, (1, 2, 4, 8)  # of any_rows.cu, and blocks of a cluster
ANY_SIDES = 16, 32, 64, 128


def _shared(side: int, blocks: int) -> bool:
    """Return whether `blocks` can share the boxes of a side of a tile, or the depth of each, in eights of lines."""
    return side // 8 % blocks == 0 and (side // 64 % blocks == 0 or 8 % blocks == 0)


def _deep(side: int, blocks: int) -> int:
    """Return the depth of a box that a block loads, where lines are along that side of a tile."""
    return 64 // blocks if side // 64 % blocks else 64


@dataclass(frozen=True)
class Tile:
    """Sizes that 7_every_shape.cu is compiled for.

    `bm`, `bn`: rows and columns of C of a tile; `consumers`: warpgroups that multiply; `stages`: pairs of operands'
    tiles in shared memory; `blocks`: on a multiprocessor at a time; `split`: blocks of a cluster that share a tile's
    depth; `stack`: blocks, one below the other, that share tiles of B; `side`: likewise beside each other, of A. A
    cluster has split × stack × side blocks.
    """

    bm: int
    bn: int
    consumers: int
    stages: int
    blocks: int = 1
    split: int = 1
    stack: int = 1
    side: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError, naming the rule that the sizes break."""
        if min(astuple(self)) < 1:
            raise ValueError(f"{self}: all sizes must be at least 1")
        if self.any_rows:
            demand(
                self,
                (self.bm in ANY_SIDES and self.bn in ANY_SIDES, f"bm and bn of any_rows.cu must be of {ANY_SIDES}"),
                (astuple(self)[3:] == (1,) * 5, "any_rows.cu has one stage, block, split, stack and side"),
                (self.consumers == 1 or min(self.bm, self.bn) >= 32, "quarters of a tile must have 16 rows"),
                (self.consumers in (1, 4), "any_rows.cu has one consumer, the block, or four, its warps"),
            )
            return
        sent = (self.split - 1) * self.bm * self.bn * 4 // self.split
        block = self.shared_bytes(boxes=self.split == 1 and self.bn % 64 == 0) + EXTRA_BYTES
        demand(
            self,
            (self.bm % (64 * self.consumers) == 0, "bm must be a multiple of 64 for each consumer"),
            (self.bn in (16, 32, 48, 64, 96, 128, 192, 256), "bn must be 16, 32, 48, 64, 96, 128, 192 or 256"),
            (self.bm <= 256 and self.bm * self.bn <= 64 * 256 * self.consumers, "a consumer holds 64 × 256 sums"),
            (self.stack == 1 or _shared(self.bn, self.stack), "stack must divide bn / 64 or 8, and bn / 8"),
            (self.side == 1 or _shared(self.bm, self.side), "side must divide bm / 64 or 8, and bm / 8"),
            (
                self.bm * self.bn // self.consumers // 512 % self.split == 0,
                "split must divide a thread's fours of sums",
            ),
            (sent <= self.stages * self.stage_bytes, "the sums of a split must fit the stages"),
            (self.cluster <= MOST_CLUSTER, f"a cluster has {MOST_CLUSTER} blocks at most"),
            (self.stages >= 2, "stages must be at least 2"),
            (
                self.blocks * block <= SHARED_BYTES,
                f"{self.blocks} blocks need {self.blocks * block} bytes of shared memory",
            ),
        )

    @property
    def any_rows(self) -> bool:
        """Return whether it is any_rows.cu's, for rows of any length, by no wgmma, whose stages are not chosen."""
        return self.stages == 1

    @property
    def spread(self) -> bool:
        """Return whether it is any_rows.cu's, and each of its warps has a quarter of the tile."""
        return self.any_rows and self.consumers > 1

    @property
    def two_levels(self) -> bool:
        """Return whether the registers of its threads hold the sums twice."""
        consumers, sums = TWO_LEVELS
        most = sums * self.consumers // min(self.blocks, 2)
        return not self.any_rows and self.consumers <= consumers and self.bm * self.bn <= most

    @property
    def cluster(self) -> int:
        """Return blocks of a cluster."""
        return self.split * self.stack * self.side

    @property
    def threads(self) -> int:
        """Return threads of a block: the consumers, and a warp that loads."""
        return 128 if self.any_rows else 128 * self.consumers + 32

    @property
    def stage_bytes(self) -> int:
        """Return shared memory of a pair of operands' tiles; lines of any_rows.cu have four words more."""
        spare = 16 * (self.bm + DEPTH) if self.any_rows else 0
        return 2 * DEPTH * (self.bm + self.bn) + spare

    def shared_bytes(self, *, boxes: bool) -> int:
        """Return dynamic shared memory of a block: stages, and `boxes` of C on their way out."""
        return self.stages * self.stage_bytes + boxes * self.consumers * (2 if self.blocks == 1 else 1) * BOX_BYTES


ANY_ROWS = tuple(Tile(bm, bn, 1, 1) for bm, bn in ((32, 32), (64, 32), (32, 64), (64, 64), (16, 64), (64, 16)))
SPREAD = tuple(Tile(bm, bn, 4, 1) for bm, bn in ((32, 32), (32, 64), (64, 64), (64, 128), (128, 64)))


@dataclass(frozen=True)
class Plan:
    """How a product is computed.

    `parts`: blocks that share the depth of a tile through global memory; of any_rows.cu, of a cluster.
    `swapped`: Cᵀ = Bᵀ Aᵀ is computed, so that the tile's columns, of which there may be 16, are rows of C.
    """

    tile: Tile
    parts: int = 1
    swapped: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for what does not go together."""
        demand(
            self,
            (self.parts >= 1, "parts must be at least 1"),
            (self.parts == 1 or self.tile.cluster == 1, "parts are for blocks without a cluster"),
            (
                self.swapped or self.tile.bn % 64 == 0 or self.tile.any_rows,
                "tiles whose columns are no multiple of 64 are for swapped products",
            ),
            (not self.tile.any_rows or self.parts in ANY_SPLITS, f"clusters of any_rows.cu have {ANY_SPLITS} blocks"),
            (not self.tile.spread or self.parts == 1, "blocks whose warps share no depth share none"),
        )

    @property
    def boxes(self) -> bool:
        """Return whether C leaves through boxes in shared memory."""
        return self.parts == 1 and self.tile.split == 1 and not self.swapped

    @property
    def shared_bytes(self) -> int:
        """Return dynamic shared memory of a block."""
        return self.tile.shared_bytes(boxes=self.boxes)

    def any_rows_bytes(self, k: int) -> int:
        """Return dynamic shared memory of a block of any_rows.cu: of the stages that a depth of k fills, or of sums."""
        tile, steps = self.tile, math.ceil(math.ceil(k / DEPTH) / self.parts)
        sums = 16 // tile.consumers * tile.bm * (tile.bn + 8) + 4 * tile.bm * tile.bn * (self.parts > 1)  # and sent
        return max(min(ANY_STAGES, steps) * tile.stage_bytes, sums)

    def code(
        self, result: str, transposed: str, *, direct: bool, factors: str = "float16", levels: int = 1
    ) -> tuple[Path, tuple[str, ...]]:
        """Return the file and options for the compiler.

        `result`: dtype of C; `transposed`, `factors`, `levels`: as `launch` takes them; `direct`: TMA cannot store the
        rows of C.
        """
        common: tuple[str, ...] = f"-I{SOURCES.folder}", f"-DRESULT={TYPES[result]}"
        if self.tile.any_rows:
            sizes = {"BM": self.tile.bm, "BN": self.tile.bn, "CONSUMERS": self.tile.consumers, "SPLIT": self.parts}
            return ANY_ROWS_FILE, (*common, *(f"-D{name}={value}" for name, value in sizes.items()))
        common += f"-DFACTORS={FACTORS[factors]}", f"-DLEVELS={levels}"
        names = "BM", "BN", "CONSUMERS", "STAGES", "BLOCKS", "SPLIT", "STACK", "SIDE"
        turned = [letter == "T" for letter in transposed]
        if self.swapped:  # of bᵀ and aᵀ
            turned = [not turned[1], not turned[0]]
        fours = self.tile.bm * self.tile.bn // self.tile.consumers // 512  # of a thread
        lanes = 1 if self.parts <= fours else MEETING_LANES
        flags = {
            "TRANSPOSED_A": turned[0],
            "TRANSPOSED_B": turned[1],
            "DIRECT": direct and self.boxes,
            "MEET": lanes if self.parts > 1 else 0,
            "AT_ONCE": min(MOST_AT_ONCE, 1 << (math.ceil(fours * lanes / self.parts) - 1).bit_length()),
            "SWAPPED": self.swapped,
        }
        return ENTRY_FILE, (
            *common,
            *(f"-D{name}={value}" for name, value in zip(names, astuple(self.tile), strict=True)),
            *(f"-D{name}={int(value)}" for name, value in flags.items()),
        )

    def tiles(self, m: int, n: int) -> int:
        """Return tiles of C, those of a stack, and those side by side, as one."""
        if self.swapped:
            m, n = n, m
        return math.ceil(m / (self.tile.bm * self.tile.stack)) * math.ceil(n / (self.tile.bn * self.tile.side))

    def refuses(self, m: int, n: int, k: int, transposed: str, multiprocessors: int) -> str:
        """Return why the plan is not for a product, "" if it is."""
        steps, units, shares = math.ceil(k / DEPTH), self.tiles(m, n) * self.parts, self.parts * self.tile.split
        if shares > steps:
            return f"a depth of {k} has {steps} steps for {shares} blocks"
        if self.tile.any_rows:
            return "" if transposed == "NN" else "any_rows.cu takes no transposed operands"
        if self.parts > 1 and units > multiprocessors * self.tile.blocks:
            return (
                f"{units} blocks must be at work at a time, and there is room for {multiprocessors * self.tile.blocks}"
            )
        if self.tile.bn % 64 and transposed[0] == "T":
            return f"a tile of {self.tile.bn} rows of C takes no transposed a"
        return ""


def launch(
    a: Any,
    b: Any,
    c: Any,
    plan: Plan,
    transposed: str = "NN",
    group: int = 8,
    *,
    factors: str = "float16",
    levels: int | None = None,
) -> None:
    """Queue the kernel, without any check but `Plan.refuses`, after pad.cu where rows need it.

    `transposed`: of a and b each "N" or "T", as BLAS says: with "T", a is given as (k, m), b as (n, k). `group`: tiles
    that blocks run down before the next column of tiles. `factors`: one of FACTORS; those of bfloat16 are uint16, and
    so are those of e4m3, two in one. `levels`: 2, by default of e4m3 alone, for stages summed apart.
    """
    levels = levels or (2 if factors == "e4m3" else 1)
    m, n = c.shape
    k = a.shape[0 if transposed[0] == "T" else 1]
    tile, result, direct = plan.tile, c.dtype.name, not _by_tma(c)
    if reason := plan.refuses(m, n, k, transposed, hopper.multiprocessors()):
        raise ValueError(f"{plan}: {reason}")
    a, b = (x if hopper.address_of(x) % 4 == 0 else x.copy() for x in (a, b))  # words.cuh reads them
    code, options = plan.code(result, transposed, direct=direct, factors=factors, levels=levels)
    if tile.any_rows:
        any_rows = hopper.kernel(code, "tensor_core_any_rows", options)
        arguments = a, b, c, *map(np.int32, (m, n, k))
        any_rows((plan.tiles(m, n) * plan.parts,), (tile.threads,), arguments, plan.any_rows_bytes(k))
        return
    a, b, early = _padded(a, b)
    units = plan.tiles(m, n) * plan.parts
    function = hopper.kernel(code, ENTRY, options)
    together = plan.parts > 1
    if not together and tile.split == 1:  # blocks stay and take tile after tile
        units = min(units, _resident(function, plan))
    partials = counters = np.uint64(0)
    if together:
        partials = cp.empty(units * tile.bm * tile.bn, np.float32)
        counters = zeroed_counters(units)
    left, right, turned = a, b, transposed
    if plan.swapped:
        m, n = n, m
        left, right, turned = b, a, "".join("NT"[letter == "N"] for letter in reversed(transposed))
    of_a = (_deep(tile.bm, tile.side), 64) if turned[0] == "T" else (tile.bm // tile.side, 64)
    of_b = (tile.bn // tile.stack, 64) if turned[1] == "T" else (_deep(tile.bn, tile.stack), 64)
    maps = [hopper.tensor_map(*each, PROMOTION) for each in ((left, *of_a), (right, *of_b))]
    to_boxes = plan.boxes and not direct
    maps.append(hopper.tensor_map(c, 64, hopper.LINE_BYTES // c.dtype.itemsize) if to_boxes else _NO_MAP)
    arguments = *maps, c, partials, counters, *map(np.int32, (m, n, k, plan.parts, group))
    function((units * tile.cluster,), (tile.threads,), arguments, plan.shared_bytes, early=early, together=together)


_NO_MAP = np.zeros(1, "V128")


def _padded(a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Return a and b, or copies whose rows TMA can copy, and whether there are such."""
    wide = [None if _by_tma(x) else cp.empty((x.shape[0], -(-x.shape[1] // WIDE) * WIDE), x.dtype) for x in (a, b)]
    if all(to is None for to in wide):
        return a, b, False
    matrices = [_MATRIX_NONE if to is None else _matrix(x, to) for x, to in zip((a, b), wide, strict=True)]
    chunks = sum(to.size // WIDE for to in wide if to is not None)
    grid = min(math.ceil(chunks / 256), hopper.multiprocessors() * PAD_BLOCKS)
    hopper.kernel(SOURCES.folder / "pad.cu", "tensor_core_pad", (f"-I{SOURCES.folder}",))(
        (grid,), (256,), tuple(matrices)
    )
    a, b = (x if to is None else to for x, to in zip((a, b), wide, strict=True))
    return a, b, True


def _by_tma(x: Any) -> bool:
    return x.shape[1] * x.dtype.itemsize % 16 == 0 and hopper.address_of(x) % 16 == 0


_MATRIX = np.dtype([("from", "u8"), ("to", "u8"), ("rows", "i4"), ("columns", "i4"), ("wide", "i4"), ("rest", "i4")])
_MATRIX_NONE = np.zeros(1, _MATRIX)


def _matrix(x: Any, to: Any) -> np.ndarray:
    """Return a `Matrix` of pad.cu."""
    row = hopper.address_of(x), hopper.address_of(to), *x.shape, to.shape[1] // WIDE, 0
    return np.array([row], _MATRIX)


@functools.cache
def _resident(function: Any, plan: Plan) -> int:
    """Return clusters that the GPU can hold at a time."""
    if plan.tile.cluster == 1:
        return hopper.multiprocessors() * plan.tile.blocks
    return function.resident_clusters(plan.tile.cluster, plan.tile.threads, plan.shared_bytes)
