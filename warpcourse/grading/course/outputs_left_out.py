"""Large notebooks without their outputs: the answers of one whose cells printed too much can still be graded."""

import re

MAX_NOTEBOOK = 32 * 2**20  # bytes of a notebook that is graded
MAX_WITH_OUTPUTS = 256 * 2**20  # bytes of one whose outputs are left out first
_MOST_TOKENS = 3_000_000  # some 2 s; runs of texts in outputs count as one
# Strings and brackets; each repetition is possessive, so neither time nor memory grows by going back.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TOKEN = re.compile(_TEXT + rb"|[\[\]{}]", re.DOTALL)
_BRACKET = re.compile(rb'[^\[\]{}"]*+(?:' + _TEXT + rb'[^\[\]{}"]*+)*+([\[\]{}])', re.DOTALL)
_OPENS = b"[{"
_IN_CELL = 3  # brackets around the keys of a cell: the notebook's, those of `cells`, the cell's


def without_outputs(content: bytes) -> bytes:
    """Return a notebook in JSON with each cell's `outputs` empty; `content` as it is where that is not its form."""
    kept: list[bytes] = []
    place, key = 0, b""
    depth = start = 0
    for _ in range(_MOST_TOKENS):
        found = _TOKEN.search(content, place)
        if found is None:
            return b"".join((*kept, content[start:]))
        token, place = found[0], found.end()
        if token[:1] == b'"':
            if depth == _IN_CELL:
                key = token
        elif token in _OPENS:
            depth += 1
            if token == b"[" and depth == _IN_CELL + 1 and key == b'"outputs"':
                kept.append(content[start:place])
                start = place = _end(content, place)
                depth -= 1
                if place < 0:
                    return content
                start -= 1  # its bracket
        else:
            depth -= 1
    return content


def _end(content: bytes, place: int) -> int:
    """Return where the array that is open at `place` has ended; -1 if it does not, or in too many steps."""
    depth = 1
    for _ in range(_MOST_TOKENS):
        found = _BRACKET.match(content, place)
        if found is None:
            return -1
        place = found.end()
        depth += 1 if found[1] in _OPENS else -1
        if not depth:
            return place
    return -1
