"""Tactics for convolutions and dense layers in float16 and INT8 on Hopper: cbr_wgmma.cu by sizes of tiles."""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kernels.fusion.graph import Graph
from kernels.fusion.graph.int8 import STEPS
from kernels.fusion.graph.operators import ITEMSIZE, as_image
from kernels.fusion.tactics.cbr_tactics import OPS, activation, filters_by_depth, filters_of, in_one_group
from kernels.fusion.tactics.layer import Layer, layers
from kernels.fusion.tactics.sources import MOST_OUTPUTS, SOURCES, view
from kernels.fusion.tactics.tactic import Arrays, Call, KernelLaunch, Tactic
from warpcourse.bench import hopper
from warpcourse.bench.hopper import Boxes, Pixels

FILE, ENTRY = SOURCES.folder / "cbr_wgmma.cu", "cbr_wgmma"
BOX_BYTES = 16 * hopper.LINE_BYTES  # of a warp's results
WIDE = 16  # bytes that TMA copies
KINDS = {"float16": "float16", "int8": "uint8"}  # what tensor maps call them
PRODUCTS, L2_BYTES, SHARED_BYTES = 4096, 5000, 128  # in a clock: bytes of an SM, of all, of an SM's shared memory
LATENCY, BEGIN = 1500, 800  # clocks from the demand for a stage to its arrival, and of a tile beside its steps

_OUTPUT = np.dtype([("to", np.uint64), ("first", np.int32), ("pitch", np.int32)])
_FIELDS = (
    *(
        "residual_scale",
        "step",
        "residual_pitch",
        "outputs",
        "single",
        "relu",
        "swish",
        "most",
        "pixels",
        "filters",
        "channels",
        "flat",
        "image",
        "width",
    ),
    *("top", "left", "down", "right", "rows", "columns", "dilation_h", "dilation_w"),
)
MAPS = "x", "w", "residual_boxes"
_USED = len(MAPS) * hopper.MAP_BYTES + MOST_OUTPUTS * _OUTPUT.itemsize + 16 + 4 * len(_FIELDS)
LAYER = np.dtype(  # `Layer` of cbr_wgmma.cu
    [
        *((name, f"V{hopper.MAP_BYTES}") for name in MAPS),
        ("y", _OUTPUT, (MOST_OUTPUTS,)),
        *((name, np.uint64) for name in ("residual", "bias")),
        *((name, np.float32 if name in ("most", "residual_scale", "step") else np.int32) for name in _FIELDS),
        ("rest", f"V{-_USED % hopper.MAP_ALIGNMENT}"),
    ]
)


@dataclass(frozen=True)
class Tiles:
    """Parameters of cbr_wgmma.cu: pixels and filters of a tile, warpgroups that multiply, stages of operands, blocks on
    a multiprocessor, and blocks that share a tile's depth."""

    bm: int
    bn: int
    consumers: int
    stages: int
    blocks: int
    split: int = 1

    @property
    def shared_bytes(self) -> int:
        """Return dynamic shared memory of a block."""
        boxes = 0 if self.split > 1 else 4 * self.consumers * BOX_BYTES
        return self.stages * (self.bm + self.bn) * hopper.LINE_BYTES + boxes

    @property
    def name(self) -> str:
        """Return the tactic's name, such as "wgmma_64x64_in_8"."""
        return f"wgmma_{self.bm}x{self.bn}" + (f"_in_{self.split}" if self.split > 1 else f"_by_{self.blocks}")

    def options(self, layer: Layer) -> tuple[str, ...]:
        """Return options for the compiler."""
        names = "BM", "BN", "CONSUMERS", "STAGES", "BLOCKS", "SPLIT", "BK", "SILU", "INT8"
        flags = int(activation(layer)["swish"]), int(_type(layer) == "int8")
        tiles = replace(self, stages=self.stages * hopper.LINE_BYTES // line_bytes(layer))
        numbers = zip(names, (*astuple(tiles), chunk(layer), *flags), strict=True)
        return (f"-I{SOURCES.folder}", *(f"-D{name}={number}" for name, number in numbers))

    def count(self, layer: Layer) -> int:
        """Return tiles that cover a layer."""
        return math.ceil(_pixels(layer) / self.bm) * math.ceil(len(filters_of(layer)) / self.bn)


TILES = (
    Tiles(128, 32, 2, 4, 2),
    Tiles(64, 64, 1, 4, 3),
    Tiles(128, 64, 2, 3, 2),
    Tiles(192, 64, 3, 4, 1),
    Tiles(256, 64, 2, 4, 1),
    Tiles(64, 128, 1, 4, 2),
    Tiles(64, 256, 1, 2, 2),
    Tiles(128, 128, 2, 3, 2),
    Tiles(128, 128, 2, 6, 1),
    Tiles(192, 128, 3, 5, 1),
    Tiles(128, 256, 2, 3, 1),
    *(Tiles(64, 32, 1, 8, 2, split) for split in (2, 4, 8)),
    *(Tiles(64, 64, 1, 6, 2, split) for split in (2, 4, 8)),
    *(Tiles(64, 128, 1, 4, 2, split) for split in (2, 4)),
    *(Tiles(128, 128, 2, 6, 1, split) for split in (2, 4)),
)


class _Kernel(NamedTuple):
    """The kernel with options for the compiler."""

    options: tuple[str, ...]

    def function(self) -> Any:
        """Return it compiled."""
        return hopper.kernel(FILE, ENTRY, self.options)


def chunk(layer: Layer) -> int:
    """Return channels of a stage: BK of cbr_wgmma.cu."""
    return line_bytes(layer) // ITEMSIZE[_type(layer)]


def line_bytes(layer: Layer) -> int:
    """Return bytes of a stage's channels, 128 or fewer where that leaves fewer zeros; then there are more stages."""
    nbytes = layer.reads[0].channels * ITEMSIZE[_type(layer)]
    return min(hopper.SWIZZLES, key=lambda few: (math.ceil(nbytes / few) * (few + 48), -few))


def _type(layer: Layer) -> str:
    return layer.reads[0].dtype


def compile_ahead(graph: Graph, batches: Iterable[int]) -> None:
    """Compile what tuning and engines of a graph may want, in a process for each core."""
    found = [layer for batch in batches for layer in layers(graph, batch) if layer.node.op in OPS]
    pairs = [(layer, tiles) for layer in found for tiles in TILES if not _refuses(tiles, layer)]
    hopper.compile_ahead({(FILE, tiles.options(layer)) for layer, tiles in pairs})


def _pixels(layer: Layer) -> int:
    return layer.batch * math.prod(as_image(layer.writes[0][1].shape)[1:])


def _steps(layer: Layer) -> int:
    filters, deep = filters_of(layer), chunk(layer)
    return math.ceil(filters.shape[1] / deep) * filters[0, 0].size


def _refuses(tiles: Tiles, layer: Layer) -> str:
    written, dtype = {tensor.dtype for _, tensor in layer.writes}, _type(layer)
    if dtype not in KINDS or any(
        t.dtype != dtype or (t.layout != "NHWC" and not t.same_in_memory()) for t in layer.reads
    ):
        return "it takes float16 or INT8 in NHWC"
    if written != {dtype} and (written != {"float32"} or tiles.split == 1 or dtype == "int8"):
        return f"it writes {dtype}, and this layer {' and '.join(sorted(written))}"
    if any(t.layout != "NHWC" and not t.same_in_memory() for _, t in layer.writes):
        return "it writes NHWC"
    numbers = [t.channels for t in layer.reads] + [
        n for p, t in layer.writes for n in (p.start, p.channels, t.channels)
    ]
    if any(number * ITEMSIZE[dtype] % WIDE for number in numbers):
        return f"it moves {WIDE} bytes of channels at a time"
    if why := _refuses_int8(layer) if dtype == "int8" else "":
        return why
    if tiles.split == 1 and len(layer.reads) == 2 and chunk(layer) > tiles.bn:
        return f"residuals come {chunk(layer)} channels at a time"
    if tiles.split > _steps(layer):
        return f"its depth has {_steps(layer)} parts, and {tiles.split} blocks would share it"
    if tiles.split > 1 and tiles.count(layer) * tiles.split > 2**16:
        return "it would take more clusters than are sensible"
    if why := in_one_group(layer) or hopper.missing("cbr_wgmma.cu", "f16_mma"):
        return why
    try:
        _window(layer, 0, tiles)
    except ValueError as error:
        return f"TMA cannot walk its images: {error}"
    return ""


def _refuses_int8(layer: Layer) -> str:
    given = activation(layer)
    if len(layer.writes) > 1 and (len(layer.reads) == 2 or given["swish"] or given["most"] < np.inf):
        return "in INT8 a residual, SiLU or a bound needs one scale of what is written"
    return ""


def _window(layer: Layer, address: int, tiles: Tiles) -> Boxes | Pixels:
    """Return how TMA walks x: as a matrix where windows are pixels, else by windows."""
    attributes, (c, h, w) = layer.node.attributes, as_image(layer.reads[0].shape)
    _, _, r, s = filters_of(layer).shape
    top, left = attributes.get("padding", (0, 0, 0, 0))[:2]
    stride, dilation = (attributes.get(name, (1, 1)) for name in ("stride", "dilation"))
    positions, few = as_image(layer.writes[0][1].shape)[1:], chunk(layer)
    kind, item = KINDS[_type(layer)], ITEMSIZE[_type(layer)]
    if _flat(layer):
        return Boxes(address, kind, _pixels(layer), c, tiles.bm, few)
    for taps, gap in zip((r, s), dilation, strict=True):
        hopper.demand(layer, ((taps - 1) * gap < 256, "the first tap and the last are 255 pixels apart at most"))
    strides, shape = tuple(n * c * item for n in (h * w, w, 1)), (layer.batch, h, w, c)
    return Pixels(address, kind, shape, strides, (-top, -left), positions, stride, tiles.bm, few * item)


def _flat(layer: Layer) -> bool:
    attributes = layer.node.attributes
    plain = not any(attributes.get("padding", (0,))) and attributes.get("stride", (1, 1)) == (1, 1)
    return plain and filters_of(layer).shape[2:] == (1, 1)


def _weights(tiles: Tiles, layer: Layer) -> dict[str, np.ndarray]:
    found = filters_by_depth(layer)
    if _type(layer) == "int8":
        per_step = np.concatenate([np.full(part.channels, 1 / (t.scale or 1), np.float32) for part, t in layer.writes])
        lines = np.stack([_in_columns(found[name] * per_step).reshape(-1, 2) for name in ("bias", "scale")], axis=1)
        found = {"filters": _in_columns(found["filters"]), "bias": lines.ravel()}
    each = len(found["bias"]) // len(found["filters"])
    bias = np.zeros(math.ceil(len(found["filters"]) / tiles.bn) * tiles.bn * each, np.float32)
    bias[: len(found["bias"])] = found["bias"]
    return {**found, "bias": bias}


def _in_columns(filters: np.ndarray) -> np.ndarray:
    """Return INT8's filters in the order of wgmma's columns: `filter_of` of cbr_wgmma.cu."""
    sixteens = filters.reshape(-1, 4, 2, 2, *filters.shape[1:])  # of threads, eights, and two of each
    return np.ascontiguousarray(sixteens.swapaxes(1, 2).reshape(filters.shape))


def _record(tiles: Tiles, layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> np.ndarray:
    attributes, (k, c, r, s) = layer.node.attributes, filters_of(layer).shape
    address = [hopper.address_of(array) for array in (inputs[0], weights["filters"])]
    few, kind, residual = chunk(layer), KINDS[_type(layer)], hopper.address_of(inputs[1]) if len(inputs) == 2 else 0
    maps = (
        _window(layer, address[0], tiles),
        Boxes(address[1], kind, k, c, tiles.bn, few, r * s),
        Boxes(residual, kind, _pixels(layer), k, tiles.bm, few),
    )
    (top, left), (p, q) = attributes.get("padding", (0, 0, 0, 0))[:2], as_image(layer.writes[0][1].shape)[1:]
    (down, right), dilation = (attributes.get(name, (1, 1)) for name in ("stride", "dilation"))
    made = np.zeros(1, LAYER)
    for name, what in zip(MAPS, maps[: 1 + len(inputs)], strict=False):
        made[name][0] = np.void(hopper.encoded(what).tobytes())
    first = 0
    for i, ((part, tensor), array) in enumerate(zip(layer.writes, outputs, strict=True)):
        start, *_, pitch = view(tensor, part)
        made["y"][0, i] = hopper.address_of(array) + start * array.dtype.itemsize, first, pitch
        first += part.channels
    numbers = {
        "residual": residual,
        "bias": hopper.address_of(weights["bias"]),
        "step": layer.writes[0][1].scale or 1,
        "residual_scale": (layer.reads[-1].scale or 1) / (layer.writes[0][1].scale or 1),
        "residual_pitch": k,
        "outputs": len(outputs),
        "single": layer.writes[0][1].dtype == "float32",
        **activation(layer),
        "pixels": _pixels(layer),
        "filters": k,
        "channels": c,
        "flat": _flat(layer),
        "image": p * q,
        "width": q,
        "top": -top,
        "left": -left,
        "down": down,
        "right": right,
        "rows": r,
        "columns": s,
        "dilation_h": dilation[0],
        "dilation_w": dilation[1],
    }
    if _type(layer) == "int8":
        numbers["most"] = min(STEPS, numbers["most"] / layer.writes[0][1].scale)
    for name, number in numbers.items():
        made[name] = number
    return made


def _tactic(tiles: Tiles) -> Tactic:
    def bind(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
        clusters = tiles.count(layer)
        if tiles.split == 1:  # blocks stay and take tile after tile
            clusters = min(clusters, hopper.multiprocessors() * tiles.blocks)
        grid, block = (clusters * tiles.split,), 128 * tiles.consumers + 32
        given = (_record(tiles, layer, inputs, outputs, weights),)
        made = KernelLaunch(_Kernel(tiles.options(layer)), grid, block, given, tiles.shared_bytes, early=True)

        def queue(_held: Any = (inputs, outputs, weights)) -> None:  # the record has addresses alone
            made.queue()

        return [Call(tiles.name, queue, made)]

    def clocks(layer: Layer) -> float:
        """Return a rough rank: turns of tiles, whose steps wait for products, operands, or their arrival."""
        blocks, sms = tiles.count(layer) * tiles.split, hopper.multiprocessors()
        together = min(tiles.blocks, math.ceil(blocks / sms))
        line = line_bytes(layer)
        arriving = (tiles.bm + tiles.bn) * line
        read = tiles.bm // 64 * (64 + tiles.bn) * line
        step = max(
            tiles.bm * tiles.bn * line / PRODUCTS,
            (read + arriving) / SHARED_BYTES,
            arriving * min(sms, blocks) / L2_BYTES,
            LATENCY / tiles.stages / together,
        )
        results = tiles.bm * tiles.bn / SHARED_BYTES * (1 if tiles.split == 1 else 6)
        turns = math.ceil(blocks / (sms * tiles.blocks))
        return turns * together * (math.ceil(_steps(layer) / tiles.split) * step + results + BEGIN)

    def sort(layer: Layer) -> float:
        # Others are simulated sooner.
        return clocks(layer) / 1e9 if hopper.available() else 1e9 + clocks(layer)

    return Tactic(
        tiles.name,
        OPS,
        functools.partial(_refuses, tiles),
        functools.partial(_weights, tiles),
        bind,
        capability=90,
        sort=sort,
    )


TACTICS = tuple(map(_tactic, TILES))
