"""Run others' programs through the front ends of the simulator, and write results.json and README.md.

    python -m evidence.front_ends.run triton=DIR triton24=DIR puzzles=DIR mlir=DIR
    python -m evidence.front_ends.run --only GROUP NAME=DIR    run a group (again for more), keep the others' results
    python -m evidence.front_ends.run ... --rest            go on with groups whose run was broken off
    python -m evidence.front_ends.run --page                write the page from the last results

DIR are clones: of triton-lang/triton or a fork with its tutorials and tests, under the name triton24 an older one, of a
solved Triton-Puzzles-Lite, of NVIDIA/numba-cuda-mlir. The packages (triton, torch for the CPU, numba-cuda-mlir,
nvidia-cutlass-dsl) are those of this environment. What is missing is left out and named. Each program runs in a process
of its own under a time limit.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evidence.front_ends import page
from warpcourse.paths import COURSE

RESULTS, PAGE = (Path(__file__).with_name(name) for name in ("results.json", "README.md"))
SECONDS = 1000  # of processor time for one program, so that a busy machine changes nothing
WAIT = 10 * SECONDS
GROUPS = {  # group → its module, the packages that it needs, and the clone
    "tutorials": ("on_triton", ("triton", "torch"), "triton"),
    "tutorials-2024": ("on_triton", ("triton", "torch"), "triton24"),
    "triton-tests": ("on_triton", ("triton", "torch"), "triton"),
    "puzzles": ("on_triton", ("triton", "torch"), "puzzles"),
    "labs": ("on_mlir", ("numba_cuda_mlir",), None),
    "mlir-tests": ("on_mlir", ("numba_cuda_mlir",), "mlir"),
    "cute": ("on_cute", ("cutlass",), None),
}
DISTRIBUTIONS = ("triton", "torch", "numba-cuda-mlir", "nvidia-cutlass-dsl")


@dataclass(frozen=True)
class Program:
    """One row of the page. `run`: the module's function and its arguments."""

    group: str
    name: str
    run: tuple[str, ...]


def programs(group: str, clone: Path | None) -> Iterator[Program]:
    """Yield the programs of a group, as its module lists them."""
    module, _, _ = GROUPS[group]
    listed = importlib.import_module(f"evidence.front_ends.{module}").PROGRAMS[group]
    for name, function, *arguments in listed(clone):
        yield Program(group, name, (module, function, *map(str, arguments)))


def run(program: Program) -> dict:
    """Run a program in a process of its own; return its row: outcome, launches, kernels and a note."""
    with tempfile.TemporaryDirectory(prefix="front-ends-") as folder:
        written = Path(folder, "result.json")
        command = [sys.executable, "-m", "evidence.front_ends.child", str(written), *program.run]
        try:
            done = subprocess.run(
                command, cwd=COURSE, timeout=WAIT, capture_output=True, text=True, errors="replace", preexec_fn=_limit
            )
        except subprocess.TimeoutExpired:
            return {"outcome": "too long", "note": f"waited for {WAIT} s"}
        if done.returncode == -signal.SIGXCPU:
            return {"outcome": "too long", "note": f"more than {SECONDS} s of processor time"}
        if not written.exists():
            return {"outcome": "failed", "note": f"exit code {done.returncode}: {done.stderr.strip()[-200:]}"}
        return json.loads(written.read_text())


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))


def main(arguments: list[str]) -> int:
    """Run what is asked for and there; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="GROUP")
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("clones", nargs="*", metavar="NAME=DIR")
    chosen = parser.parse_args(arguments)
    clones = dict(pair.split("=", 1) for pair in chosen.clones)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"groups": {}, "versions": {}}
    for group in () if chosen.page else chosen.only or GROUPS:
        _, packages, clone = GROUPS[group]
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        if missing or (clone and clone not in clones):
            print(f"left out: {group}; needs {', '.join(missing) or f'{clone}=DIR, a clone'}")
            continue
        rows: dict[str, dict] = results["groups"].get(group, {}).get("rows", {}) if chosen.rest else {}
        results["groups"][group] = {"date": str(datetime.date.today()), "rows": rows}
        results["versions"] |= _versions()
        if clone:
            head = ["git", "-C", clones[clone], "log", "-1", "--format=%h of %cs"]
            found = subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()
            results["groups"][group]["commit"] = found
        for program in programs(group, Path(clones[clone]).resolve() if clone else None):
            if program.name in rows:
                continue
            rows[program.name] = run(program)
            print(f"{group}: {program.name}: {rows[program.name]['outcome']}", flush=True)
            RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page.page(results), encoding="utf-8")
    print(json.dumps(page.totals(results)))
    return 0


def _versions() -> dict[str, str]:
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
