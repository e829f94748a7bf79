"""Numbers as people type them, as they are shown, and a sentence on how far two are apart."""

import math
import re

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_TYPED = re.compile(rf"({_NUMBER})(?: *(/|\*\*|\^) *({_NUMBER}))?", re.IGNORECASE)
EXACT = 1e-9
SEVERAL_TIMES = 1.5
CLOSE = 0.1
COUNTED = 1000  # below it whole numbers are counts, which are right or wrong


def parse(text: str) -> float:
    """Return the number in `text`: 32, 12.5, 12,5, 1e6, 1,000, 12 %, 1/8, 2**20. ValueError says what to type."""
    bare = re.sub(r"(?<=\d)(?<!\b0)[,_ '](?=\d{3}(?!\d))", "", text.strip()).replace(",", ".").removesuffix("%").strip()
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
    """Return a number with three significant digits, those before the point with all up to a million."""
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:,.0f}" if 100 <= abs(number) < 1e6 else f"{number:.3g}"


def difference(predicted: float, value: float, unit: str = "") -> str:
    """Return a sentence on how far a prediction is from the value: in points where `unit` is per cent."""
    if math.isclose(predicted, value, rel_tol=EXACT):
        return "Exactly as you predicted."
    gap = abs(predicted - value)
    if unit.startswith("%"):
        amount = f"{show(gap)} point{'s' * (show(gap) != '1')}"
    elif predicted * value <= 0:
        return f"The two are {show(gap)} apart."
    elif (ratio := value / predicted) >= SEVERAL_TIMES:
        return f"It is {_times(ratio)} as much as you predicted."
    elif ratio <= 1 / SEVERAL_TIMES:
        return f"You predicted {_times(1 / ratio)} as much as it is."
    else:
        amount = f"{100 * gap / abs(value):.2g} %"
    whole = float(value).is_integer() and float(predicted).is_integer()
    count = whole and abs(value) < COUNTED and not unit.startswith("%")
    who = "Close enough: you" if gap <= CLOSE * abs(value) and not count else "You"
    return f"{who} predicted {amount} too {'much' if predicted > value else 'little'}."


def _times(ratio: float) -> str:
    return "twice" if f"{ratio:.3g}" == "2" else f"{ratio:.3g} times"
