"""Delete a barrier in each of 60 kernels of public programs that pass, and write barriers.md: is it noticed?

    python -m evidence.cuda_programs.barriers HeCBench=DIR rodinia=DIR polybench=DIR shoc=DIR kittens=DIR pmpp=DIR
        [--only PROGRAM/KERNEL]... [--draw]
    python -m evidence.cuda_programs.barriers --page

Which kernels is settled before any barrier is deleted (`chosen`, with --draw): all programs of results.json and
suites.json that pass their own check come in a random order; one that passes again in `SECONDS` of processor time gives
the kernels that it launched and in whose own body `__syncthreads();` stands, and of each a barrier is drawn.
barriers.json keeps places and verdicts; without --draw these are tried anew: the exit code is 1 if one is no longer
found. A barrier is deleted in the clone, the program runs under all checks, and the file is put back.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.cuda_programs import data, run, suites
from evidence.cuda_programs.read import READ_BARRIERS

RECORD = Path(__file__).with_name("barriers.json")
PAGE = Path(__file__).with_name("barriers.md")
KERNELS, SECONDS, SEED = 60, 20, 35
SOURCES = {"HeCBench": "zjin-lcf/HeCBench", **suites.SOURCES}
FOUND, WRONG, UNNOTICED = "found", "wrong result", "not noticed"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_KERNEL = re.compile(r"\b__global__\b[^;{}]*?\b(?!__)(\w+)\s*\((?=[^;{}]*\)\s*\{)")
_BARRIER = re.compile(r"\b__syncthreads\s*\(\s*\)\s*;")


@dataclass(frozen=True)
class Barrier:
    """One barrier: its place in a file's text, and how many its kernel has. `line`: from 1."""

    program: str
    kernel: str
    file: Path
    start: int
    end: int
    line: int
    of: int


def kernels(text: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the name of each kernel in a source, and where the barriers in its body begin and end."""
    plain = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for head in _KERNEL.finditer(plain):
        at = start = plain.index("{", head.end())
        depth = 0
        while at < len(plain):
            depth += (plain[at] == "{") - (plain[at] == "}")
            at += 1
            if not depth:
                break
        yield head[1], [found.span() for found in _BARRIER.finditer(plain, start, at)]


def barriers(program: str, folder: Path, files: list[str], launched: set[str]) -> Iterator[Barrier]:
    """Yield of each kernel that a program launched one barrier, drawn by its name."""
    headers = sorted(file for file in folder.rglob("*") if file.suffix in (".h", ".cuh", ".hpp"))
    seen: set[str] = set()
    for file in dict.fromkeys([*(folder / name for name in files), *headers]):
        text = file.read_bytes().decode("latin-1")
        for kernel, places in kernels(text):
            if places and kernel in launched - seen:
                seen.add(kernel)
                start, end = random.Random(f"{SEED} {program} {kernel}").choice(places)
                yield Barrier(program, kernel, file, start, end, text.count("\n", 0, start) + 1, len(places))


def program_of(key: str, clones: dict[str, Path]) -> tuple[tuple, Path, tuple[re.Pattern, re.Pattern]]:
    """Return what `run.ran` takes of a recorded program, its clone, and how it says that it is right or wrong."""
    suite, name = key.split("/", 1)
    if suite == "HeCBench":
        data.write(name, run.command(clones[suite], name)[0])
        return run.command(clones[suite], name), clones[suite], run.SAYS
    (program,) = (one for one in suites.PROGRAMS if (one.suite, one.name) == (suite, name))
    return suites.command(program, clones[suite]), clones[suite], suites.SAYS


def chosen(clones: dict[str, Path]) -> list[Barrier]:
    """Return the barriers to delete, at most one of a kernel."""
    recorded = {f"HeCBench/{k}": v for k, v in json.loads(run.RECORD.read_text())["programs"].items()}
    recorded |= json.loads(suites.RECORD.read_text())["programs"]
    passing = sorted(key for key, one in recorded.items() if one["verdict"] == "passes")
    found: list[Barrier] = []
    for key in random.Random(SEED).sample(passing, len(passing)):
        command, clone, says = program_of(key, clones)
        texts = (file.read_text(errors="replace") for file in command[0].rglob("*.[ch]*"))
        if not any(_BARRIER.search(text) for text in texts):
            continue
        code, printed, report = run.ran(*command, clone, SECONDS)
        if run._verdict(code, printed, report, says)["verdict"] == "passes" and report:
            launched = {kernel["kernel"].partition("<")[0].rpartition("::")[2] for kernel in report["kernels"]}
            found += barriers(key, command[0], command[1], launched)
            print(f"{key}: {len(found)} kernels", flush=True)
        if len(found) >= KERNELS:
            break
    return found[:KERNELS]


def without(barrier: Barrier, go: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what `go` does while the barrier is not in its file; its line stays."""
    before = barrier.file.read_bytes()
    text = before.decode("latin-1")
    deleted = re.sub(r"[^\n]", " ", text[barrier.start : barrier.end - 1]) + ";"
    try:
        barrier.file.write_bytes((text[: barrier.start] + deleted + text[barrier.end :]).encode("latin-1"))
        return go()
    finally:
        barrier.file.write_bytes(before)


def tried(barrier: Barrier, clones: dict[str, Path]) -> dict[str, Any]:
    """Return what comes of a program without the barrier."""
    command, clone, says = program_of(barrier.program, clones)
    found = without(barrier, lambda: run.execute(*command, clone, 3 * SECONDS, says))
    verdict = {"defect": FOUND, "fails": WRONG, "passes": UNNOTICED}.get(found["verdict"], found["verdict"])
    return {
        "date": f"{datetime.date.today()}",
        "file": str(barrier.file.relative_to(clone)),
        "line": barrier.line,
        "of": barrier.of,
        "verdict": verdict,
        "why": found["why"].partition(", and nothing orders")[0],
    }


def recorded(key: str, one: dict[str, Any], clones: dict[str, Path]) -> Barrier:
    """Return a barrier of the record."""
    program, _, kernel = key.rpartition("/")
    file = clones[key.partition("/")[0]] / one["file"]
    text = file.read_bytes().decode("latin-1")
    places = [place for name, each in kernels(text) if name == kernel for place in each]
    ((start, end),) = (place for place in places if text.count("\n", 0, place[0]) + 1 == one["line"])
    return Barrier(program, kernel, file, start, end, one["line"], one["of"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clones", nargs="*", metavar="SUITE=DIR", help=f"clones of {', '.join(SOURCES.values())}")
    parser.add_argument("--only", action="append", help="PROGRAM/KERNEL, of those of the record")
    parser.add_argument("--draw", action="store_true", help="draw the barriers, and delete those that the record lacks")
    parser.add_argument("--page", action="store_true", help="write the page from the record")
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {"kernels": {}}
    if RECORD.exists():
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    known, lost = record["kernels"], []
    clones = {name: Path(folder) for name, folder in (clone.split("=", 1) for clone in options.clones)}
    if options.draw:
        drawn = {f"{barrier.program}/{barrier.kernel}": barrier for barrier in chosen(clones)}
        drawn = {key: barrier for key, barrier in drawn.items() if key not in known}
    else:
        there = [key for key in known if key.partition("/")[0] in clones]
        asked = [] if options.page else options.only or there
        if {*asked} - {*there} or not (asked or options.page):
            parser.error("give clones, and kernels of barriers.json: HeCBench=DIR --only HeCBench/bincount/bincount")
        drawn = {key: recorded(key, known[key], clones) for key in asked}
    for key, barrier in drawn.items():
        now = tried(barrier, clones)
        lost += [key] * (known.get(key, now)["verdict"] == FOUND != now["verdict"])
        known[key] = now
        print(f"{key}: {now['verdict']} {now['why']}", flush=True)
        record["kernels"] = dict(sorted(known.items()))
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")
    if lost:
        print(f"no longer found: {', '.join(lost)}")
    print(json.dumps({"kernels": len(known), **counts(record), "device": "simulator"}))
    return int(bool(lost))


def counts(record: dict[str, Any]) -> dict[str, int]:
    """Return how many kernels came to each verdict."""
    verdicts = [one["verdict"] for one in record["kernels"].values()]
    return {verdict: verdicts.count(verdict) for verdict in dict.fromkeys([FOUND, WRONG, UNNOTICED, *verdicts])}


def page(record: dict[str, Any]) -> str:
    """Return the page for a record."""
    kernels, number = record["kernels"], counts(record)
    dates = " and ".join(sorted({one["date"] for one in kernels.values()}))
    commits = {
        "HeCBench": json.loads(run.RECORD.read_text())["commit"],
        **json.loads(suites.RECORD.read_text())["commits"],
    }
    used = [suite for suite in SOURCES if any(key.startswith(f"{suite}/") for key in kernels)]
    sources = ", ".join(f"[{one}](https://github.com/{SOURCES[one]}) at `{commits[one][:10]}`" for one in used)
    missed = [key for key, one in kernels.items() if one["verdict"] == UNNOTICED and key not in READ_BARRIERS]
    rows = [
        f"| {key} | {one['file'].rpartition('/')[2]}:{one['line']} | {one['of']} | {one['verdict']} | "
        f"{READ_BARRIERS.get(key) or one['why']} |"
        for key, one in kernels.items()
    ]
    parts = [
        "# Kernels of public programs with a barrier less",
        "<!-- Written by `python -m evidence.cuda_programs.barriers`. -->",
        f"On {dates}, a `__syncthreads()` was deleted in each of {len(kernels)} kernels of {sources}, and the program "
        "was run by `python -m warplab run`, with all checks of `--strict=cuda`. With all barriers it passes "
        f"([README.md](README.md), [suites.md](suites.md)). In {number[FOUND]} the simulator found a defect; in "
        f"{number[WRONG]} it found none, and the program's own check a wrong result; in {number[UNNOTICED]} nobody "
        f"noticed. Of these, {number[UNNOTICED] - len(missed)} were read in the code: the barrier orders nothing there "
        "that matters, as the table says. HeCBench/fpc/fpc2_kernel was missed at first: many threads add atomically, "
        "and the last of them reads the sum; the checks knew of the last alone. No GPU took part.",
        "Kernels and barriers were drawn before any was deleted. All programs that pass came in a random order; one "
        f"that passed again in {SECONDS} s of processor time gave the kernels that it launched and in whose own body a "
        f"`__syncthreads();` stands, until there were {KERNELS}, and of each one barrier was drawn. Programs without "
        "such kernels took no part, nor did barriers in functions that kernels call.",
        "| kernel | barrier | of | without it | what is said, or why nothing is |\n| --- | --- | --- | --- | --- |\n"
        + "\n".join(rows),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
