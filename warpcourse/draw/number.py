"""The picture of a number in the formats of deep learning: sign, exponent and fraction, bit by bit."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, closed

SIGN, EXPONENT, FRACTION = "#CC79A7", "#E69F00", "#8CC4E8"
CELL = 0.165  # inches per bit
MOST = 8


class Format(NamedTuple):
    """A binary floating-point format: bits of exponent and fraction.

    `top`: code of the largest finite number, without its sign, where it is not the last before all-ones exponents.
    `saturates`: too large numbers become the largest one, as `cvt.satfinite` does, else infinity.
    """

    exponent: int
    fraction: int
    top: int | None = None
    saturates: bool = False

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def largest(self) -> int:
        """Return the code of the largest finite number."""
        infinity = (1 << self.exponent) - 1 << self.fraction
        return infinity - 1 if self.top is None else self.top

    def encode(self, value: float) -> int:
        """Return the code of the nearest number, ties to even; the sign is the highest bit."""
        size, bits = abs(Fraction(value)), self.exponent + self.fraction
        code = 0
        if size:
            exponent = max(size.numerator.bit_length() - size.denominator.bit_length(), 1 - self.bias)
            if exponent > 1 - self.bias and size < Fraction(2) ** exponent:
                exponent -= 1
            steps = round(size / Fraction(2) ** (exponent - self.fraction))
            # Codes are consecutive across binades, so a carry out of the fraction needs no care.
            code = steps + (exponent - (1 - self.bias)) * (1 << self.fraction)
        if code > self.largest:
            code = self.largest + (not self.saturates)
        return code | (math.copysign(1, value) < 0) << bits

    def decode(self, code: int) -> float:
        """Return the number of a code that stands for a finite one or for infinity."""
        bits = self.exponent + self.fraction
        size, sign = code & (1 << bits) - 1, -1 if code >> bits else 1
        if size > self.largest:
            return sign * math.inf
        exponent, fraction = size >> self.fraction, size & (1 << self.fraction) - 1
        whole = fraction + (1 << self.fraction if exponent else 0)
        return sign * math.ldexp(whole, max(exponent, 1) - self.bias - self.fraction)


# PTX ISA, "Alternate Floating-Point Data Formats"; E4M3, E5M2: Micikevicius et al. 2022; E2M1: OCP MX formats 2023.
FORMATS = {
    "float32": Format(8, 23),
    "tf32": Format(8, 10),
    "bfloat16": Format(8, 7),
    "float16": Format(5, 10),
    "e5m2": Format(5, 2, saturates=True),
    "e4m3": Format(4, 3, top=0x7E, saturates=True),
    "e2m1": Format(2, 1, top=0x7, saturates=True),
}
USUAL = ("float32", "tf32", "bfloat16", "float16", "e5m2", "e4m3")


def draw_number(value: float, formats: str | Sequence[str] = USUAL) -> Figure:
    """Draw the bits of the number nearest to `value` in each format, what it is, and how far off.

    Bits stand around the border of exponent and fraction: range grows to the left, precision to the right.
    Rounded to nearest, ties to even; what is too large becomes infinity, in formats of 8 and 4 bits the largest number.
    `formats`: of "float32", "tf32", "bfloat16", "float16", "e5m2", "e4m3" (FP8), "e2m1" (FP4).
    Raises ValueError for an unknown format and for a value that is not finite.
    """
    names = [formats] if isinstance(formats, str) else list(formats)
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not 1 <= len(names) <= MOST:
        what = f"no format is named {unknown[0]!r}" if unknown else f"{len(names)} formats"
        raise ValueError(f"{what}; choose one to {MOST} of {', '.join(FORMATS)}")
    number = _finite(value)
    left = 1 + max(FORMATS[name].exponent for name in names)
    right = max(FORMATS[name].fraction for name in names)
    with plt.rc_context(LAUNCH_FONT):
        text_left, text_right = 7.0, 20.5  # cells for the names on the left, for the numbers on the right
        across = text_left + left + right + text_right
        down = 1.9 * len(names) + 4.2
        figure = plt.figure(figsize=(across * CELL, down * CELL), dpi=LAUNCH_DPI)
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(-text_left - left, right + text_right), ylim=(down - 2.6, -2.6))
        ax.axis("off")
        ax.text(-text_left - left + 0.5, -1.6, f"{number:.9g} in memory", weight="bold", va="center")
        for k, name in enumerate(names):
            _row(ax, 1.9 * k, name, FORMATS[name], number, right, -text_left - left + 0.5)
        labels = {"sign": SIGN, "exponent": EXPONENT, "fraction": FRACTION}
        handles = [Patch(color=colour, label=label) for label, colour in labels.items()]
        figure.legend(handles=handles, loc="lower left", ncols=3, frameon=False, handlelength=1.1, borderpad=0.1)
    return closed(figure)


def _finite(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ValueError(f"value is {value!r}; draw_number() takes a finite number")
    return float(value)


def _row(ax: Axes, y: float, name: str, form: Format, number: float, right: int, edge: float) -> None:
    """Draw one format: its name, its bits around x = 0, and what they stand for."""
    code = form.encode(number)
    stored = form.decode(code)
    bits = 1 + form.exponent + form.fraction
    ax.text(edge, y + 0.7, name, va="center")
    for k in range(bits):
        colour = SIGN if k == 0 else EXPONENT if k <= form.exponent else FRACTION
        x = k - 1 - form.exponent
        ax.add_patch(Rectangle((x, y), 1, 1.4, fc=colour, ec="white", lw=0.8, gid=name))
        bit = str(code >> bits - 1 - k & 1)
        ax.text(x + 0.5, y + 0.7, bit, ha="center", va="center", family="monospace", fontsize=8)
    ax.text(right + 1, y + 0.7, f"{stored:.9g}", va="center")
    ax.text(right + 9.5, y + 0.7, _error(number, stored), va="center", color=GREY)


def _error(number: float, stored: float) -> str:
    if stored == number:
        return "exact"
    if math.isinf(stored):
        return "too large"
    return "too small" if stored == 0 else f"off by {100 * abs(stored - number) / abs(number):.2g} %"
