"""Which faults the tests find: one random change at a time to the course's own code, then the tests that reach it.

    python -m evidence.mutations --count 40 --seed 1 [--thorough] [--jobs 2] [--output FILE]

Each change (a comparison, an operator, a number, a condition, a result) is drawn from all that the product's Python
offers. First the tests of `make test` run once, in a work tree of the last commit where each drawn expression notes
which test evaluates it. Then each change is made by itself, and the tests that reached it run, cheapest first, until
one fails; with --thorough also the thorough tests of the same files. What survives is either no fault (an equal
program, the width of a line), or one that the tests do not see: judge by hand.
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
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support import changed_tests, tiers
from warpcourse.paths import COURSE

PRODUCT = re.compile(r"(warplab|warpcourse|kernels|digits|tools)/.*\.py")
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARISONS |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv}
MOST = 400  # tests that one change is tried on: a change that most tests reach is found by the first, or by none
_GIT = threading.Lock()
# Notes the test that evaluates change `k`, also in the processes that a test starts.
_NOTE = """
import os
_seen = set()
def note(k):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" (", 1)[0]
    if (k, test) not in _seen:
        _seen.add((k, test))
        try:
            with open({path!r}, "a") as file:
                file.write(f"{{k}}\\t{{test}}\\n")
        except OSError:  # in the sandbox
            pass
"""


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
    """Yield each change that a file offers. None in f-strings, whose parts Python 3.11 places wrongly."""
    source = (COURSE / file).read_bytes()
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    tree = ast.parse(source)
    hidden = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if node not in hidden and (after := _changed(node)) is not None:
            place = node.test if isinstance(node, ast.If) else node
            start = begins[place.lineno - 1] + place.col_offset
            end = begins[place.end_lineno - 1] + place.end_col_offset
            yield Change(file, place.lineno, start, end, source[start:end].decode(), after)


def _changed(node: ast.AST) -> str | None:
    """Return the text that replaces a node (an `if`'s condition), None if it is left alone."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        other = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        return f"({ast.unparse(ast.Compare(node.left, other, node.comparators))})"
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return f"({ast.unparse(ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))})"
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return f"({ast.unparse(ast.BoolOp(other, node.values))})"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value + 1)
    if isinstance(node, ast.If):
        return f"not ({ast.unparse(node.test)})"
    if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        return "return None"
    return None


def _write(tree: Path, change: Change, text: str) -> None:
    source = (tree / change.file).read_bytes()
    (tree / change.file).write_bytes(source[: change.start] + text.encode() + source[change.end :])


def _pytest(tree: Path, *arguments: str, timeout: float | None = None) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree), "WARPLAB_BACKEND": "simulator", "WARPLAB_VERDICTS": "off"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(command, timeout=timeout, cwd=tree, env=environment, capture_output=True, text=True)


def reaching(drawn: list[Change], jobs: int) -> list[list[str]]:
    """Run the tests of `make test` once and return, for each change, the ids of those that evaluate it, cheapest first.

    A change that is evaluated outside of any test, at import, has no list of its own: the tests that its file touches.
    """
    with _work_tree() as tree:
        notes = tree / "notes.txt"
        (tree / "warplab" / "mutation_notes.py").write_text(_NOTE.format(path=str(notes)))
        for number, change in sorted(enumerate(drawn), key=lambda one: -one[1].start):
            note = f'__import__("warplab.mutation_notes", fromlist=["note"]).note({number})'
            result = re.fullmatch(r"return\b(.*)", change.before, re.DOTALL)
            wrapped = f"return ({note} or ({result[1].strip()}))" if result else f"({note} or ({change.before}))"
            _write(tree, change, wrapped)
        ran = _pytest(tree, "-n", str(jobs), "--dist", "worksteal", "-m", "not gpu and not thorough")
        print(ran.stdout.splitlines()[-1], file=sys.stderr, flush=True)
        found: dict[int, set[str]] = defaultdict(set)
        for line in notes.read_text().splitlines():
            number, _, test = line.partition("\t")
            found[int(number)].add(test)
    _, seconds = tiers.read()
    files = [file for file in changed_tests.git("ls-files") if (COURSE / file).is_file()]
    lists = []
    for number, change in enumerate(drawn):
        tests = sorted(found[number] - {""}, key=lambda one: tiers.cost(seconds, one))
        lists.append(tests[:MOST] or changed_tests.fitting(changed_tests.select([change.file], files), 300)[0])
    return lists


def tried(change: Change, tests: list[str], thorough: bool) -> dict[str, object]:
    """Return the change with what became of it: `caught` names the first test that failed, "" if none did."""
    found = {**asdict(change), "tests": len(tests), "caught": "", "how": "survived"}
    if not tests:
        return {**found, "how": "no test reaches it"}
    _, seconds = tiers.read()
    rounds = [(tests, "not gpu and not thorough")]
    if thorough:
        rounds.append((sorted({tiers.parts(one)[0] for one in tests}), "thorough and not gpu"))
    with _work_tree() as tree:
        _write(tree, change, change.after)
        for chosen, marks in rounds:
            most = 300 + 5 * sum(tiers.cost(seconds, one) or tiers.cost_of_file(seconds, one) for one in chosen)
            try:
                ran = _pytest(tree, "-x", "-m", marks, *chosen, timeout=most)
            except subprocess.TimeoutExpired:
                return {**found, "how": "caught", "caught": "it did not end"}
            if ran.returncode not in (0, 5):
                failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
                first = failed[0] if failed else f"exit code {ran.returncode}"
                how = "caught" if marks.startswith("not gpu") else "caught by a thorough test"
                return {**found, "how": how, "caught": first}
    return found


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
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    files = [file for file in changed_tests.git("ls-files") if PRODUCT.fullmatch(file)]
    drawn = random.Random(given.seed).sample([one for file in files for one in changes(file)], given.count)
    lists = reaching(drawn, given.jobs)
    results = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for found in pool.map(tried, drawn, lists, [given.thorough] * given.count):
            results.append(found)
            place = f"{found['file']}:{found['line']}  {found['before']!r} -> {found['after']!r}"
            print(f"{found['how']:9} {place}  {found['caught']}", flush=True)
            if given.output:
                given.output.write_text(json.dumps(results, indent=1) + "\n")
    counts = {how: sum(one["how"] == how for one in results) for how in sorted({str(one["how"]) for one in results})}
    print(json.dumps({"evidence": "mutations", "seed": given.seed, "thorough": given.thorough, **counts}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
