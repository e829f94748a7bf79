"""Runs the benchmarks of labs, one after the other: `python -m tools.bench [--record] [--only KEY] [LAB ...]`.

A lab that needs more GPUs than this machine has is left out, and a lab that fails does not keep the others from being
measured. The last line is JSON with all figures, by lab. Exit code: 0, 1 when a benchmark failed, 2 without a GPU.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence

from warpcourse.bench import timing
from warpcourse.bench.benchmark import WRONG
from warpcourse.bench.lab import Lab, find, labs
from warpcourse.paths import COURSE


def run(lab: Lab, arguments: Sequence[str]) -> tuple[int, dict]:
    """Run a lab's benchmark; return its exit code and the figures of its last line, {} where there is none."""
    command = [sys.executable, "-u", "-m", f"{lab.package}.{lab.benchmark}", *arguments]
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=COURSE) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line
    try:
        return process.returncode, json.loads(last)["figures"]
    except (ValueError, KeyError, TypeError):
        return process.returncode, {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__.splitlines()[0])
    parser.add_argument("labs", nargs="*", metavar="LAB", help="number, topic or slug; default: all with a benchmark")
    parser.add_argument("--record", action="store_true", help="write what is measured to the labs' recordings.json")
    parser.add_argument("--only", action="append", default=[], metavar="KEY", help="of one lab: measure this key alone")
    chosen = parser.parse_args(arguments)
    try:
        asked = [find(name) for name in chosen.labs] if chosen.labs else labs()
    except ValueError as error:
        parser.error(str(error))
    asked = [lab for lab in asked if lab.benchmark]
    if chosen.only and len(asked) != 1:
        parser.error("--only measures keys of one lab; name that lab, too")
    timing.require_gpu()
    gpus = timing.gpu_count()
    figures, failed = {}, []
    for lab in asked:
        if lab.gpus > gpus:
            print(f"{lab.slug} is left out: it needs {lab.gpus} GPUs; this machine has {gpus}.", file=sys.stderr)
            continue
        print(f"== {lab.slug}", flush=True)
        only = [part for key in chosen.only for part in ("--only", key)]
        code, figures[lab.slug] = run(lab, ["--record"] * chosen.record + only)
        failed += [lab.slug] if code else []
    if failed:
        print(f"error: failed, or with wrong outputs (see above): {', '.join(failed)}", file=sys.stderr)
    print(timing.last_line("record" if chosen.record else "bench", figures))
    return WRONG if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
