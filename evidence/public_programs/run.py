"""Run programs that others published in the simulator, and write README.md.

    python -m evidence.public_programs.run cuda-samples=DIR llm.c=DIR SGEMM_CUDA=DIR fast.cu=DIR [--only NAME]...
    python -m evidence.public_programs.run --page

DIR is a clone of the repository of that name. Its kernels are cut out of it (`device_code`) and run through the
stand-in for CuPy, with data, launches and a check of our own (`samples`, `hopper`). The record,
results.json, holds the commit of each repository and what came of each program; `--page` writes the page
from it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from evidence.public_programs import hopper  # noqa: F401 - registers its programs
from evidence.public_programs.samples import Code, Findings, Program, by_source
from warplab import simulator
from warplab.compile.device_code import device_code

RECORD = Path(__file__).with_name("results.json")
PAGE = Path(__file__).with_name("README.md")

# What a message of the simulator stands for, after the code was read; by program and kernel.
READ = {
    ("softmax_forward", "softmax_forward_kernel4"): (
        "The maximum and the sums use the same shared memory. Warp 0 can store its sum in element 0 while other warps "
        "have yet to read the maximum there. One `__syncthreads()` after the maximum is read mends it."
    ),
    ("softmax_forward", "softmax_forward_kernel7"): (
        "Where the unrolled loop goes past the row's end, threads read its last element, `out[C - 1]`, while the "
        "thread to which it belongs writes it. What they read is thrown away, so the result is right."
    ),
    **{
        (f"matmul_{number}", f"matmulKernel{number}<128, 256, 64, 384, 3, 4, 2, 1>"): (
            "At its end a block may still arrive at a barrier in the other block of its cluster, which may have ended "
            "by then. A barrier of the cluster at the end of the kernel mends it."
        )
        for number in (8, 9)
    },
    **{
        (f"matmul_{number}", f"matmulKernel{number}<128, 256, 64, 384, 3, 4, 2, 1>"): (
            "Threads store C to shared memory and meet, then one asks TMA to write it. PTX wants a `fence.proxy.async` "
            "between the two, which each thread that stored executes before the barrier."
        )
        for number in (10, 11, 12)
    },
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repositories", nargs="*", metavar="NAME=DIR", help="a clone of each repository")
    parser.add_argument(
        "--only", action="append", help="run the programs with this in their name, and keep what is recorded of others"
    )
    parser.add_argument("--page", action="store_true", help="write the page from the record")
    options = parser.parse_args(arguments)
    if not options.page:
        folders = dict(item.split("=", 1) for item in options.repositories if "=" in item)
        names = [source.split("/")[1] for source in by_source()]
        missing = [f"{name}=DIR" for name in names if name not in folders]
        if missing:
            parser.error(f"give a clone of each repository: {' '.join(missing)} is missing")
        record = _run_all(folders, options.only)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    PAGE.write_text(page(record), encoding="utf-8")
    every = [program for of_it in record["sources"].values() for program in of_it["programs"]]
    agree = sum(not program["found"] for program in every)
    print(json.dumps({"programs": len(every), "agree": agree, "device": "simulator", "date": record["date"]}))
    return 0


def _run_all(folders: dict[str, str], only: list[str] | None) -> dict[str, Any]:
    record: dict[str, Any] = {"date": datetime.date.today().isoformat(), "sources": {}}
    before = json.loads(RECORD.read_text(encoding="utf-8"))["sources"] if only else {}
    for source, programs in by_source().items():
        folder = folders[source.split("/")[1]]
        commit, date = _git(folder, "log", "-1", "--format=%H %cs").split()
        if source in before and before[source]["commit"] != commit:
            sys.exit(f"error: {source} was recorded at another commit; run all programs")
        known = {result["name"]: result for result in before.get(source, {}).get("programs", ())}
        results = []
        for program in programs:
            if only and program.name in known and not any(part in program.name for part in only):
                results.append(known[program.name])
                continue
            found = _run(program, folder)
            results.append({"name": program.name, "files": program.files, "kernels": program.kernels, "found": found})
            print(f"{source}: {program.name}: {found or 'agrees'}", flush=True)
        record["sources"][source] = {"commit": commit, "date": date, "programs": results}
    return record


def _run(program: Program, folder: str) -> list[dict[str, str]]:
    """Return what went wrong in a program's kernels; nothing if its check is passed."""
    texts = []
    for file in program.files:
        texts.append(f'#line 1 "{file.rsplit("/", 1)[-1]}"')
        texts.append(device_code(_git(folder, "show", f"HEAD:{file}")))
    try:
        program.run(Code("\n".join([program.settings, *texts])))
    except Findings as findings:
        return [_finding(name, error) for name, error in findings.found]
    except Exception as error:  # whatever it is goes into the record
        return [_finding(program.kernels, error)]
    return []


def _finding(kernel: str, error: Exception) -> dict[str, str]:
    kinds = ((simulator.UnsupportedInstruction, "refused"), (simulator.SimulatorError, "reported"))
    kind = next((word for of_kind, word in kinds if isinstance(error, of_kind)), "fails")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    return {"kernel": kernel, "kind": kind, "error": type(error).__name__, "message": lines[0]}


def page(record: dict[str, Any]) -> str:
    """Return the page for a record."""
    every = [(source, program) for source, of_it in record["sources"].items() for program in of_it["programs"]]
    agree = sum(not program["found"] for _, program in every)
    parts = [
        "# Public programs in the simulator",
        "<!-- Written by `python -m evidence.public_programs.run`. -->",
        f"On {record['date']}, {len(every)} published programs ran in the simulator, with all its checks on. Their "
        "kernels are the published ones; data, launches and checks are our own, on fewer data than a GPU gets. "
        f"{agree} of the {len(every)} programs give the results that NumPy computes, and nothing is reported; what the "
        "others do is said below. Files, kernels and results are in results.json. No GPU took part.",
        "An earlier study, which this page does not repeat, ran 67 whole programs of cuda-samples by their own checks, "
        "71 variants of llm.c's kernels and 22 of matrix products and attention.",
    ]
    for source, of_it in record["sources"].items():
        programs = of_it["programs"]
        names = ", ".join(f"`{p['name']}`" for p in programs)
        parts.append(
            f"- <https://github.com/{source}> at `{of_it['commit'][:10]}` of {of_it['date']}, "
            f"{sum(not p['found'] for p in programs)} of {len(programs)}: {names}"
        )
    found = [(source, program, item) for source, program in every for item in program["found"]]
    if found:
        parts += [
            "## What was found",
            "These kernels are well known and used a lot; that a few of them rely on luck says how hard such mistakes "
            "are to see. Each message is the simulator's; what it stands for was then read in the code.",
        ]
        for source, program, item in found:
            parts += [
                f"**{item['kernel']}** (`{program['name']}`, {source}), {item['error']}: {item['message']}",
                READ.get((program["name"], item["kernel"]), "Not yet read in the code."),
            ]
    return "\n\n".join(parts) + "\n"


def _git(folder: str, *arguments: str) -> str:
    return subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
