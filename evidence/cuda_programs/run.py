"""Run programs of HeCBench unmodified on the simulator, and write README.md.

    python -m evidence.cuda_programs.run HeCBench=DIR [--only NAME]... [--seconds S] [--jobs N]
    python -m evidence.cuda_programs.run HeCBench=DIR --again [--only NAME]...
    python -m evidence.cuda_programs.run --page

DIR is a clone of zjin-lcf/HeCBench. Its programs in src/NAME-cuda run with the arguments of their Makefile made small:
a count of repetitions, the last one, is 1, and the largest of the others is halved until their product is at most
16,384 (65,536 before 2026-11-26); `ARGUMENTS` has exceptions. Files that the repository leaves out are made small and
random where data.py knows their form; they are left in DIR. results.json keeps what came of each; without --only or
--again, programs that it has already are left alone. With --again they run anew, with the time that they had, and each
verdict is compared with the last: the exit code is 1 if a program no longer does what it did, and the page says which.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from evidence.cuda_programs import data, libraries
from evidence.cuda_programs.read import READ
from warpcourse.paths import COURSE

RECORD = Path(__file__).with_name("results.json")
PAGE = Path(__file__).with_name("README.md")
SECONDS = 30  # of processor time for a program
_WAITS = 3600  # seconds by the clock after which one is taken to wait for ever, however busy the machine is

ARGUMENTS = {
    "aidw": "1 1 1",
    "atomicIntrinsics": "12 1",
    "attention-paged": "2 2 32 16 16 1",
    "backprop": "64",
    "bezier-surface": "-n 64",
    "bilateral": "64 64 0.25 5 1",
    "bitonic-sort": "8 1",
    "chi2": "40 64 20 20 32 1",
    "dense-embedding": "300 16 1",
    "dwconv": "2 4 32 32 1",
    "eikonal": "-s 16",
    "epistasis": "64 32 1",
    "fdtd3d": "--dimx=96 --dimy=96 --dimz=96 --timesteps=1",
    "floydwarshall": "64 1 16",
    "fma": "64 64 31 64 1",
    "gaussian": "-q -t -s 64",
    "gemv": "-s 512 -i 1 -x 64 -y 2",
    "histogram": "--i=1",
    "hotspot": "64 2 8 ../data/hotspot/temp_512 ../data/hotspot/power_512 output_512.out",
    "hotspot3D": "64 8 4 ../data/hotspot3D/power_512x8 ../data/hotspot3D/temp_512x8 output.out",
    "interval": "0 1024",
    "is": "16 16 16",
    "iso2dfd": "64 64 1",
    "keogh": "64 256 1",
    "laplace3d": "32 16 16 1 1",
    "lavaMD": "-boxes1d 2",
    "lfib4": "65536",
    "linearprobing": "10 8",
    "lud": "-s 64",
    "lulesh": "-i 1 -s 6 -r 11 -b 1 -c 1",
    "mdh": "-itmax 1",
    "metropolis": "-l 32 3 -t 4.7 0.1 -a 1 1 20 1 -h 1.0 -z 7919",
    "minibude": "--deck ../minibude-sycl/data/bm1 --wgsize 64 --iterations 1 --numposes 64",
    "minimod": "--niters 1 --grid 64 --nsteps 1",
    "minisweep": "--niterations 1",
    "multimaterial": "64 64",
    "nbody": "256 3",
    "nn": "filelist.txt -r 5 -lat 30 -lng 90 -i 1",
    "nw": "64 10 1",
    "page-rank": "-n 256 -i 1",
    "particlefilter": "-x 32 -y 32 -z 3 -np 256",
    "pathfinder": "1024 8 4",
    "pns": "8 16 16",
    "popcount": "16384 1",
    "qrg": "4096",
    "radixsort2": "-float -keysonly -n=16384",
    "relu": "16384 1",
    "remap": "16384 1",
    "resize": "32 32 64 64 3 1",
    "romberg": "4 64 1",
    "rsbench": "-s small -m event -l 256",
    "rsc": "-f input/vectors.csv -g 512",
    "s3d": "-n 1 -s 1",
    "scan2": "1 2048 256",
    "scan3": "1 1024",
    "scatter": "16384 1",
    "simplemoc": "-s 1000 -e 16 -n 1",
    "simpleSpmv": "2048 64 1",
    "sort": "0 1",
    "sssp": "-g 120 -t 1 -w 0 -r 1",
    "stencil3d": "64 1",
    "streamcluster": "4 8 16 256 256 64 none output.txt 1",
    "su3": "-i 1 -l 4 -t 128 -v 3 -w 1",
    "surfel": "64 64 48 1",
    "testSNAP": "--nsteps 1",
    "thomas": "64 64 64 1",
    "threadfence": "1 4096",
    "triad": "--passes 1 -v",
    "tridiagonal": "-num_systems=256",
    "vadd": "128 256 1",
    "vote": "64",
    "wmma": "0 64 64 64 1 1",
    "xsbench": "-s small -m event -l 256 -g 64",
    "zeropoint": "16384 1",
    "zoom": "2 2 32 32 1",
}
# The review of 2026-11-23 that gave the idea: what it found.
REVIEW = {
    "passes": "adam aidw atomicAggregate atomicIntrinsics axpby background-subtract bilateral bitonic-sort "
    "convolutionSeparable entropy epistasis floydwarshall hwt1d merge nlll quantBnB reverse scan scan2 scatterAdd "
    "stddev stencil1d thomas threadfence wedford zoom",
    "ends": "atan2 heat2d ntt pathfinder resize rmsnorm",
    "defect": "bscan bezier-surface romberg split dct8x8 addBiasQKV wyllie pns",
}
_PASSED = re.compile(r"\bPASS(?:ED)?\b|\bSUCCESS\b|\bverified\b|results? (?:is|are) correct", re.I)
_FAILED = re.compile(r"\bFAIL(?:ED|URE)?\b|\bmismatch|\bincorrect\b", re.I)
SAYS = _PASSED, _FAILED


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repository", nargs="?", metavar="HeCBench=DIR", help="a clone of the repository")
    parser.add_argument("--only", action="append", help="run the program of this name, whether recorded or not")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"of processor time for each ({SECONDS})")
    parser.add_argument("--jobs", type=int, default=1, help="programs that run at the same time")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no program later than that")
    parser.add_argument("--again", action="store_true", help="run those of the record, and compare with it")
    parser.add_argument("--page", action="store_true", help="write the page from the record")
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {"programs": {}}
    if RECORD.exists():
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    lost: list[str] = []
    if not options.page:
        folder = (options.repository or "").partition("=")[2]
        if not (Path(folder) / "src").is_dir() or not folder:
            parser.error("give a clone of the repository: HeCBench=DIR")
        record |= {"source": "zjin-lcf/HeCBench", "commit": _commit(folder)}
        record.pop("date", None)
        known = record["programs"]
        candidates, record["libraries"] = _programs(Path(folder))
        record["without_libraries"] = len(candidates)
        names = options.only or [name for name in candidates if (name in known) == options.again]
        end = time.monotonic() + 60 * options.minutes

        def run(name: str) -> None:
            if time.monotonic() < end:
                before = known.get(name, {})
                seconds = before.get("seconds", options.seconds) if options.again else options.seconds
                now = {"date": f"{datetime.date.today()}", "seconds": seconds, **_run(Path(folder), name, seconds)}
                known[name] = now | difference(before, now)
                if options.again and is_worse(before, now):
                    lost.append(name)
                print(f"{name}: {known[name]['verdict']} {known[name]['why']}", flush=True)
                record["programs"] = dict(sorted(known.items()))
                RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(run, names))
    PAGE.write_text(page(record), encoding="utf-8")
    found = [one["verdict"] for one in record["programs"].values()]
    counts = {verdict: found.count(verdict) for verdict in VERDICTS}
    if lost:
        print(f"no longer what they were: {', '.join(lost)}")
    print(json.dumps({"programs": len(found), **counts, "device": "simulator", "dates": _dates(record)}))
    return int(bool(lost))


def difference(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    """Return what a program did the last time, under "was", if that was something else.

    Another defect, or one at another place, is something else; another number of launches is not.
    """
    same = not before or all(before[key] == now[key] for key in ("verdict", "why"))
    return {} if same else {"was": f"{before['verdict']}, {before['date']}: {before['why']}".removesuffix(": ")}


def is_worse(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Tell whether a program that ran does otherwise now. One cut off at its time is not: it may end the next time."""
    return before.get("verdict") in ("passes", "ends", "defect") and now["verdict"] not in (before["verdict"], "time")


def _commit(folder: str) -> str:
    told = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or Path(folder, "COMMIT").read_text(encoding="utf-8").strip()


def _programs(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the programs that need nothing but CUDA's runtime, Thrust and CUB, those of the review first, and of each
    other one what it needs."""
    found, others = [], {}
    for program in sorted((folder / "src").glob("*-cuda")):
        name = program.name.removesuffix("-cuda")
        if missing := libraries.needed(program):
            others[name] = ", ".join(missing)
        elif any(program.rglob("*.cu")):
            found.append(name)
    first = " ".join(reversed(REVIEW.values())).split()
    return sorted(found, key=lambda name: (first.index(name) if name in first else len(first), name)), others


def _run(folder: Path, name: str, seconds: int) -> dict[str, Any]:
    made = data.write(name, command(folder, name)[0])
    of_data = {"data": made} if made else {}
    return of_data | execute(*command(folder, name), folder, seconds)


def command(folder: Path, name: str) -> tuple[Path, list[str], list[str], list[str]]:
    """Return where a program runs, its files, what the compiler is given, and what the program is."""
    program = folder / "src" / f"{name}-cuda"
    text = ""
    if makefiles := sorted(program.rglob("Makefile"), key=lambda file: (len(file.parts), file)):
        text, program = _expanded(makefiles[0].read_text(encoding="utf-8")), makefiles[0].parent
    named = re.findall(r"(?<=\s)-(?:D|I[ \t]*)[^\s$]+(?=\s|$)", text)
    flags = list(dict.fromkeys("".join(flag.split()) for flag in named))
    flags += ["-fopenmp"] * ("-fopenmp" in text)
    return program, _files(program, text), flags, ARGUMENTS[name].split() if name in ARGUMENTS else _small(text)


def execute(
    program: Path,
    files: list[str],
    flags: list[str],
    arguments: list[str],
    clone: Path,
    seconds: int,
    says: tuple[re.Pattern, re.Pattern] = SAYS,
) -> dict[str, Any]:
    """Run a program under the checks, in its folder of a clone, and return what came of it. `says`: how it says that
    its results are right, and that they are wrong."""
    return {"arguments": " ".join(arguments), **_verdict(*ran(program, files, flags, arguments, clone, seconds), says)}


def ran(
    program: Path, files: list[str], flags: list[str], arguments: list[str], clone: Path, seconds: int
) -> tuple[int | None, str, dict[str, Any] | None]:
    """Run a program under the checks; return its exit code, what it printed and the report."""
    with tempfile.TemporaryDirectory() as report_folder:
        report = Path(report_folder, "report.json")
        command = [sys.executable, "-m", "warplab", "run", f"--json={report}", "--max-seconds=30", *files, *flags]
        log = Path(report_folder, "log")
        with log.open("w") as output:
            process = subprocess.Popen(
                [*command, "--", *arguments],
                cwd=program,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=_environment(),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5)),
            )
            try:
                code: int | None = process.wait(timeout=_WAITS)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        printed = log.read_text(encoding="utf-8", errors="replace").replace(f"{clone.absolute()}/", "")
        known = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None
    return code, printed, known


def _expanded(makefile: str) -> str:
    """Return a Makefile's text with the values of its plain variables, whole lines, and what its conditions leave."""
    text = makefile.replace("\\\n", " ")
    known = dict(re.findall(r"^(\w+)[ \t]*:?=[ \t]*([^\n#]*)", text, re.M)) | {"VERIFY": "yes"}
    for _ in range(3):
        text = re.sub(r"\$[({](\w+)[)}]", lambda m: known.get(m[1], m[0]).strip(), text)
    lines, holds = list[str](), list[bool]()
    for line in text.splitlines(keepends=True):
        if asked := re.match(r"[ \t]*if(n?)eq[ \t]*\(([^,]*),([^)]*)\)", line):
            holds.append((asked[2].strip() == asked[3].strip()) != bool(asked[1]))
        elif re.match(r"[ \t]*ifn?def\b", line):
            holds.append(True)
        elif re.match(r"[ \t]*else\b", line):
            holds[-1:] = [not each for each in holds[-1:]]
        elif re.match(r"[ \t]*endif\b", line):
            del holds[-1:]
        elif all(holds):
            lines.append(line)
    return "".join(lines)


def _files(program: Path, makefile: str) -> list[str]:
    """Return the program's files, which its Makefile lists as sources or as objects; else all that have kernels."""
    words = " ".join(re.findall(r"^(?:\w*source|kernels)[ \t]*=(.*)", makefile, re.M)).split()
    objects = re.findall(r"(?<![\w/])(?:\./)?([\w/]+)\.o\b", makefile)  # in folders, as of b+tree
    named = [str(file.relative_to(program)) for stem in objects for file in program.glob(f"{stem}.c*")]
    named += re.findall(r"^\w+\.o[ \t]*:[ \t]*(\.\./\S+\.c\w+)", makefile, re.M)  # of another program's folder
    found = [sorted(program.glob(word)) or sorted(program.glob(re.sub(r"\.c\w*$", ".c*", word))) for word in words]
    files = [os.path.relpath(file, program) for each in found for file in each] or named
    if files:
        return list(dict.fromkeys(files))
    return sorted(file.name for file in program.glob("*.cu")) or [
        str(file.relative_to(program)) for kind in ("cu", "cc", "cpp") for file in sorted(program.rglob(f"*.{kind}"))
    ]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(COURSE)}


VERDICTS = ("passes", "ends", "defect", "refused", "fails", "time")


# The program's line under the target `test`, or `run`, but none of a script.
_RUN = re.compile(r"^(?:test|run):.*\n(?:[ \t]+(?!.*\./).*\n)*\t.*?\./(?!\S*\.sh)\S+(.*)", re.M)


def _small(makefile: str) -> list[str]:
    run = _RUN.search(makefile)
    words = [word for word in re.split(r"[;&|>]", run[1])[0].split() if "$" not in word] if run else []
    parts = [re.fullmatch(r"(-{1,2}[\w-]+=)?(\d+)", word) for word in words]
    numbers = {position: int(part[2]) for position, part in enumerate(parts) if part and int(part[2])}
    repeats = numbers.pop(len(words) - 1, None) if words and words[-1].isdigit() else None
    while math.prod(numbers.values()) > 16384:
        numbers[max(numbers, key=lambda position: numbers[position])] //= 2
    if repeats is not None:
        numbers[len(words) - 1] = 1
    heads = [part[1] or "" if part else "" for part in parts]
    return [f"{heads[n]}{numbers[n]}" if n in numbers else word for n, word in enumerate(words)]


def _verdict(
    code: int | None, printed: str, known: dict[str, Any] | None, says: tuple[re.Pattern, re.Pattern]
) -> dict[str, Any]:
    passed, failed = says
    own = printed.split("\nWarp Lab ran ")[0]
    late = code in (-signal.SIGKILL, -signal.SIGXCPU, 128 + signal.SIGXCPU)
    if known is None or late or "CPU time limit exceeded" in own:
        return {"verdict": "time", "why": "", "launches": 0, "kernels": 0}
    counts = {"launches": sum(k["launches"] for k in known["kernels"]), "kernels": len(known["kernels"])}
    defects = [d for d in known["defects"] if not d["refused"]]
    refused = re.search(r"error: (?:a kernel could not be compiled or run: (.*)|(the program uses .*))", printed)
    if defects and defects[0] is known["defects"][0]:  # those behind what was refused may come of that
        d = defects[0]
        place = f"{Path(d['path'] or d['file']).name}:{d['line']}"
        return {
            "verdict": "defect",
            "why": f"{d['error']} at {place}: {d['what']}"[:300],
            "kernel": d["kernel"],
            **counts,
        }
    if known["defects"] or refused:
        why = known["defects"][0]["what"] if known["defects"] else refused[1] or refused[2] if refused else ""
        why = re.sub(r"\S*/(\w[\w.]*/)?", "", why)
        verdict = "time" if "too long" in why else "refused"
        return {"verdict": verdict, "why": why[:200], **counts}
    if code or failed.search(own):
        lines = [line.strip() for line in own.splitlines() if failed.search(line)] or own.strip().splitlines()[-1:]
        return {"verdict": "fails", "why": f"exit code {code}: {' '.join(lines[:1])}"[:200], **counts}
    return {"verdict": "passes" if passed.search(own) else "ends", "why": "", **counts}


def page(record: dict[str, Any]) -> str:
    """Return the page for a record."""
    programs = record["programs"]
    by_verdict = {v: {n: p for n, p in programs.items() if p["verdict"] == v} for v in VERDICTS}
    most = max(p["seconds"] for p in programs.values())
    ran = [p for v in ("passes", "ends", "defect", "fails") for p in by_verdict[v].values()]
    on_the_host = [n for v in ("passes", "ends") for n, p in by_verdict[v].items() if not p["launches"]]
    parts = [
        "# Whole CUDA C++ programs on the simulator",
        "<!-- Written by `python -m evidence.cuda_programs.run`. -->",
        f"On {' and '.join(_dates(record))}, {len(programs)} of the {record['without_libraries']} programs "
        f"that include no library but Thrust and CUB, of <https://github.com/{record['source']}> at "
        f"`{record['commit'][:10]}` were run unmodified by `python -m warplab run`, with all checks of "
        f"`--strict=cuda`, on small arguments, each for at most {most} s of processor time, some for less "
        "(results.json has both). They launched "
        f"{sum(p['kernels'] for p in ran):,} kernels {sum(p['launches'] for p in ran):,} times. No GPU took part.",
        "| what came of them | programs |",
    ]
    rows = {
        "passes": "passes its own check",
        "ends": "ends; has no check of its own, or does not say so",
        "defect": "stopped at a defect, below",
        "fails": "fails or ends with an error, below",
        "refused": "refused, below",
        "time": "not done in its time",
    }
    parts[-1] += "\n| --- | --- |\n" + "\n".join(
        f"| {text} ({len(by_verdict[v])}) | {', '.join(by_verdict[v])} |" for v, text in rows.items()
    )
    if on_the_host:
        parts.append(
            f"Of those that pass or end, {len(on_the_host)} launch no kernel of their own, as they only copy, or "
            f"leave the work to Thrust and CUB, which run on the host: {', '.join(on_the_host)}."
        )
    if small := [name for name, p in programs.items() if "data" in p]:
        parts.append(
            "The repository leaves out files that some programs read. In place of them these have small random ones, "
            f"by [data.py](data.py): {', '.join(small)}."
        )
    if changed := [f"- **{name}**: {p['verdict']}; was {p['was']}" for name, p in programs.items() if "was" in p]:
        parts += ["## Otherwise than the last time", "\n".join(changed)]
    for title, verdict in (("Defects", "defect"), ("Failures", "fails"), ("Refused", "refused")):
        if by_verdict[verdict]:
            lines = [f"- **{name}** {p['why']}{_read(name, p)}" for name, p in by_verdict[verdict].items()]
            parts += [f"## {title}", "\n".join(lines)]
    if others := record.get("libraries"):
        by_library = [
            (library, [n for n, needs in others.items() if needs == library]) for library in set(others.values())
        ]
        lines = [f"- {library} ({len(names)}): {', '.join(names)}" for library, names in sorted(by_library)]
        parts += [
            "## Left out",
            f"{len(others)} programs include a library's header, whatever is defined, and do not bring it along "
            "([libraries.py](libraries.py)):",
            "\n".join(lines),
        ]
    return "\n\n".join([*parts, "## The review's list", _beside_the_review(programs)]) + "\n"


def _dates(record: dict[str, Any]) -> list[str]:
    return sorted({one["date"] for one in record["programs"].values()})


def _read(name: str, program: dict[str, Any]) -> str:
    if name in READ:
        return f" — {READ[name]}"
    return "" if program["verdict"] == "refused" else " — not yet read in the code."


def _beside_the_review(programs: dict[str, Any]) -> str:
    lines = ["An earlier study ran 58 of the programs with a prototype; of those that it names, here:"]
    for kind, names in REVIEW.items():
        same = [name for name in names.split() if programs.get(name, {}).get("verdict") == kind]
        other = [f"{n}: {programs[n]['verdict']}" for n in names.split() if n in programs and n not in same]
        missing = [name for name in names.split() if name not in programs]
        lines.append(
            f"- {kind} there, {len(names.split())}: the same here {len(same)}"
            + (f"; otherwise {', '.join(other)}" if other else "")
            + (f"; not run {', '.join(missing)}" if missing else "")
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
