"""Print the tests that a change touches, nearest first, by what imports, names or reads what.

    python -m tests.support.changed_tests                      changed since the last whole run (tests/whole_runs.json)
    python -m tests.support.changed_tests --since main         since the merge base with a commit or branch
    python -m tests.support.changed_tests --seconds 1800       at most so many of processor time, as last recorded

Files are nodes of a graph: a Python file points to the modules that it imports, by name through the facade `warplab`,
and to those that its texts name (`python -m tools.bench` in a test); a notebook to what its cells import; a lab's tests
to its notebooks; any file to what stands beside it that it names, and to a path that it builds (`"docs" / "NAME.md"`);
CUDA C++ to what it includes. What none of these names, as a kernel whose file is found by its number, is taken for a
need of all Python beside it. A lesson runs with its lab's answers. A deleted file counts as one that changed. A change
to what all tests share selects all. What was left out for lack of time is said on stderr.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

from tests.support import run_record, tiers
from warpcourse.paths import COURSE

# A change to one of these selects all tests.
SHARED = re.compile(
    r"(warpcourse/)?pyproject\.toml|requirements.*\.txt|tests/conftest\.py|tests/support/(tiers|run_record)\.py"
)
PACKAGES = ("warplab", "warpcourse", "kernels", "digits", "tools")
LESSONS = "tests/test_notebooks.py"
LESSON_RUNS = f"{LESSONS}::test_a_lesson_runs_and_its_checks_tell_right_from_wrong"
FAR = 99  # the distance of what a shared file touches


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=COURSE, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


class Graph:
    """Which tracked file depends on which."""

    def __init__(self, files: list[str]) -> None:
        self.files = files
        self.python = [file for file in files if file.endswith(".py")]
        self.cuda = [file for file in files if file.endswith((".cu", ".cuh"))]
        self.on_top = [file for file in files if "/" not in file]
        self.by_end: dict[str, list[str]] = defaultdict(list)  # last folder and name -> files
        for file in files:
            self.by_end["/".join(file.split("/")[-2:])].append(file)
        self.modules = {re.sub(r"(/__init__)?\.py$", "", file).replace("/", "."): file for file in self.python}
        tops = "|".join({name.split(".")[0] for name in self.modules if "." in name})
        self.named = re.compile(rf"\b(?:{tops})(?:\.\w+)+")
        self.facade = {"cuda": "warplab.dropin.numba_cuda", "cp": "warplab.dropin.cupy"}
        self.facade |= {name: f"warplab.{module}" for name, module in self._table("warplab", "_NAMES").items()}
        self.facade |= self._table("warpcourse", "NAMES")
        self.users: dict[str, set[str]] = defaultdict(set)  # file -> files that depend on it
        for file in filter(is_there, files):
            for other in {*self._imports(file), *self._data(file)} - {file}:
                self.users[other].add(file)
        for file in files:
            if file.split("/")[0] in PACKAGES and not self.users[file]:
                self.users[file].update(self._around(file))

    def touched(self, changed: list[str]) -> dict[str, int]:
        """Map each file that depends on a changed one to the number of steps between them, 0 for itself."""
        distance = dict.fromkeys(changed, 0)
        queue = list(changed)
        for file in queue:
            for user in self.users[file] - distance.keys():
                distance[user] = distance[file] + 1
                queue.append(user)
        return distance

    def _around(self, file: str) -> set[str]:
        """Return the Python files of the nearest folder around a file that has others than it."""
        for folder in map(str, PurePosixPath(file).parents):
            if beside := {other for other in self.python if str(PurePosixPath(other).parent) == folder} - {file}:
                return beside
        return set()

    def _table(self, package: str, name: str) -> dict[str, str]:
        """Return a literal table of a package: name -> module."""
        for node in ast.parse(text(f"{package}/__init__.py")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return dict(ast.literal_eval(node.value))
        raise LookupError(f"{package} has no table {name}")

    def _module(self, dotted: str) -> Iterator[str]:
        """Yield the file of the longest part of a dotted name that is a module, and of the packages around it."""
        parts = dotted.split(".")
        found = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
        yield from (self.modules[name] for name in found if name in self.modules)

    def _imports(self, file: str) -> Iterator[str]:
        if file.endswith(".ipynb"):
            yield from self._texts("\n".join("".join(cell["source"]) for cell in json.loads(text(file))["cells"]))
        if not file.endswith(".py"):
            return
        tree = ast.parse(text(file))
        reads_texts = not file.endswith("__init__.py")
        # What a docstring names it does not need.
        said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._module(alias.name)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield from self._from(node.module or "", [alias.name for alias in node.names])
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "warplab":
                yield from self._from("warplab", [node.attr])
            elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
                yield from self._any_in(node.values[0].value)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and reads_texts and node not in said:
                yield from self._texts(node.value)

    def _from(self, module: str, names: list[str]) -> Iterator[str]:
        for name in names:
            yield from self._module(self.facade.get(name, module) if module == "warplab" else f"{module}.{name}")
        if module == "warpcourse.bench.lab" and "labs" in names:
            yield from (file for file in self.python if file.endswith("/lab.py"))  # found by looking

    def _any_in(self, start: str) -> Iterator[str]:
        """Yield the modules that an f-string may name that begins with a package and a dot."""
        yield from (file for name, file in self.modules.items() if name.rpartition(".")[0] + "." == start)

    def _texts(self, string: str) -> Iterator[str]:
        for dotted in self.named.findall(string):
            yield from self._module(dotted)
        for names in re.findall(r"from warplab import \(?([\w,\s]+)", string):
            yield from self._from("warplab", re.findall(r"\w+", names))

    def _data(self, file: str) -> Iterator[str]:
        """Yield what stands beside or below a Python file that names it; for tests, a lab's parts and what lies on top.

        Of CUDA C++ what it includes.
        """
        if file.endswith((".cu", ".cuh")):
            names = re.findall(r'(?m)^ *#include ["<](.+?)[">]', text(file))
            yield from (other for other in self.cuda if other.endswith(tuple(f"/{name}" for name in names)))
        if not file.endswith(".py"):
            return
        place, source = str(PurePosixPath(file).parent), text(file)
        yield from (other for other in self._beside(place) if PurePosixPath(other).name in source)
        quoted = set(re.findall(r"""[/"'](\w+\.py)["']""", source))
        if quoted:
            yield from (one for one in self.python if one.startswith(place) and one.rpartition("/")[2] in quoted)
        for path in map("/".join, re.findall(r'"([\w.-]+)"(?= / "([\w.-]+)")', source)):
            yield from self.by_end[path]
            if (top := file.partition("/")[0]) in PACKAGES:
                yield from (other for other in self._other(top) if f"/{path}/" in other)
        if "labs()" in source and (parts := set(re.findall(r"\.(benchmark|launches)\b", source))):
            yield from (other for other in self.python if PurePosixPath(other).stem in parts)
        if place.startswith("tests"):
            yield from (other for other in self.on_top if other in source)
        if place.startswith("tests/"):
            shared = place == "tests/support"  # each module there stands for itself
            around = [other for other in self._other(place) if not (shared and other.endswith(".py"))]
            yield from (other for other in around if not PurePosixPath(other).name.startswith("test_"))
            for folder in PurePosixPath(file).parents:
                yield f"{folder}/conftest.py"
        if match := re.match(r"tests/labs/(\w+)/test_", file):
            if re.search("notebook|solution|[Ee]xercise", source):
                yield from (other for other in self._notebooks() if match[1] in other)
        elif place == "tests" or file.startswith("tools/"):
            yield from (other for other in self.files if other.endswith(".md") and PurePosixPath(other).name in source)

    @cache  # noqa: B019 (one graph in a process)
    def _notebooks(self) -> list[str]:
        return [file for file in self.files if file.endswith(".ipynb")]

    @cache  # noqa: B019
    def _beside(self, place: str) -> list[str]:
        return [file for file in self.files if file.startswith(f"{place}/") and not file.endswith((".py", ".ipynb"))]

    @cache  # noqa: B019
    def _other(self, place: str) -> list[str]:
        return [file for file in self.files if file.startswith(f"{place}/")]


def is_there(file: str) -> bool:
    return (COURSE / file).is_file()


def text(file: str) -> str:
    return (COURSE / file).read_text(encoding="utf-8", errors="replace")


def last_whole_run() -> str:
    """Return the commit of the last whole run that is an ancestor; "" if there is none."""
    runs = json.loads(run_record.WHOLE_RUNS.read_text(encoding="utf-8")) if run_record.WHOLE_RUNS.exists() else []
    known = (run["commit"] for run in reversed(runs))
    return next((one for one in known if _is_ancestor(one)), "")


def _is_ancestor(commit: str) -> bool:
    """Return whether HEAD descends from a commit; False if a shallow clone lacks it."""
    command = ["git", "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(command, cwd=COURSE, capture_output=True).returncode == 0


def changed_since(commit: str) -> list[str]:
    """Return the files that differ from the merge base with a commit, new ones included; all files without commit."""
    if not commit:
        return git("ls-files")
    try:
        base = git("merge-base", commit, "HEAD")[0]
    except subprocess.CalledProcessError:
        print(f"error: HEAD has no ancestor in common with {commit!r}; give a commit or a branch", file=sys.stderr)
        raise SystemExit(2) from None
    differ = git("diff", "--name-only", "--no-renames", base)
    return sorted({*differ, *git("ls-files", "--others", "--exclude-standard")})


def select(changed: list[str], files: list[str]) -> list[str]:
    """Return the ids of the tests that a change of these files touches, nearest first."""
    distance = Graph(files).touched(changed)
    shared = any(SHARED.fullmatch(file) for file in changed)
    tests = [file for file in files if re.fullmatch(r"tests/(?:.*/)?test_\w+\.py", file) and is_there(file)]
    found = {file: distance.get(file, FAR) for file in tests if shared or file in distance}
    if LESSONS in tests and LESSONS not in found:
        place = r"notebooks/(?P<slug>\w+)\.ipynb|tests/labs/(?P<lab>\w+)/answers\.py"
        for file, steps in sorted(distance.items(), key=lambda one: one[1]):
            if match := re.fullmatch(place, file):
                slug = match["slug"] or match["lab"]
                for kind in ("right", "wrong") if is_there(f"notebooks/{slug}.ipynb") else ():
                    found.setdefault(f"{LESSON_RUNS}[{kind}-{slug}]", steps)
    return sorted(found, key=lambda one: (found[one], one))


def fitting(selected: list[str], seconds: float) -> tuple[list[str], list[str]]:
    """Part tests into those whose recorded durations fit into so many seconds, nearest first, and the others.

    A file that is too long for what is left does not shut out shorter ones behind it.
    """
    _, known = tiers.read()
    fit, left, used = [], [], 0.0
    for one in selected:
        took = tiers.cost_of_file(known, one) if "::" not in one else tiers.cost(known, one)
        if fits := used + took <= seconds:
            used += took
        (fit if fits else left).append(one)
    return fit, left


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default="")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args(arguments)
    since = options.since or last_whole_run()
    changed = changed_since(since)
    files = sorted({*changed, *git("ls-files"), *git("ls-files", "--others", "--exclude-standard")})
    selected = select(changed, files)
    fit, left = fitting(selected, options.seconds)
    print(
        f"{len(changed)} files changed since {since[:10] or 'ever'}; {len(selected)} test files touched",
        file=sys.stderr,
    )
    if left:
        print(f"left out, beyond {options.seconds:.0f} s: {' '.join(left)}", file=sys.stderr)
    print("\n".join(fit))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
