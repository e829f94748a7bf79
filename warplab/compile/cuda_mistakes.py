"""A mistake that CUDA C++ compiles without a word, as Python's meaning is another: `0 <= i < n`."""

import re

_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_MIDDLE = r"(?:[\w\s.+*/%\[\]-]|\([^()]*\))+?"
_CHAIN = re.compile(rf"([\w.\[\]-]+\s*(?:<=|(?<= )<(?= )){_MIDDLE})(<=?)(?!<)\s*([\w.\[\]]+)")


def chained(code: str) -> str:
    """Return the line with `0 <= i < n`, or the like, and what C++ makes of it; "" without one."""
    found = _CHAIN.search(_NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code))
    if found is None:
        return ""
    first, operator, last = found[1].strip(), found[2], found[3]
    number = code.count("\n", 0, found.start()) + 1
    return (
        f"line {number}: {code.splitlines()[number - 1].strip()}\n"
        f"C++ reads ({first}) {operator} {last}, which compares true or false, 1 or 0, with {last}: "
        "write two comparisons, joined by &&."
    )
