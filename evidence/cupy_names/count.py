"""Count the uses of CuPy's names in public programs, and those that the stand-in has; write README.md.

    python -m evidence.cupy_names.count cupy=DIR cucim=DIR cusignal=DIR rapids_singlecell=DIR \\
        accelerated-computing-hub=DIR [--missing 40] [--output FILE]

DIR is a clone of the repository of that name; of cupy its examples count. A use is a chain of attributes that begins
with a name under which a file imports `cupy` or `cupyx`, such as `cp.linalg.norm`, in Python files and cells of
notebooks. The stand-in has it if it finds every part. Methods of arrays are no such chains and are not counted.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).with_name("README.md")
BEFORE = "At b10b5e3b, before this list was worked through, it was 86.5 % (2026-11-24, the same commits)."
STAND_INS = {"cupy": "warplab.dropin.cupy", "cupyx": "warplab.dropin.cupyx"}
FOLDERS = {"cupy": ("examples",)}  # all others count whole

Uses = Counter[str]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repositories", nargs="+", metavar="NAME=DIR", help="a clone of each repository")
    parser.add_argument("--missing", type=int, default=40, help="how many missing names to print")
    parser.add_argument("--output", type=Path, default=PAGE, help="the page that is written")
    options = parser.parse_args(arguments)
    clones = dict(pair.split("=", 1) for pair in options.repositories)
    rows, uses, users = [], Counter[str](), Counter[str]()
    for name, folder in clones.items():
        found = [used for used in map(uses_of, programs(Path(folder), FOLDERS.get(name, ("",)))) if used]
        for used in found:
            uses += used
            users.update(used.keys())
        rows.append((name, _commit(folder), len(found), sum(map(Counter.total, found))))
    missing = Counter({name: count for name, count in uses.items() if not is_there(name)})
    text = page(rows, uses, users, missing)
    options.output.write_text(text)
    print(text.split("\n## ")[0])
    for name in sorted(missing, key=lambda name: (-users[name], -missing[name], name))[: options.missing]:
        print(f"{name:40} {users[name]:4} files {missing[name]:5} uses")
    return 0


def programs(folder: Path, inside: tuple[str, ...]) -> Iterator[str]:
    """Yield the source of each Python file and the code of each notebook below a folder."""
    for part in inside:
        for path in sorted((folder / part).rglob("*")):
            if path.suffix == ".py" and path.is_file():
                yield path.read_text(errors="replace")
            elif path.suffix == ".ipynb" and path.is_file():
                cells = json.loads(path.read_text()).get("cells", ())
                code = [cell for cell in cells if cell["cell_type"] == "code"]
                yield "\n".join(_without_magics("".join(cell["source"])) for cell in code)


def _without_magics(cell: str) -> str:
    """Return a cell's Python. `%%writefile` holds a program of its own."""
    first, _, rest = cell.partition("\n")
    if first.startswith("%%"):
        cell = rest if first.startswith(("%%writefile", "%%time")) and ".py" in first + ".py" else ""
    try:
        ast.parse(cell)
    except SyntaxError:
        cell = "\n".join("" if line.lstrip().startswith(("%", "!", "?")) else line for line in cell.splitlines())
        try:
            ast.parse(cell)
        except SyntaxError:
            return ""
    return cell


def uses_of(source: str) -> Uses:
    """Return how often a program uses each name of CuPy, as "linalg.norm" or "cupyx.profiler.benchmark"."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old string escapes
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return Counter()
    aliases: dict[str, str] = {}
    uses: Uses = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                package = name.name.split(".")[0]
                if package in STAND_INS:
                    aliases[name.asname or package] = name.name if name.asname else package
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in STAND_INS:
            for name in node.names:
                aliases[name.asname or name.name] = f"{node.module}.{name.name}"
                uses[_short(f"{node.module}.{name.name}")] += 1
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        parts, below = [], node
        while isinstance(below, ast.Attribute):
            parts.append(below.attr)
            below = below.value
        if parts and id(node) not in inner and isinstance(below, ast.Name) and below.id in aliases:
            uses[_short(".".join([aliases[below.id], *reversed(parts)]))] += 1
    return uses


def _short(name: str) -> str:
    return name.removeprefix("cupy.")


def is_there(name: str) -> bool:
    """Return whether the stand-in has all parts of a name."""
    first, *rest = (name if name.split(".")[0] == "cupyx" else f"cupy.{name}").split(".")
    try:
        found = import_module(STAND_INS[first])
    except ImportError:
        return False
    for part in rest:
        if part == "*":
            return True
        try:
            found = getattr(found, part)
        except (AttributeError, NotImplementedError):
            return False
    return True


def page(rows: list[tuple[str, str, int, int]], uses: Uses, users: Counter[str], missing: Uses) -> str:
    total, gone = uses.total(), missing.total()
    share = f"{100 * (1 - gone / total):.1f} %"
    of_cupy = Counter({name: count for name, count in uses.items() if not name.startswith("cupyx")})
    gone_of_cupy = sum(missing[name] for name in of_cupy)
    own = f"{100 * (1 - gone_of_cupy / of_cupy.total()):.1f} %"
    table = [f"| {name} | `{commit}` | {files} | {count:,} |" for name, commit, files, count in rows]
    first = sorted(missing, key=lambda name: (-users[name], -missing[name], name))[:100]
    return "\n".join(
        [
            "# CuPy's names in public programs",
            "",
            "<!-- Written by `python -m evidence.cupy_names.count`. -->",
            "",
            f"On {datetime.date.today()}: {sum(row[2] for row in rows)} public files use {len(uses)} names of CuPy "
            f"{total:,} times. The stand-in has {len(uses) - len(missing)} of the names, which are **{share}** of the "
            f"uses; of those of `cupy` alone, without `cupyx`, {own}. {BEFORE}",
            "",
            "| repository | commit | files | uses |",
            "| --- | --- | --- | --- |",
            *table,
            "",
            "How CuPy's examples end, unmodified: [foreign_scripts](../foreign_scripts/README.md).",
            "",
            "## What is missing",
            "",
            "By files that use it; then by uses.",
            "",
            ", ".join(f"`{name}` {users[name]} ({missing[name]})" for name in first) + ".",
            "",
        ]
    )


def _commit(folder: str) -> str:
    found = subprocess.run(["git", "-C", folder, "log", "-1", "--format=%h of %cs"], capture_output=True, text=True)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
