"""Holds the simulator, with all its checks on, against the recorded results.

    python -m tests.differential.compare [--batches FIRST END] [--processes 2]

Prints each kernel that differs or is reported, and how many agree; the exit status is 1 if any does not.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import sys

import numpy as np

from warplab import simulator

from . import execution, record
from .generator import Kernel, kernel, options_of, seeds_of

recorded = functools.cache(record.load)


@functools.lru_cache(maxsize=2)
def program_of(batch: int) -> tuple[simulator.Program, str]:
    """A batch for the simulator, and the digest of its PTX."""
    ptx = execution.ptx_of(batch)
    return simulator.load(ptx), execution.ptx_digest(ptx)


def difference(seed: int) -> str:
    """What is wrong with the simulator's results of a kernel; empty where they agree with the GPU's."""
    this, batch = kernel(seed), seed // len(seeds_of(0))
    program, ptx = program_of(batch)
    head = f"kernel{seed} ({this.flavour}; batch {batch}, {' '.join(options_of(batch)[0]) or 'no options'})"
    if ptx != recorded().ptx[batch]:
        head += ", compiled to other PTX than was recorded"
    try:
        seen = execution.simulate(program, this)
    except simulator.SimulatorError as error:
        return f"{head}: {error}"
    problem = mismatch(this, seen, recorded().digests[seed], recorded().words.get(seed))
    return f"{head}: {problem}" if problem else ""


def mismatch(this: Kernel, seen: np.ndarray, digest: str, words: np.ndarray | None) -> str:
    """How words differ from recorded ones, or from their digest where the words were not kept; empty if they do not."""
    if words is None:
        return "" if execution.result_digest(seen) == digest else "other results than the digest recorded"
    if this.approximate:
        return approximate_mismatch(this, seen, words)
    bad = np.flatnonzero(seen != words)
    if not bad.size:
        return ""
    return f"{bad.size} of {seen.size} words differ, first " + describe(this, int(bad[0]), seen, words)


def describe(this: Kernel, k: int, seen: np.ndarray, words: np.ndarray) -> str:
    results = this.threads * this.words
    if k >= results:
        where = f"g[{k - results}]"
    else:
        thread, word = divmod(k, this.words) if this.by_thread else divmod(k, this.threads)[::-1]
        where = f"word {word} of thread {thread}"
    return f"{where}: {int(seen[k]):#010x}, recorded {int(words[k]):#010x}"


def approximate_mismatch(this: Kernel, seen: np.ndarray, words: np.ndarray) -> str:
    """The same for kernels of approximate functions, within their documented errors."""
    apart = errors_apart(this, seen, words)
    worst = max(apart, key=lambda entry: entry[1])
    return f"{worst[0].call} is {worst[1]:.2f} times its documented error apart" if worst[1] > 2 else ""


def errors_apart(this: Kernel, seen: np.ndarray, words: np.ndarray) -> list[tuple]:
    """For each result its function, and the greatest distance of the two in units of the documented error."""
    columns = [values[: this.threads * this.words] for values in (seen, words)]
    columns = [c.reshape(-1, this.words).T if this.by_thread else c.reshape(this.words, -1) for c in columns]
    result, k = [], 0
    while k < this.words:
        function = this.approximate[k]
        count, dtype = (1, "f4") if function.kind == "f32" else (2, "f8")
        a, b = (np.ascontiguousarray(c[k : k + count].T).view(dtype).astype("f8") for c in columns)
        unit = np.spacing(np.maximum(np.abs(a), np.abs(b)).astype(dtype)).astype("f8")
        distance = np.where(np.isnan(a) & np.isnan(b), 0, np.abs(a - b) / (function.absolute or function.ulps * unit))
        result.append((function, float(np.nan_to_num(distance, nan=np.inf).max())))
        k += count
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs=2, metavar=("FIRST", "END"))
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    batches = range(*arguments.batches) if arguments.batches else range(len(recorded().ptx))
    seeds = [seed for batch in batches for seed in seeds_of(batch)]
    bad = 0
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for problem in pool.imap(difference, seeds, chunksize=len(seeds_of(0))):
            if problem:
                bad += 1
                print(problem, flush=True)
    about = recorded().about
    print(f"{len(seeds) - bad} of {len(seeds)} kernels agree with {about['device']}, recorded {about['date']}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
