"""Numbers as people type them, as they are shown, and a sentence on how far two are apart."""

from __future__ import annotations

import math
import re

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_TYPED = re.compile(rf"({_NUMBER})(?: *(/|\*\*|\^) *({_NUMBER}))?", re.IGNORECASE)
EXACT = 1e-9
SEVERAL_TIMES = 1.5


def parse(text: str) -> float:
    """Return the number in `text`: 32, 12.5, 1e6, 1,000, 12 %, 1/8 or 2**20. Raises ValueError with what to type."""
    bare = re.sub(r"(?<=\d)[,_ '](?=\d{3}(?!\d))", "", text.strip()).removesuffix("%").strip()
    typed = _TYPED.fullmatch(bare)
    try:
        if typed is None:
            raise ValueError
        number = float(typed[1])
        if typed[2]:
            number = number / float(typed[3]) if typed[2] == "/" else number ** float(typed[3])
        if isinstance(number, complex) or not math.isfinite(number):
            raise ValueError
    except (ValueError, ArithmeticError):
        raise ValueError(f"{text.strip()!r} is no number; type one such as 12, 0.5, 1e6, 1/8 or 2**20") from None
    return number


def show(number: float) -> str:
    """Return a number with at most four significant digits, whole ones with all."""
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:,.4g}" if 1e-4 <= abs(number) < 1e6 else f"{number:.4g}"


def difference(predicted: float, value: float) -> str:
    """Return a sentence on how far a prediction is from the value."""
    if math.isclose(predicted, value, rel_tol=EXACT):
        return "Exactly as you predicted."
    if predicted * value <= 0:
        return f"The two are {show(abs(predicted - value))} apart."
    ratio = abs(value / predicted)
    if ratio >= SEVERAL_TIMES:
        return f"It is {ratio:.3g} times as much as you predicted."
    if ratio <= 1 / SEVERAL_TIMES:
        return f"You predicted {1 / ratio:.3g} times as much as it is."
    off = predicted / value - 1
    percent = f"{abs(off):.1%}" if abs(off) < 0.01 else f"{abs(off):.0%}"
    return f"You predicted {percent.replace('%', ' %')} too {'much' if off > 0 else 'little'}."
