"""CUDA C++ after the C++ preprocessor, split by whose it is, and the little that its passes must see of its syntax."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MARKER = re.compile(r'# (\d+) "([^"]*)"((?: \d)*)$')
_HIDDEN = re.compile(
    r'R"([^\s()\\]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*', re.S | re.M
)
_WITH_PARENTHESES = re.compile(
    r"(?:__launch_bounds__|__cluster_dims__|__maxnreg__|__attribute__|__align__|alignas|decltype|noexcept)\s*$"
)
_TYPEOF = re.compile(r"\b__typeof(?:__)?\s*\((.+)\)(?=\s*\w+\s*=\s*(?:\1|\(\1\))\s*;)")
_LITERAL = re.compile(r"(?:\breturn|[=,(?:+\-*/<>&|!{;}])\s*(\(\s*[A-Za-z_][\w:]*\s*\))(?=\s*\{)")
_BLOCK = re.compile(r"\s*(?:\{|(?:if|for|while|do|switch)\b)")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


class Region(NamedTuple):
    """Lines in a row that are the program's own ("own"), CUDA's ("cuda") or the C++ library's ("library").

    `text` has the preprocessor's line markers, the first line among them. `path`: of the file of the first line.
    `entered`: whether the region begins with this file, which the region before it includes.
    """

    kind: str
    path: str
    entered: bool
    text: str


def regions(preprocessed: str, cuda_folders: Sequence[str]) -> Iterator[Region]:
    """Yield what a compiler's -E has written, in order; `cuda_folders` hold CUDA's headers."""
    kind, path, entered, lines, known = "library", "", False, list[str](), set[str]()
    for line in preprocessed.split("\n"):
        match = _MARKER.match(line)
        if match is not None:
            flags = match[3].split()
            if "3" not in flags and not match[2].startswith("<"):
                known.add(match[2])  # flag 3 is also that of an own line with a macro of a header
            own = "own" if match[2] in known else "library"
            now = "cuda" if match[2].startswith(tuple(cuda_folders)) else own
            if now != kind or (now == "cuda" and match[2] != path):
                if lines:
                    yield Region(kind, path, entered, "\n".join(lines) + "\n")
                kind, path, entered, lines = now, match[2], "1" in flags, []
            line = f'# {match[1]} "{match[2]}"' + " 3" * (kind != "own")
        lines.append(line)
    yield Region(kind, path, entered, "\n".join(lines))


def masked(text: str) -> str:
    """Return `text` with spaces in place of literals and the preprocessor's lines, each position kept."""
    return _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def blank(text: str) -> str:
    """Return nothing but the line ends and line markers of `text`."""
    return "\n".join(line if _MARKER.match(line) else "" for line in text.split("\n"))


def closing(mask: str, at: int) -> int:
    """Return the position of the bracket that closes the one at `at`; the end of the text if none does."""
    depth = 0
    for match in re.compile(r"[()\[\]{}]").finditer(mask, at):
        depth += 1 if match[0] in _PAIRS else -1
        if depth == 0:
            return match.start()
    return len(mask) - 1


def opening(mask: str, at: int) -> int:
    """Return the position of the bracket that the one at `at` closes; "<" for ">" among template arguments."""
    close, position, depth = mask[at], at, 0
    opens = next((mark for mark, other in _PAIRS.items() if other == close), "<")
    while position > 0:
        mark = mask[position]
        if mark in ")]}" and position != at:
            position = opening(mask, position)
        else:
            depth += (mark == close) - (mark == opens)
            if depth == 0:
                return position
        position -= 1
    return 0


def split(text: str, mark: str = ",") -> list[str]:
    """Return the parts of `text` between commas that no bracket holds."""
    mask, depth, parts, start = masked(text), 0, list[str](), 0
    for position, character in enumerate(mask):
        depth += (character in "([{<") - (character in ")]}>")
        if character == mark and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def first_mark(mask: str, at: int) -> int:
    """Return the position of the first mark of a declarator, behind attributes."""
    while True:
        match = re.compile(r"[(;={\[]").search(mask, at)
        if match is None:
            return len(mask) - 1
        before = mask[max(0, match.start() - 20) : match.start()]
        attribute = mask.startswith("[[", match.start()) or re.search(r"\boperator\s*$", before)
        if match[0] == "=" and re.search(r"\boperator\s*[^\w\s(]*$", before):  # +=
            at = match.end()
        elif attribute or (match[0] == "(" and _WITH_PARENTHESES.search(mask, 0, match.start())):
            at = closing(mask, match.start()) + 1
        else:
            return match.start()


def function_body(mask: str, at: int) -> tuple[int | None, int]:
    """Return where the body of a function begins and ends, whose parameters end at `at`; None for a declaration.

    The body begins with a constructor's initialisers.
    """
    start = None
    for match in re.compile(r"[;{=(]|(?<!:):(?!:)").finditer(mask, at):
        if match.start() < at:
            continue
        if match[0] in ";=" and start is None:
            return None, match.end()
        if match[0] == ":":
            start = match.start()
        elif match[0] in "({":
            at = closing(mask, match.start()) + 1
            # A brace ends the function unless it initialises a member.
            if match[0] == "{" and not (start is not None and re.match(r"\s*[,{]", mask[at:])):
                return match.start() if start is None else start, at
    return None, len(mask)


def without_statement_expressions(text: str) -> str:
    """Return `text` with a lambda, called at once, for each `({ ...; value; })` of GNU's C++, which NVRTC cannot read.

    `__typeof__(x) y = (x)` becomes `auto y = (x)`, as no lambda may stand in decltype. An expression that is left by
    `return`, `break` and the like stays as it is.
    """
    while found := _TYPEOF.search(text):
        text = text[: found.start()] + "auto" + text[found.end() :]
    mask, edits = masked(text), dict[int, str]()
    for match in re.finditer(r"\((?=\s*\{)", mask):
        brace = mask.index("{", match.start())
        end, behind = closing(mask, brace), closing(mask, match.start())
        inside = mask[brace + 1 : end]
        if mask[end + 1 : behind].strip() or re.search(r"\b(?:return|break|continue|goto|case)\b", inside):
            continue
        ends, at = [brace], brace + 1
        while (at := end_of_variable(mask, at)) < end:
            ends.append(at)
            at += 1
        if len(ends) > 1 and not mask[ends[-1] + 1 : end].strip():  # else it initialises something
            last = mask[ends[-2] + 1 : ends[-1]]
            start = ends[-2] + (last.rfind("}") + 1 if _BLOCK.match(last) else 0)
            edits |= {match.start(): "([&]", start: mask[start] + " return", behind: "())"}
    return "".join(edits.get(at, mark) for at, mark in enumerate(text)) if edits else text


def without_compound_literals(text: str) -> str:
    """Return `text` with `T{...}` for each `(T){...}` of GNU's C++, which NVRTC cannot read."""
    mask, edits = masked(text), dict[int, str]()
    for match in _LITERAL.finditer(mask):
        if not re.search(r"\boperator\s*\W{0,3}$", mask[max(0, match.start() - 20) : match.start(1)]):
            edits |= {match.start(1): "", match.end(1) - 1: ""}
    return "".join(edits.get(at, mark) for at, mark in enumerate(text)) if edits else text


def end_of_variable(mask: str, at: int) -> int:
    """Return the position of the semicolon behind `at` that no bracket holds."""
    while at < len(mask) and mask[at] != ";":
        at = closing(mask, at) + 1 if mask[at] in "([{" else at + 1
    return at
