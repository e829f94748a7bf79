"""What a convolution computes: its sizes, the shapes of its tensors, its operations and bytes.

Letters as in cuDNN: x has N images of C channels, H × W; w has K filters of C / groups channels, R × S; y has N images
of K channels, P × Q. "Convolution" is cross-correlation here, as in every deep learning framework.
"""

import math
import operator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

LAYOUTS = ("NCHW", "NHWC")  # of x and y; filters lie as KCRS or KRSC
PASSES = ("forward", "backward_data", "backward_filter")
Pair = tuple[int, int]  # of the height's and the width's


@dataclass(frozen=True)
class Convolution:
    """A convolution's sizes. ValueError names the one that does not fit.

    `n`: images; `c`, `h`, `w`: channels, height and width of x; `k`: filters; `r`, `s`: a filter's height and width.
    `padding`: rows and columns of zeros on each side; `stride`, `dilation`: steps between windows, and between a
    filter's elements; `groups`: filters of a group see only the channels of that group.
    """

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    padding: Pair = (0, 0)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    groups: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError for sizes that make no convolution."""
        for name in ("n", "c", "h", "w", "k", "r", "s", "groups"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
        for name, least in (("padding", 0), ("stride", 1), ("dilation", 1)):
            value = getattr(self, name)
            whole = isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, int) for v in value)
            if not whole or min(value) < least:
                raise ValueError(f"{name} is {value!r}; it must be two whole numbers, at least {least}")
        for name in ("c", "k"):
            if getattr(self, name) % self.groups:
                raise ValueError(f"{name} is {getattr(self, name)}, which {self.groups} groups do not divide")
        for axis, extent, room in (("high", self.extent[0], self.room[0]), ("wide", self.extent[1], self.room[1])):
            if extent > room:
                raise ValueError(
                    f"the dilated filter is {extent} {axis} and the padded image {room}: "
                    "no window fits; pad more, dilate less, or take a smaller filter"
                )

    @property
    def extent(self) -> Pair:
        """Return the height and width of the part of an image that one window spans, the gaps of dilation included."""
        return self.dilation[0] * (self.r - 1) + 1, self.dilation[1] * (self.s - 1) + 1

    @property
    def room(self) -> Pair:
        """Return the height and width of the padded image."""
        return self.h + 2 * self.padding[0], self.w + 2 * self.padding[1]

    @property
    def p(self) -> int:
        """Return the height of y."""
        return (self.room[0] - self.extent[0]) // self.stride[0] + 1

    @property
    def q(self) -> int:
        """Return the width of y."""
        return (self.room[1] - self.extent[1]) // self.stride[1] + 1

    @property
    def depth(self) -> int:
        """Return products per element of y: channels of a group times the filter's elements."""
        return self.c // self.groups * self.r * self.s

    @property
    def flops(self) -> int:
        """Return operations of each pass, an FMA being two; products with padding's zeros are counted, as cuDNN's users
        do."""
        return 2 * self.n * self.k * self.p * self.q * self.depth

    @property
    def gemm(self) -> tuple[int, int, int]:
        """Return (m, n, k) of the matrix product of one group: output pixels × filters × products per element."""
        return self.n * self.p * self.q, self.k // self.groups, self.depth

    def x_shape(self, layout: str = "NCHW") -> tuple[int, ...]:
        """Return the shape of x, and of its gradient."""
        return _ordered(self.n, self.c, self.h, self.w, layout)

    def w_shape(self, layout: str = "NCHW") -> tuple[int, ...]:
        """Return the shape of the filters, and of their gradient: KCRS for "NCHW", KRSC for "NHWC"."""
        return _ordered(self.k, self.c // self.groups, self.r, self.s, layout)

    def y_shape(self, layout: str = "NCHW") -> tuple[int, ...]:
        """Return the shape of y, and of its gradient."""
        return _ordered(self.n, self.k, self.p, self.q, layout)

    def bytes(self, itemsize: int) -> int:
        """Return bytes of x, w and y, once each, elements of `itemsize` bytes: the fewest that a pass moves.

        Not where a stride jumps over pixels: 1 × 1 with stride 2 needs a quarter of x, which is counted whole.
        """
        return itemsize * sum(math.prod(shape) for shape in (self.x_shape(), self.w_shape(), self.y_shape()))

    def __str__(self) -> str:
        """Return words such as "32 × 64 × 56², 3 × 3, 64 filters, stride 2", the parameters at their defaults left
        out."""
        size = f"{self.h}²" if self.h == self.w else f"{self.h} × {self.w}"
        text = f"{self.n} × {self.c} × {size}, {self.r} × {self.s}, {self.k} filters"
        for name, default in (("padding", (0, 0)), ("stride", (1, 1)), ("dilation", (1, 1)), ("groups", 1)):
            value = getattr(self, name)
            if value != default:
                same = isinstance(value, tuple) and value[0] == value[1]
                text += f", {name} {value[0] if same else value}"
        return text


def of_arrays(x: Any, w: Any, layout: str = "NCHW", **parameters: Any) -> Convolution:
    """Return the convolution of two arrays (anything with a shape); `parameters`: padding, stride, dilation, groups.

    A single number stands for a pair. ValueError for arrays that do not fit each other.
    """
    check_layout(layout)
    for name, array, axes in (("x", x, layout), ("w", w, "KCRS" if layout == "NCHW" else "KRSC")):
        if len(array.shape) != 4:
            raise ValueError(f"{name} has shape {tuple(array.shape)}; it must have the four axes {axes}")
    pairs = {name: pair(value, name) for name, value in parameters.items() if name != "groups"}
    groups = parameters.get("groups", 1)
    if not isinstance(groups, Integral) or groups < 1:
        raise ValueError(f"groups is {groups!r}; it must be a whole number, at least 1")
    groups = int(groups)
    channels, height, width = (1, 2, 3) if layout == "NCHW" else (3, 1, 2)
    c, per_group = int(x.shape[channels]), int(w.shape[channels])
    if per_group * groups != c:
        raise ValueError(
            f"x has {c} channels and w {per_group} per group; {groups} groups of {per_group} make {groups * per_group}"
        )
    sizes = (int(x.shape[i]) for i in (0, channels, height, width))
    return Convolution(*sizes, *(int(w.shape[i]) for i in (0, height, width)), groups=groups, **pairs)


def pair(value: Any, name: str) -> Pair:
    """Return (value, value) for a whole number, the value itself as a tuple for two; ValueError for anything else."""
    both = value if isinstance(value, tuple | list) else (value, value)
    try:
        height, width = map(operator.index, both)  # NumPy's integers, too
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; it must be a whole number or two") from None
    return height, width


def check_layout(layout: str) -> None:
    """Raise ValueError for a layout that is not in LAYOUTS."""
    if layout not in LAYOUTS:
        raise ValueError(f"there is no layout {layout!r}; choose one of {', '.join(LAYOUTS)}")


def _ordered(n: int, c: int, h: int, w: int, layout: str) -> tuple[int, ...]:
    check_layout(layout)
    return (n, c, h, w) if layout == "NCHW" else (n, h, w, c)
