"""Mistakes that CUDA C++ compiles without a word: `0 <= i < n`, whose meaning in Python is another; unset sums."""

import itertools
import re

_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_MIDDLE = r"(?:[\w\s.+*/%\[\]-]|\([^()]*\))+?"
_CHAIN = re.compile(rf"([\w.\[\]-]+\s*(?:<=|(?<= )<(?= )){_MIDDLE})(<=?)(?!<)\s*([\w.\[\]]+)")
_DECLARED = re.compile(r"(?<=[;{})])\s*(?:(?:unsigned|long|short|int|float|double|half)\s+)+(?=[\w\s,=.]*;)([^;]*);")
_TYPE = r"\b(?:struct|class|union|namespace)\b"
_HARMLESS = r"__\w+|f?(?:max|min|ma)f?|if|for|while|return|"  # may read an argument, and do not set it

_VALUE = r"(?:[^;,()]|\((?:[^()]|\([^()]*\))*\))*"  # up to the comma of another assignment


def never_set(code: str) -> str:
    """Return, for a local number that is added to and never set: the line that declares it, and why; "" for others."""
    bare = _bare(code)
    for found in _DECLARED.finditer(bare):
        around = _block(bare, found.start(1))
        scope = bare[found.end() : found.end() + _length(bare[found.end() :])]
        for name in (part.split()[-1] for part in found[1].split(",") if "=" not in part):
            if around and not re.search(_TYPE, around) and _only_changed(rf"\b{name}\b", scope):
                line = code.count("\n", 0, found.start(1)) + 1
                return f"line {line}: {code.splitlines()[line - 1].strip()}\n{name} begins as anything, not as 0."
    return ""


def _block(code: str, at: int) -> str:
    """Return what stands before the brace or parenthesis that is open at a place: "" where none is."""
    depth = 0
    while at and depth >= 0:
        at -= 1
        depth += (code[at] in ")}") - (code[at] in "({")
    return re.split(r"[;{}]", code[:at])[-1].strip() if depth < 0 else ""


def _length(code: str) -> int:
    """Return where the block ends in which code begins."""
    ends = itertools.accumulate((letter == "{") - (letter == "}") for letter in code)
    return next((at for at, depth in enumerate(ends) if depth < 0), len(code))


def _only_changed(word: str, scope: str) -> bool:
    """Return whether a number is changed in its scope, from what it is, and neither set nor handed on to be set."""
    changes = re.findall(rf"{word}\s*((?:[-+*|^]|<<|>>)?=)(?!=)\s*({_VALUE})", scope)
    changed = changes or re.search(rf"{word}\s*(?:\+\+|--)|(?:\+\+|--)\s*{word}", scope)
    kept = all(
        not re.match(rf"0|{word}\s*$|.*[?]", value, re.DOTALL) and (operator != "=" or re.search(word, value))
        for operator, value in changes
    )
    handed = re.search(rf"&\s*(?:\w+\s*=\s*)?{word}|\basm\b|>>\s*{word}", scope) or any(
        not re.fullmatch(_HARMLESS, re.split(r"\W", _block(scope, found.start()))[-1])
        for found in re.finditer(rf"(?<=[(,])\s*{word}\s*[,)]", scope)
    )
    return bool(changed) and kept and not handed


def _bare(code: str) -> str:
    """Return the code with blanks in the place of comments and texts."""
    return _NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)


def chained(code: str) -> str:
    """Return the line with `0 <= i < n`, or the like, and what C++ makes of it; "" without one."""
    found = _CHAIN.search(_bare(code))
    if found is None:
        return ""
    first, operator, last = found[1].strip(), found[2], found[3]
    number = code.count("\n", 0, found.start()) + 1
    return (
        f"line {number}: {code.splitlines()[number - 1].strip()}\n"
        f"C++ reads ({first}) {operator} {last}, which compares true or false, 1 or 0, with {last}: "
        "write two comparisons, joined by &&."
    )
