"""Tactics for convolutions and dense layers, fused or not: the kernels cbr_*.cu, each with several sizes of tiles."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernels.fusion.graph.int8 import quantised
from kernels.fusion.graph.nodes import Tensor
from kernels.fusion.graph.operators import ITEMSIZE, PRECISIONS, as_image, groups, reads_image
from kernels.fusion.tactics.layer import Layer
from kernels.fusion.tactics.sources import CBR, CTYPES, MOST_OUTPUTS, SOURCES, record, view
from kernels.fusion.tactics.tactic import Arrays, Call, Tactic, call
from warpcourse.bench import hopper
from warpcourse.bench.lab_kernels import Kernel

OPS = ("conv", "dense", "cbr")
# In the order of PRECISIONS: FLOAT32, FLOAT16 and INT8 of cbr.cuh are their numbers.
ENOUGH = 132  # blocks that keep an H100 busy: its multiprocessors
FIRST_WIDE, MOST_FIRST = 112, 14  # pixels of a tile's row, and 16s of the depth: of cbr_first.cu
MOST_DEPTHWISE = 5  # of a window's sides
STEP_BYTES = 64  # of the depth, in sliced_fragments.cuh


@dataclass(frozen=True)
class SlicedTiles:
    """Of sliced_tiles.cuh: pixels and filters of a block and of a thread, and groups of threads along the depth."""

    bm: int
    bn: int
    tm: int
    tn: int
    slices: int

    @property
    def threads(self) -> int:
        return self.bm // self.tm * (self.bn // self.tn) * self.slices

    def arguments(self, _layer: Layer) -> tuple[int, ...]:
        return self.bm, self.bn, self.tm, self.tn, self.slices


@dataclass(frozen=True)
class FragmentTiles:
    """Of sliced_fragments.cuh: fragments of a warp, warps of a block along the pixels and along the depth."""

    wm: int
    wn: int
    warps: int
    slices: int

    @property
    def bm(self) -> int:
        return 16 * self.wm * self.warps

    @property
    def bn(self) -> int:
        return 8 * self.wn

    @property
    def threads(self) -> int:
        return 32 * self.warps * self.slices

    def arguments(self, layer: Layer) -> tuple[int, ...]:
        return vector_bytes(layer.reads[0]), self.wm, self.wn, self.warps, self.slices


@dataclass(frozen=True)
class PixelTiles:
    """Of cbr_pixels.cu: filters of a block, and its warps, which share the depth."""

    bn: int
    slices: int
    bm: ClassVar[int] = 32

    @property
    def threads(self) -> int:
        return 32 * self.slices


AnyTiles = SlicedTiles | FragmentTiles | PixelTiles
PIXEL_TILES = (PixelTiles(4, 16), PixelTiles(8, 8), PixelTiles(4, 32))
TILES = (
    SlicedTiles(16, 16, 2, 2, 8),
    SlicedTiles(16, 16, 2, 2, 2),
    SlicedTiles(32, 32, 4, 4, 2),
    SlicedTiles(64, 64, 8, 4, 1),
)
FRAGMENT_TILES = (
    FragmentTiles(1, 1, 1, 8),
    FragmentTiles(1, 1, 1, 4),
    FragmentTiles(1, 2, 1, 2),
    FragmentTiles(2, 2, 2, 1),
    FragmentTiles(2, 4, 4, 1),
)


def filters_of(layer: Layer) -> np.ndarray:
    """Return the layer's filters, (filters, channels, height, width), float32."""
    weights = layer.node.weights
    return weights["filters"] if "filters" in weights else weights["matrix"][:, :, None, None]


def vector_bytes(tensor: Tensor) -> int:
    """Return the longest load, of 16, 8 or 4 bytes, that divides the bytes of a pixel; 0 if none does."""
    pixel = tensor.channels * ITEMSIZE[tensor.dtype]
    return next((size for size in (16, 8, 4) if pixel % size == 0), 0)


def sizes(layer: Layer, per_element: int = 1) -> np.ndarray:
    """Return `Cbr` of cbr.cuh for a layer. `per_element`: channels that the kernel takes as one element of x."""
    attributes, x = layer.node.attributes, layer.reads[0]
    k, c, r, s = filters_of(layer).shape
    _, h, w = as_image(x.shape)
    p, q = as_image(layer.writes[0][1].shape)[1:]
    top, left = attributes.get("padding", (0, 0, 0, 0))[:2]
    (down, across), (dilated_r, dilated_s) = (attributes.get(name, (1, 1)) for name in ("stride", "dilation"))
    empty = [0] * (MOST_OUTPUTS - len(layer.writes))
    parts = [part for part, _ in layer.writes]
    return record(
        CBR,
        pixels=layer.batch * p * q,
        h=h,
        w=w,
        c=c // per_element,
        r=r,
        s=s,
        p=p,
        q=q,
        k=k,
        pad_h=top,
        pad_w=left,
        stride_h=down,
        stride_w=across,
        dilation_h=dilated_r,
        dilation_w=dilated_s,
        depth=c * r * s // per_element,
        **activation(layer),
        outputs=len(parts),
        first=[*(sum(part.channels for part in parts[:i]) for i in range(len(parts))), *empty],
        type=[*(PRECISIONS.index(tensor.dtype) for _, tensor in layer.writes), *empty],
        per_step=[*(1 / (tensor.scale or 1) for _, tensor in layer.writes), *empty],
        x=view(x, per_element=per_element),
        residual=view(layer.reads[1]) if len(layer.reads) == 2 else view(x),
        y=[*(view(tensor, part) for part, tensor in layer.writes), *((0,) * 5 for _ in empty)],
    )


def activation(layer: Layer) -> dict[str, Any]:
    """Return `relu`, `swish` and `most` as kernels have them; of a ReLU without a bound the largest number."""
    attributes = layer.node.attributes
    most = attributes.get("most", 0) or np.inf
    return {"relu": attributes.get("relu", False), "swish": attributes.get("swish", False), "most": most}


def tile_count(layer: Layer, tiles: AnyTiles) -> int:
    """Return blocks that a layer needs."""
    pixels = layer.batch * math.prod(as_image(layer.writes[0][1].shape)[1:])
    return math.ceil(pixels / tiles.bm) * math.ceil(len(filters_of(layer)) / tiles.bn)


def _steps(layer: Layer, tiles: AnyTiles) -> int:
    """Return turns of the loop over the depth for one slice."""
    depth = filters_of(layer)[0].size
    if not isinstance(tiles, FragmentTiles):
        return math.ceil(depth / 16 / tiles.slices)
    return math.ceil(depth * ITEMSIZE[layer.reads[0].dtype] / STEP_BYTES / tiles.slices)


def _badness(tiles: AnyTiles, layer: Layer) -> float:
    """Return a rough rank of tiles where nobody has measured: turns of blocks on the card times the work of a block's
    turn.

    It only says which tactic is the default; tuning replaces it.
    """
    turns = math.ceil(tile_count(layer, tiles) * tiles.threads / (ENOUGH * 1024))
    products_of_thread = tiles.bm * tiles.bn * tiles.slices / tiles.threads
    if isinstance(tiles, PixelTiles):  # no tiles to bring and wait for, but nothing is read once for many pixels
        return turns * _steps(layer, tiles) * (20 + 2 * products_of_thread) + tiles.threads / 1024
    of_equals_the_smaller = tiles.threads / 1024
    return turns * _steps(layer, tiles) * (40 + products_of_thread) + of_equals_the_smaller


def _weights(layer: Layer, filters: np.ndarray) -> dict[str, np.ndarray]:
    """Return what all kernels take beside their filters: bias, and for INT8 the real value of a step of a sum."""
    node = layer.node
    found = {"filters": np.ascontiguousarray(filters)}
    found["bias"] = np.array(node.weights.get("bias", np.zeros(len(filters_of(layer)))), np.float32)
    if node.attributes.get("precision") == "int8":
        found["scale"] = np.float32(layer.reads[0].scale) * node.weights["filter_scales"]
    return found


def typed_filters(layer: Layer) -> np.ndarray:
    """Return the filters as the layer's precision holds them: float32, float16, or INT8 steps."""
    filters, node = filters_of(layer), layer.node
    if node.attributes.get("precision") == "int8":
        return quantised(filters, node.weights["filter_scales"][:, None, None, None])
    return filters.astype(layer.reads[0].dtype)


def depth_by_filters(layer: Layer) -> dict[str, np.ndarray]:
    """Return filters as (r, s, c) × K, for sliced_tiles.cuh."""
    filters = typed_filters(layer)
    return _weights(layer, filters.transpose(2, 3, 1, 0).reshape(-1, len(filters)))


def words_by_filters(layer: Layer) -> dict[str, np.ndarray]:
    """Return INT8 filters as (r, s, c / 4) × K words of four channels, for cbr_dp4a.cu."""
    filters = typed_filters(layer)
    k, c, r, s = filters.shape
    words = filters.reshape(k, c // 4, 4, r, s).transpose(3, 4, 1, 0, 2)
    return _weights(layer, np.ascontiguousarray(words).view(np.int32).reshape(-1, k))


def filters_by_depth(layer: Layer) -> dict[str, np.ndarray]:
    """Return filters as K × (r, s, c), for sliced_fragments.cuh."""
    filters = typed_filters(layer)
    return _weights(layer, filters.transpose(0, 2, 3, 1).reshape(len(filters), -1))


def _bind(
    kernel: Kernel,
    tiles: AnyTiles,
    layer: Layer,
    arrays: tuple[Sequence[Any], Sequence[Any], Arrays],
    per_element: int = 1,
) -> list[Call]:
    arguments = _arguments(layer, *arrays, per_element)
    return [call(kernel, tile_count(layer, tiles), tiles.threads, arguments)]


def _arguments(
    layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays, per_element: int = 1
) -> tuple[Any, ...]:
    """Return the arguments of all kernels."""
    residual = inputs[1] if len(inputs) == 2 else None
    residual_scale = layer.reads[1].scale or 1 if residual is not None else 1
    return (
        *(inputs[0], weights["filters"], weights.get("scale"), weights["bias"]),
        *(residual, np.float32(residual_scale)),
        *(*outputs, *[None] * (MOST_OUTPUTS - len(outputs))),
        sizes(layer, per_element),
    )


def _spread(layer: Layer) -> str:
    if len(layer.writes) > MOST_OUTPUTS:
        return f"it writes {len(layer.writes)} slices, and kernels take {MOST_OUTPUTS}"
    return ""


def in_one_group(layer: Layer) -> str:
    """Return why kernels refuse a layer that want all channels for each filter; "" if they do not."""
    if groups(layer.reads[0].channels, filters_of(layer)) > 1:
        return "its filters see a group of the channels each"
    return _spread(layer)


def _refuses_channels_apart(dtype: str, layer: Layer) -> str:
    """Return what kernels refuse that read several channels of a pixel at once."""
    x = layer.reads[0]
    if x.dtype != dtype:
        return f"it takes {dtype}, and the input is {x.dtype}"
    if x.layout != "NHWC" and not x.same_in_memory():
        return "it takes NHWC, and the input is NCHW"
    if not vector_bytes(x):
        return f"it reads 4 bytes at a time, and a pixel's {x.channels} channels are no multiple of that"
    return in_one_group(layer)


def along_depth(layer: Layer) -> bool:
    """Return whether lanes that bring x go along the depth: channels lie side by side, and there are a few."""
    x = layer.reads[0]
    return x.channels >= 4 and (x.layout == "NHWC" or x.same_in_memory())


def along_filters(layer: Layer) -> str:
    """Return whether lanes that write y go along the filters, which lie side by side in NHWC: "true" or "false"."""
    y = layer.writes[0][1]
    return _flag(y.layout == "NHWC" or y.same_in_memory())


def _flag(value: bool) -> str:
    return str(value).lower()


def _ordinary(tiles: SlicedTiles) -> Tactic:
    def bind(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
        given = ", ".join(map(str, tiles.arguments(layer)))
        entry = f"cbr_f32<{CTYPES[layer.reads[0].dtype]}, {given}, {_flag(along_depth(layer))}, {along_filters(layer)}>"
        kernel = Kernel(entry, SOURCES, "cbr_f32.cu", entry)
        return _bind(kernel, tiles, layer, (inputs, outputs, weights))

    def sort(layer: Layer) -> float:
        # On ordinary cores; where a kernel of the layer's own type can run, this one is the last choice.
        return _badness(tiles, layer) + (0 if layer.reads[0].dtype == "float32" else 1e9)

    return Tactic(_name("f32", tiles), OPS, in_one_group, depth_by_filters, bind, sort=sort)


def _grouped() -> Tactic:
    def bind(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
        entry = f"cbr_grouped<{CTYPES[layer.reads[0].dtype]}, {along_filters(layer)}>"
        filters = filters_of(layer)
        of_group = np.int32(len(filters) // groups(layer.reads[0].channels, filters))
        arguments = *_arguments(layer, inputs, outputs, weights), of_group
        pixels = layer.batch * math.prod(as_image(layer.writes[0][1].shape)[1:])
        return [
            call(
                Kernel(entry, SOURCES, "cbr_grouped.cu", entry), math.ceil(pixels * len(filters) / 256), 256, arguments
            )
        ]

    def refuses(layer: Layer) -> str:
        return _spread(layer) if in_one_group(layer) else "each of its filters sees all channels"

    return Tactic("grouped", OPS, refuses, filters_by_depth, bind)


def first_filters(layer: Layer) -> dict[str, np.ndarray]:
    """Return filters as K × (r, fours of s, four channels) in float16, for cbr_first.cu."""
    filters = filters_of(layer)
    k, c, r, s = filters.shape
    padded = np.zeros((k, r, math.ceil(s / 4) * 4, 4), np.float16)
    padded[:, :, :s, :c] = filters.transpose(0, 2, 3, 1)
    return _weights(layer, padded.view(np.uint32))


def _refuses_first(layer: Layer) -> str:
    attributes, x, (k, _, r, s) = layer.node.attributes, layer.reads[0], filters_of(layer).shape
    if not reads_image(attributes.get("precision", "float32"), x.channels) or len(layer.reads) > 1:
        return "it takes an image of three channels alone, and computes in float16"
    y = layer.writes[0][1]
    if len(layer.writes) > 1 or y.dtype not in ("float16", "int8") or y.layout != "NHWC":
        return "it writes one tensor, float16 or INT8 in NHWC"
    (down, across), dilation = attributes["stride"], attributes["dilation"]
    if dilation != (1, 1) or down != across or down > 4:
        return "it takes equal strides up to 4, and no dilation"
    if k % 32 or layer.writes[0][0].start % 8 or layer.writes[0][1].channels % 8:
        return "it writes 32 filters at a time"
    if r * math.ceil(s / 4) > MOST_FIRST:
        return f"filters of {r} × {s} do not fit its registers"
    return ""


def _bind_first(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
    k, _, r, s = filters_of(layer).shape
    _, p, q = as_image(layer.writes[0][1].shape)
    halves, stride = 1 + (k % 64 == 0), layer.node.attributes["stride"][0]
    blocks = (6 if r * math.ceil(s / 4) <= 4 else 2) * hopper.multiprocessors()

    def count(up: int) -> int:
        return layer.batch * math.ceil(p / up) * math.ceil(q / FIRST_WIDE)

    # Turns of blocks, whose tiles cost their rows of y and of x.
    up = min((1, 2, 4), key=lambda up: math.ceil(count(up) / blocks) * (2 * up + (up - 1) * stride + r))
    tiles = count(up)
    swish = _flag(activation(layer)["swish"])
    entry = f"cbr_first<{r}, {s}, {stride}, {up}, {halves}, {swish}, {CTYPES[layer.writes[0][1].dtype]}>"
    arguments = inputs[0], weights["filters"], weights["bias"], outputs[0], sizes(layer)
    grid = min(tiles, blocks), k // (32 * halves)
    return [call(Kernel(entry, SOURCES, "cbr_first.cu", entry), grid, 128, arguments)]


def _depthwise(wide: int) -> Tactic:
    def weights(layer: Layer) -> dict[str, np.ndarray]:
        filters = filters_of(layer).astype(np.float16)
        return _weights(layer, filters.transpose(2, 3, 0, 1))

    def refuses(layer: Layer) -> str:
        attributes, x, (k, c, r, s) = layer.node.attributes, layer.reads[0], filters_of(layer).shape
        if (k, c) != (x.channels, 1) or len(layer.reads) > 1 or len(layer.writes) > 1:
            return "it takes a filter for each channel, and neither residual nor slices"
        part, y = layer.writes[0]
        if (x.dtype, x.layout, y.dtype, y.layout) != ("float16", "NHWC") * 2 or (k | part.start | y.channels) % 8:
            return "it takes and writes float16 in NHWC, channels in eights"
        (down, across), dilation = attributes["stride"], attributes["dilation"]
        if dilation != (1, 1) or down != across or down > 2 or max(r, s) > MOST_DEPTHWISE:
            return f"it takes windows up to {MOST_DEPTHWISE}, equal strides up to 2, and no dilation"
        return ""

    def bind(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
        (k, _, r, s), (_, p, q) = filters_of(layer).shape, as_image(layer.writes[0][1].shape)
        swish = _flag(activation(layer)["swish"])
        entry = f"cbr_depthwise<{r}, {s}, {layer.node.attributes['stride'][0]}, {wide}, {swish}>"
        blocks = math.ceil(layer.batch * p * math.ceil(q / wide) * k // 8 / 128)
        arguments = inputs[0], weights["filters"], weights["bias"], outputs[0], sizes(layer)
        return [call(Kernel(entry, SOURCES, "cbr_depthwise.cu", entry), blocks, 128, arguments)]

    return Tactic(f"depthwise_{wide}", OPS, refuses, weights, bind, capability=80, sort=lambda _layer: -wide)


def _pixels(tiles: PixelTiles) -> Tactic:
    def bind(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
        entry = f"cbr_pixels<{tiles.bn}, {tiles.slices}, {along_filters(layer)}>"
        kernel = Kernel(entry, SOURCES, "cbr_pixels.cu", entry, alignment=16)
        return _bind(kernel, tiles, layer, (inputs, outputs, weights))

    def refuses(layer: Layer) -> str:
        x = layer.reads[0]
        if x.dtype != "float32":
            return f"it takes float32, and the input is {x.dtype}"
        if x.layout != "NCHW" and not x.same_in_memory():
            return "it takes NCHW, and the input is NHWC"
        if len(filters_of(layer)) % 4:
            return f"it reads four filters at a time, and {len(filters_of(layer))} are no multiple of that"
        return in_one_group(layer)

    return Tactic(_name("pixels", tiles), OPS, refuses, depth_by_filters, bind, sort=functools.partial(_badness, tiles))


def _dp4a(tiles: SlicedTiles) -> Tactic:
    entry = f"cbr_dp4a<{', '.join(map(str, (tiles.bm, tiles.bn, tiles.tm, tiles.tn, tiles.slices)))}>"
    kernel = Kernel(entry, SOURCES, "cbr_dp4a.cu", entry)

    def bind(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
        words = [inputs[0].view(np.int32), *inputs[1:]]
        return _bind(kernel, tiles, layer, (words, outputs, weights), per_element=4)

    def sort(layer: Layer) -> float:
        return 1e6 + _badness(tiles, layer)

    refuses = functools.partial(_refuses_channels_apart, "int8")
    return Tactic(_name("dp4a", tiles), OPS, refuses, words_by_filters, bind, capability=61, sort=sort)


def _tensor_cores(name: str, dtype: str, file: str, tiles: FragmentTiles) -> Tactic:
    def bind(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
        entry = f"{file.removesuffix('.cu')}<{', '.join(map(str, tiles.arguments(layer)))}>"
        return _bind(Kernel(entry, SOURCES, file, entry), tiles, layer, (inputs, outputs, weights))

    refuses, sort = functools.partial(_refuses_channels_apart, dtype), functools.partial(_badness, tiles)
    return Tactic(_name(name, tiles), OPS, refuses, filters_by_depth, bind, capability=80, sort=sort)


def _name(family: str, tiles: AnyTiles) -> str:
    """Name tactics, as in "f32_64x64" or "i8_mma_16x8_in_8": pixels × filters of a block, slices of the depth."""
    return f"{family}_{tiles.bm}x{tiles.bn}" + (f"_in_{tiles.slices}" if tiles.slices > 1 else "")


TACTICS = (
    *map(_ordinary, TILES),
    *map(_pixels, PIXEL_TILES),
    _grouped(),
    *map(_depthwise, (1, 2, 4)),
    Tactic("first", OPS, _refuses_first, first_filters, _bind_first, capability=80, sort=lambda _layer: 0),
    *map(_dp4a, TILES),
    *(_tensor_cores("f16_mma", "float16", "cbr_f16.cu", tiles) for tiles in FRAGMENT_TILES),
    *(_tensor_cores("i8_mma", "int8", "cbr_i8_mma.cu", tiles) for tiles in FRAGMENT_TILES),
)
