"""Try the grading on random hostile input, and count how it ends. The exit status is 1 if the grading itself failed.

    python -m evidence.fuzz [ptx] [descriptions] [notebooks] [--seed N] [--count N | --seconds S] [--record]
    python -m evidence.fuzz ptx --seed 7 --first 1234 --count 1 --show     one case again, and the input itself

An `infra_error` is an exception where the judge has none of its own to expect, a crash ends the judge's process, a hang
goes on past the limit of a test. All else costs a submission that test, or is a reason why it cannot be read.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import resource
import select
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psutil

from warpcourse.paths import COURSE

TARGETS = ("ptx", "descriptions", "notebooks")
RESULTS = COURSE / "evidence" / "fuzz" / "results.json"
FAILURES = ("infra_error", "crash", "hang")
MEMORY = 6 << 30  # bytes of a process, beyond what it has at first
HANG = 60.0  # seconds of processor time for one case; its own limits are 10
WAIT = 600.0  # seconds of wall clock for one case, on a busy machine
BATCH = 250  # cases of one process, so that no library's cache grows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seed", type=int, default=None, help="default: drawn, and printed")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with this case (default: 0)")
    parser.add_argument("--count", type=int, metavar="N", help="stop after so many cases")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after so much processor time (default: 60)")
    parser.add_argument("--show", action="store_true", help="print each input")
    parser.add_argument("--record", action="store_true", help=f"keep the figures, in {RESULTS.name}")
    given = parser.parse_args()
    if unknown := {*given.targets} - {*TARGETS}:
        parser.error(f"there is no {', '.join(sorted(unknown))}; choose among {', '.join(TARGETS)}")
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    seconds = 60.0 if given.count is None and given.seconds is None else given.seconds
    failed = 0
    for target in given.targets or TARGETS:
        print(f"{target}: seed {seed}", flush=True)
        found = tried(target, seed, given.first, given.count, seconds, given.show)
        failed += sum(found[what] for what in FAILURES)
        print(json.dumps({"fuzz": target, **found}))
        if given.record:
            kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            RESULTS.write_text(json.dumps(dict(sorted((kept | {target: found}).items())), indent=1) + "\n")
    return int(failed > 0)


def tried(target: str, seed: int, first: int, count: int | None, seconds: float | None, show: bool) -> dict[str, Any]:
    """Return how the cases ended: numbers of failures, of all, and of each other end."""
    module = importlib.import_module(f"evidence.fuzz.{target}")
    module.prepare()
    ends: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    used, number = 0.0, first
    while (count is None or number < first + count) and (seconds is None or used < seconds):
        most = BATCH if count is None else min(BATCH, first + count - number)
        for end, detail, spent in _batch(module, seed, number, most, show):
            if end in FAILURES:
                again = f"python -m evidence.fuzz {target} --seed {seed} --first {number} --count 1 --show"
                print(f"{end}: {detail}\n  again: {again}", flush=True)
            elif detail:
                inside[detail] += 1
            ends[end] += 1
            number, used = number + 1, used + spent
            if seconds is not None and used >= seconds:
                break
    failures = {what: ends.pop(what, 0) for what in FAILURES}
    for detail, times in inside.most_common():
        print(f"  {times} x {detail[:200]}")
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seed": seed,
        "cases": number - first,
        "processor_seconds": round(used),
        **failures,
        "ends": dict(ends.most_common()),
        "kinds_of_failures_of_the_simulator": len(inside),
    }


def _batch(module: Any, seed: int, first: int, count: int, show: bool) -> Iterator[tuple[str, str, float]]:
    """Yield end, detail and processor seconds of each case, tried in a process that ends with a hang or a crash."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            _try(module, seed, range(first, first + count), writing, show)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    process, spent, rest, done = psutil.Process(pid), 0.0, b"", 0
    try:
        while done < count:
            end, began = None, time.monotonic()
            while b"\n" not in rest:
                ready, _, _ = select.select([reading], [], [], 1.0)
                if ready:
                    more = os.read(reading, 1 << 16)
                    if not more:
                        end = (
                            "crash",
                            f"the process ended by itself, {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}",
                        )
                        break
                    rest += more
                elif _processor(process) - spent > HANG or time.monotonic() - began > WAIT:
                    end = ("hang", f"more than {HANG:.0f} s of processor time")
                    break
            if end:
                yield *end, HANG if end[0] == "hang" else 0.0
                return
            line, _, rest = rest.partition(b"\n")
            told, detail, now = json.loads(line)
            yield told, detail, now - spent
            spent, done = now, done + 1
    finally:
        os.close(reading)
        if not (done == count or (end and end[0] == "crash")):
            _end(process)
        elif done == count:
            os.waitpid(pid, 0)


def _processor(process: psutil.Process) -> float:
    """Return the processor seconds of a process with those below it."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            times = one.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def _end(process: psutil.Process) -> None:
    for one in process.children(recursive=True):
        one.kill()
    os.kill(process.pid, signal.SIGKILL)
    os.waitpid(process.pid, 0)


def _try(module: Any, seed: int, numbers: range, writing: int, show: bool) -> None:
    """Try cases in this process, which then ends."""
    most = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    own = psutil.Process()
    with open(writing, "w", buffering=1) as out:
        for number in numbers:
            made = module.make(random.Random(f"{seed}:{number}"))
            if show:
                print(module.shown(made), flush=True)
            try:
                end, detail = module.attempt(made)
            except BaseException as error:
                end, detail = "infra_error", "".join(traceback.format_exception(error)[-3:])[-2000:]
            out.write(json.dumps([end, detail, _processor(own)]) + "\n")
    os._exit(0)


if __name__ == "__main__":
    raise SystemExit(main())
