"""Count the lines of code by room and hold them to budget.toml: `python -m tools.line_budget`, a part of `make check`.

A line is a line of a file, as `wc -l` counts: also a comment, a docstring, an empty one. The exit code is 1 above what
budget.toml allows. `--release VERSION` prints the part of that file that a release writes anew.
"""

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warpcourse.paths import COURSE

ROOMS = ("warplab", "warpcourse", "kernels", "digits")  # packages that are shown room by room
APART = ("tests", "evidence")
ALL = "all but tests and evidence"


def count(course: Path, *suffixes: str) -> Counter[str]:
    """Return the lines of files with these suffixes: of each room, as warplab/simulator, of each package, of all."""
    found: Counter[str] = Counter()
    new = {path.parent.name for path in course.glob("[!.]*/__init__.py")}
    for package in {*ROOMS, "tools", *APART, *new}:
        for path in (course / package).rglob("*"):
            if path.suffix in suffixes and path.is_file():
                names = {package, *(() if package in APART else (ALL,))}
                if package in ROOMS:
                    names.add("/".join(path.relative_to(course).parts[:-1][:2]))
                found.update(dict.fromkeys(names, path.read_bytes().count(b"\n")))
    return found


def table(lines: Counter[str], cuda: Counter[str], release: Mapping[str, Any]) -> str:
    """Return a row for each room, package and all: Python, its difference to the last release, and CUDA C++."""
    before: Mapping[str, int] = release["lines"]
    rows = [("lines of", "Python", f"since {release['version']}", "CUDA C++")]
    for name in sorted(lines.keys() | before.keys(), key=lambda name: (name == ALL, name)):
        indented = "  " * name.count("/") + name
        rows.append((indented, f"{lines[name]:,}", f"{lines[name] - before.get(name, 0):+,}", f"{cuda[name]:,}"))
    return "\n".join(f"{a:30}{b:>9}{c:>14}{d:>11}" for a, b, c, d in rows)


def too_large(lines: Counter[str], budget: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each name that is above what is allowed, with the room in it that has grown most."""
    sentences = []
    for name, most in budget["allowed"].items():
        if lines[name] > most:
            grown = {room: lines[room] - budget["release"]["lines"].get(room, 0) for room in sorted(lines)}
            inside = [room for room in grown if "/" in room and name in (ALL, room.split("/")[0])] or [name]
            room = max(inside, key=lambda room: grown[room])
            sentences.append(
                f"error: {name} has {lines[name]:,} lines of Python, {most:,} are allowed; {room} has grown most "
                f"({grown[room]:+,}). Take lines out, or argue for more in budget.toml."
            )
    return sentences


def main(arguments: list[str]) -> int:
    """Print the table, what is too large, and a line of JSON; return the exit code."""
    lines, cuda = count(COURSE, ".py"), count(COURSE, ".cu", ".cuh")
    date = f"{datetime.now(UTC).date()}"
    if arguments[:1] == ["--release"]:
        print(f'[release]\nversion = "{arguments[1]}"\ndate = "{date}"\n\n[release.lines]')
        print(*(f'"{name}" = {lines[name]}' for name in sorted(lines)), sep="\n")
        return 0
    budget = tomllib.loads((COURSE / "budget.toml").read_text(encoding="utf-8"))
    sentences = too_large(lines, budget)
    print("\n".join([table(lines, cuda, budget["release"]), *sentences]))
    python, also = ({name: n for name, n in sorted(part.items()) if "/" not in name} for part in (lines, cuda))
    print(json.dumps({"budget": "lines", "python": python, "cuda": also, "allowed": budget["allowed"], "date": date}))
    return int(bool(sentences))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
