"""Which class, and which part, each file of a folder or an archive belongs to: one folder per class.

    CLASS/any/depth/image.png
    train/CLASS/image.png  validation/CLASS/image.png  test/CLASS/image.png

In the second form the parts are taken as they are. Folders around all of this do not matter.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Path = tuple[str, ...]  # a relative path, name by name

_PARTS = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "testing": "test",
}
LONGEST_CLASS = 100  # characters of a class's name
_LONGEST_SHOWN = 300  # characters of a path
_NOT_MEANT = ("__MACOSX", "Thumbs.db", "desktop.ini")  # left by programs in any folder that people look at


@dataclass(frozen=True)
class Placed:
    """A file that may hold an image. `where`: what its source reads it by. `part`: "" if it is to be drawn."""

    where: object
    name: str
    label: str
    part: str


def place(files: Iterable[tuple[object, Path]]) -> tuple[list[Placed], list[dict[str, str]]]:
    """Return the files with their classes and parts, and those that lie in no class's folder, with the reason."""
    meant = [(where, path) for where, path in files if not is_hidden(path)]
    paths = [path for _, path in meant]
    around = _around(paths)
    by_part = _has_parts([path[around:] for path in paths if len(path) > around + 1])
    placed, skipped = [], []
    for where, path in meant:
        inner = path[around:] if len(path) > around else path[-1:]
        depth = 3 if by_part else 2
        reason = ""
        if len(inner) < depth:
            reason = "In no class's folder. Put it into one, or leave it out."
        elif len(inner[depth - 2]) > LONGEST_CLASS:
            reason = f"The class's name is longer than {LONGEST_CLASS} characters."
        if reason:
            skipped.append({"file": printable("/".join(inner))[:_LONGEST_SHOWN], "reason": reason})
            continue
        part = _PARTS[inner[0].lower()] if by_part else ""
        placed.append(Placed(where, printable("/".join(inner))[:_LONGEST_SHOWN], printable(inner[depth - 2]), part))
    return placed, skipped


def class_order(name: str) -> list[tuple[int, int, str]]:
    """Return what to sort class names by: numbers in them count as numbers, so that 10 comes after 9."""
    return [
        (0, int(piece), "") if piece.isdecimal() and piece.isascii() else (1, 0, piece.lower())
        for piece in re.split(r"([0-9]+)", name)
        if piece
    ] + [(-1, 0, name)]


def is_hidden(path: Path) -> bool:
    """Return whether a file or folder is one that nobody means to show, such as .git/config or Thumbs.db."""
    return any(name.startswith(".") or name in _NOT_MEANT for name in path)


def printable(name: str) -> str:
    """Return `name` with a replacement character for each that is not to be shown, such as bytes that are no UTF-8."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


def _around(paths: Sequence[Path]) -> int:
    """Return how many folders lie around the classes' folders."""
    inside = [path for path in paths if len(path) > 1]
    around = 0
    while inside and len({path[around] for path in inside}) == 1 and any(len(path) > around + 2 for path in inside):
        around += 1
        inside = [path for path in inside if len(path) > around + 1]
    return around


def _has_parts(paths: Sequence[Path]) -> bool:
    named = {path[0].lower() for path in paths}
    parts = {_PARTS.get(name, "") for name in named}
    return len(named) > 1 and "" not in parts and len(parts) == len(named) and "train" in parts
