"""Run programs that others wrote under `warplab run` and `pytest --warplab`, and write README.md from what came out.

    python -m evidence.foreign_scripts.run accelerated-computing-hub=DIR numba-cuda=DIR stumpy=DIR cupy=DIR
    python -m evidence.foreign_scripts.run ... --rest                        go on with a run that was broken off
    python -m evidence.foreign_scripts.run ... --only NAME [--only NAME]     keep what is recorded of the others
    python -m evidence.foreign_scripts.run numba-cuda=DIR --times            measure three scripts
    python -m evidence.foreign_scripts.run --page                            write the page from the record

DIR is a clone. stumpy's tests need pandas (before 3) and polars, notebooks jupyter-dark-detect: --path DIR adds a
folder with them. The record, results.json, has the commit of each clone and the verdict on each program: "ran", its own
checks pass and no defect was found; "found", a kernel has a defect; "refused", the stand-ins or the simulator do not
have what it asks for; "too long", not done in its processor time; "failed", anything else.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from evidence.foreign_scripts.programs import KNOWN, PROGRAMS, TIMED, Program
from evidence.machine import machine
from warpcourse.paths import COURSE
from warplab.text.tables import markdown

RECORD = Path(__file__).with_name("results.json")
PAGE = Path(__file__).with_name("README.md")
SECONDS = 200  # of processor time of a process, so that a busy machine changes nothing
WAIT = 3600
VERDICTS = ("ran", "found", "refused", "too long", "failed")
# What an error says that means: there is no such thing here.
_REFUSED = re.compile(
    r"ArgumentError|no stand-in|is not on the simulator|cannot import name|stand-in for \w+ has no|the simulator"
    r"|No module named"
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clones", nargs="*", metavar="NAME=DIR")
    parser.add_argument("--rest", action="store_true", help="run programs that are not in the record")
    parser.add_argument("--only", action="append", metavar="NAME", help="run programs with this in their name")
    parser.add_argument("--path", default="", help="a folder with packages that the programs need")
    parser.add_argument("--times", action="store_true", help="measure against Numba's own simulator")
    parser.add_argument("--page", action="store_true", help="write the page from the record")
    chosen = parser.parse_args(arguments)
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"sources": {}, "programs": {}}
    clones = {name: Path(folder).absolute() for name, _, folder in (c.partition("=") for c in chosen.clones)}
    missing = sorted({p.source.split("/")[1] for p in PROGRAMS} - clones.keys())
    if missing and not (chosen.page or chosen.only or chosen.times):
        parser.error(f"give a clone of each repository: {' '.join(f'{name}=DIR' for name in missing)} is missing")
    today = f"{datetime.datetime.now(datetime.UTC).date()}"
    if not (chosen.page or chosen.times or chosen.only or chosen.rest):
        record["programs"] = {}
    for program in () if chosen.page or chosen.times else PROGRAMS:
        clone = clones.get(program.source.split("/")[1])
        if clone is None or (chosen.rest and program.key in record["programs"]):
            continue
        if not chosen.only or any(name in program.name for name in chosen.only):
            record["sources"][program.source] = _commit(clone) or record["sources"].get(program.source)
            found = _run(program, clone, chosen.path)
            record["programs"][program.key] = {**found, "date": today}
            print(f"{program.name:28}{found['verdict']:9}{found['said'][:90]}", flush=True)
            RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if chosen.times:
        for name, script in _timed_scripts(clones["numba-cuda"]).items():
            if not chosen.only or any(part in name for part in chosen.only):
                record.setdefault("times", {})[name] = {"date": today, "machine": machine(), **_timed(name, script)}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")
    print(json.dumps(totals(record)))
    return 0


def _commit(clone: Path) -> str | None:
    ran = subprocess.run(["git", "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, text=True)
    inside = (clone / ".git").exists()
    return ran.stdout.strip() if inside and not ran.returncode else None


def _environment(path: str, **more: str) -> dict[str, str]:
    known = {n: v for n, v in os.environ.items() if not n.startswith(("WARPLAB", "NUMBA", "PYTEST"))}
    folders = os.pathsep.join(filter(None, (str(COURSE), path and str(Path(path).absolute()))))
    return {**known, "PYTHONPATH": folders, "MPLBACKEND": "Agg", **more}


def _run(program: Program, clone: Path, path: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="foreign-") as name:
        folder = Path(name)
        script, report, known = program.script(clone, folder), folder / "report.json", folder / "known.txt"
        known.write_text(KNOWN, encoding="utf-8")
        if program.tests:
            options = [
                "--warplab",
                f"--warplab-json={report}",
                f"--warplab-suppress={known}",
                "--warplab-max-seconds=0",
            ]
            command = ["-m", "pytest", "-p", "warplab.pytest_plugin", "-p", "no:cacheprovider", *options, "-q", "-x"]
            command.append(str(script))
            where = clone
        else:
            options = [f"--json={report}", f"--suppress={known}", "--max-seconds=0"]
            command, where = ["-m", "warplab", "run", *options, str(script), *program.arguments], script.parent
        more = {"PYTHONPATH": os.pathsep.join((_environment(path)["PYTHONPATH"], str(where)))}
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            ran = subprocess.run(
                [sys.executable, *command],
                cwd=where,
                env=_environment(path, **more),
                capture_output=True,
                text=True,
                timeout=WAIT,
                preexec_fn=_limit,
            )
        except subprocess.TimeoutExpired:
            return {"verdict": "failed", "said": f"waited for {WAIT} s", "kernels": [], "launches": 0}
        if ran.returncode == -signal.SIGXCPU:
            said = f"not done after {SECONDS} s of processor time"
            return {"verdict": "too long", "said": said, "kernels": [], "launches": 0, "processor_seconds": SECONDS}
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {"kernels": [], "defects": []}
    return {
        **_verdict(program, ran, told),
        "exit_code": ran.returncode,
        "kernels": [kernel["kernel"] for kernel in told["kernels"]],
        "launches": sum(kernel["launches"] for kernel in told["kernels"]),
        "processor_seconds": round(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime, 1),
    }


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))


def _verdict(program: Program, ran: subprocess.CompletedProcess, told: dict[str, Any]) -> dict[str, Any]:
    refused = [d["what"] for d in told["defects"] if d["refused"] or d["source"] == "breakpoint()"]
    defects = [
        {
            "error": d["error"],
            "kernel": d["kernel"],
            "place": f"{Path(d['path']).name}:{d['line']}",
            "source": d["source"],
        }
        for d in told["defects"]
        if d["what"] not in refused
    ]
    defects = [d for n, d in enumerate(defects) if d not in defects[:n]]
    tests = re.findall(r"^(\d+ .*) in [\d.]+s.*$", ran.stdout, re.M) if program.tests else []
    tests = re.findall(r"^\d+ of \d+ cells$", ran.stderr, re.M) if program.notebook else tests
    said = tests[-1] if tests else _last_error(ran.stderr)
    output = ran.stderr + (ran.stdout if program.tests else "")
    if defects:
        verdict = "found"
        said = "; ".join(filter(None, (f"{d['error']} at {d['place']}" for d in defects))) + (
            f"; {said}" if tests else ""
        )
    elif refused:
        verdict, said = "refused", refused[0][:300]
    elif ran.returncode == 0:
        verdict = "ran"
    else:
        verdict = "refused" if _REFUSED.search(_last_error(output) or output[-3000:]) else "failed"
        said = f"{said}; {_last_error(output)}" if tests else said
    return {"verdict": verdict, "said": said, "defects": defects}


def _last_error(text: str) -> str:
    """Return the last line that names an error."""
    lines = re.findall(r"^(?:E\s+)?((?:[\w.]+\.)?\w*(?:Error|Exception|NotFound)\b: .*)$", text, re.M)
    return lines[-1][:300] if lines else ""


def _timed_scripts(clone: Path) -> dict[str, str]:
    """Return the texts of a kernel that does nothing, and of the scripts."""
    with tempfile.TemporaryDirectory(prefix="foreign-") as folder:
        timed = [program for program in PROGRAMS if program.name in TIMED]
        return {"nothing.py": NOTHING} | {p.name: p.script(clone, Path(folder)).read_text() for p in timed}


def _timed(name: str, text: str) -> dict[str, float]:
    """Return processor seconds of a script under `run`, with all checks, counters and the report, and in
    Numba's own simulator; each the second time, when Python has compiled its modules."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="foreign-") as folder:
        Path(folder, name).write_text(text, encoding="utf-8")
        for way, command, more in (
            ("run", ["-m", "warplab", "run", name], {}),
            ("numba_simulator", [name], {"NUMBA_ENABLE_CUDASIM": "1"}),
        ):
            environment = _environment("", **more) | {"PYTHONDONTWRITEBYTECODE": ""}  # not set
            for _ in range(2):
                began = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, check=True)
                ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            found[way] = round(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime, 1)
    print(name, json.dumps(found), flush=True)
    return found


def totals(record: dict[str, Any]) -> dict[str, int]:
    """Return how many programs got each verdict."""
    verdicts = [program["verdict"] for program in record["programs"].values()]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


NOTHING = """from numba import cuda


@cuda.jit
def nothing():
    pass


nothing[1, 1]()
"""
_HEAD = """# Scripts that others wrote

<!-- Written by `python -m evidence.foreign_scripts.run`; do not edit. -->

Unmodified programs under `python -m warplab run` and `pytest --warplab` ([docs/run.md](../../docs/run.md)), on a
machine without a GPU. *ran*: the program's own checks pass and no defect was found. *found*: a kernel has a defect.
*refused*: the stand-ins or the simulator lack what the program asks for. *too long*: not done in its processor time.
*failed*: anything else. The examples of numba-cuda are the bodies of its documentation's tests; sizes are given by
arguments where the program takes any; 64 KiB of random bytes take the place of the books that a notebook downloads.
Of a notebook (.ipynb) all cells run, with smaller arrays, also after one that fails: *failed* or *refused* if one does.
"""
_KNOWN = """
The race in stumpy's kernels was read in the source (`gpu_stump.py`, `gpu_aamp.py`): each thread stores `QT_out[0]`,
and the thread of element 0 has just stored another value there. All store the same value last, so the results are
right, but nothing orders the stores. Its tests ran with that race suppressed, so that the launch goes on and what they
assert is tried, too. The histogram's race is the notebook's own, which its next section mends by atomics.

Two cells of chapter 5's notebook use names that nobody defines (`an_array`, `x`). What fails in
05__memory_spaces__power_iteration.ipynb needs what the learner has to write, and its solution runs.
"""


def page(record: dict[str, Any]) -> str:
    """Return README.md."""
    counts = totals(record)
    parts = [
        _HEAD,
        f"**Of {sum(counts.values())} programs " + ", ".join(f"{n} {v}" for v, n in counts.items()) + ".**\n",
    ]
    for source, commit in record["sources"].items():
        rows = [
            [
                key.removeprefix(f"{source}/").split("/")[-1],
                program["verdict"],
                f"{program['launches']:,}",
                program["said"],
                f"{program.get('processor_seconds', '')}",
                program["date"],
            ]
            for key, program in record["programs"].items()
            if key.startswith(f"{source}/")
        ]
        table = markdown(["program", "verdict", "launches", "what it said", "processor seconds", "run on"], rows)
        parts.append(f"## {source}\n\nCommit {(commit or 'unknown')[:12]}.\n\n{table}\n")
    left = [p.name for p in PROGRAMS if p.key not in record["programs"]]
    if left:
        parts.append(f"Not run yet: {', '.join(left)}.\n")
    parts.append(_KNOWN)
    if "times" in record:
        columns = ("run", "numba_simulator", "date", "machine")
        rows = [[name, *(f"{one[column]}" for column in columns)] for name, one in record["times"].items()]
        table = markdown(["script", "`warplab run`", "Numba's simulator", "measured on", "with"], rows)
        parts.append(
            "## Against Numba's own simulator\n\nProcessor seconds of whole processes, on a machine that others used, "
            "too; `run` with all checks, counters,\nthe report and its estimates. nothing.py launches a kernel that "
            f"does nothing. Each is measured at its second run, when Python has compiled all modules.\n\n{table}\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
