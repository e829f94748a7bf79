"""Which faults the tests find: one random change at a time to the course's own code, then the tests that it touches.

    python -m evidence.mutations --count 40 --seed 1 [--thorough] [--seconds 900] [--jobs 2] [--output FILE]

Each change (a comparison, an operator, a number, a condition, a result) is drawn from all that the product's Python
offers, and made in a work tree of the last commit. The tests that depend on the changed file run there, nearest first,
until one fails: those of `make test`, or with --thorough all. `--seconds`: the most processor time of one change, as
tests took when last recorded. What survives is either no fault (an equal program), or one that the tests do not see:
judge by hand.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from tests.support import changed_tests
from warpcourse.paths import COURSE

PRODUCT = re.compile(r"(warplab|warpcourse|kernels|digits|tools)/.*\.py")
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARISONS |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
_GIT = threading.Lock()
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv}


@dataclass(frozen=True)
class Change:
    """One change of `file`: the bytes from `start` to `end`, in `line`, become `after`."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str


def changes(file: str) -> Iterator[Change]:
    """Yield each change that a file offers."""
    source = (COURSE / file).read_bytes()
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        if (after := _changed(node)) is not None:
            place = node.test if isinstance(node, ast.If) else node
            start = begins[place.lineno - 1] + place.col_offset
            end = begins[place.end_lineno - 1] + place.end_col_offset
            yield Change(file, place.lineno, start, end, source[start:end].decode(), after)


def _changed(node: ast.AST) -> str | None:
    """Return the text that replaces a node (an `if`'s condition), None if it is left alone."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        other = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        return f"({ast.unparse(ast.Compare(node.left, other, node.comparators))})"
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not isinstance(node.left, ast.JoinedStr):
        return f"({ast.unparse(ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))})"
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return f"({ast.unparse(ast.BoolOp(other, node.values))})"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value + 1)
    if isinstance(node, ast.If):
        return f"not ({ast.unparse(node.test)})"
    if isinstance(node, ast.Return) and node.value is not None:
        return "return None"
    return None


def tried(change: Change, thorough: bool, seconds: float) -> dict[str, object]:
    """Return the change with what became of it: `caught` names the first test that failed, "" if none did."""
    files = [file for file in changed_tests.git("ls-files") if (COURSE / file).is_file()]
    touched = changed_tests.select([change.file], files)
    fit, left = changed_tests.fitting(touched, seconds)
    found = {**asdict(change), "tests": len(fit), "left_out": len(left), "caught": "", "how": "survived"}
    if not fit:
        return {**found, "how": "no test depends on it"}
    with _work_tree() as tree:
        source = (tree / change.file).read_bytes()
        (tree / change.file).write_bytes(source[: change.start] + change.after.encode() + source[change.end :])
        marks = "not gpu" if thorough else "not gpu and not thorough"
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks, *fit]
        environment = {**os.environ, "PYTHONPATH": str(tree), "WARPLAB_BACKEND": "simulator", "WARPLAB_VERDICTS": "off"}
        options = {"cwd": tree, "env": environment, "capture_output": True, "text": True}
        try:
            ran = subprocess.run(command, timeout=20 * seconds, **options)
        except subprocess.TimeoutExpired:
            return {**found, "how": "caught", "caught": "it did not end"}
    if ran.returncode in (0, 5):
        return found
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    return {**found, "how": "caught", "caught": failed[0] if failed else f"exit code {ran.returncode}"}


@contextlib.contextmanager
def _work_tree() -> Iterator[Path]:
    """Make a work tree of the last commit, with this checkout's packages."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        tree = Path(name) / "tree"
        with _GIT:
            changed_tests.git("worktree", "add", "--detach", "--quiet", str(tree), "HEAD")
        try:
            (tree / ".venv").symlink_to(COURSE / ".venv")
            yield tree
        finally:
            with _GIT:
                changed_tests.git("worktree", "remove", "--force", str(tree))


def main() -> int:
    """Try changes and print each, then a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    files = [file for file in changed_tests.git("ls-files") if PRODUCT.fullmatch(file)]
    drawn = random.Random(given.seed).sample([one for file in files for one in changes(file)], given.count)
    results = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for found in pool.map(partial(tried, thorough=given.thorough, seconds=given.seconds), drawn):
            results.append(found)
            print(
                f"{found['how']:9} {found['file']}:{found['line']}  {found['before']!r} -> {found['after']!r}", end="  "
            )
            print(found["caught"], flush=True)
            if given.output:
                given.output.write_text(json.dumps(results, indent=1) + "\n")
    counts = {how: sum(one["how"] == how for one in results) for how in sorted({str(one["how"]) for one in results})}
    print(json.dumps({"evidence": "mutations", "seed": given.seed, "thorough": given.thorough, **counts}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
