"""Holds the simulator, with all its checks on, against the recorded results.

    python -m tests.warplab.differential.compare [--batches FIRST END] [--processes 2] [--numpy]

Prints each kernel that differs or is reported, and how many agree; the exit status is 1 if any does not.

Unless compiled with --fmad=false, PTX has `mul` and `add` without `.rn`, which `ptxas` may fuse (PTX ISA, "mul"): then
results differ from PTX as it is written in the last bit. A kernel that agrees once its `mul` and `add` are fused is
counted apart.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import re
import sys

import numpy as np

from tests.warplab.differential import execution, record
from tests.warplab.differential.generator import BATCH, Kernel, kernel, options_of, seeds_of
from warplab import simulator

recorded = functools.cache(record.load)


FUSED = "agrees once mul and add are fused, as ptxas may"


@functools.lru_cache(maxsize=2)
def ptx_of(batch: int) -> str:
    return execution.ptx_of(batch)


@functools.lru_cache(maxsize=2)
def program_of(batch: int) -> simulator.Program:
    return simulator.load(ptx_of(batch))


@functools.lru_cache(maxsize=2)
def ptx_digest_of(batch: int) -> str:
    return execution.ptx_digest(ptx_of(batch))


def difference(seed: int, **options) -> str:
    """What is wrong with the simulator's results of a kernel; empty where they agree with the GPU's. `options`: of the
    simulator."""
    this, batch = kernel(seed), seed // BATCH
    compiled, _ = options_of(batch)
    head = f"kernel{seed} ({this.flavour}; batch {batch}, {' '.join(compiled) or 'no options'})"
    if ptx_digest_of(batch) != recorded().ptx[batch]:
        head += ", compiled to other PTX than was recorded"
    want = recorded().digests[seed], recorded().words.get(seed)
    try:
        problem = mismatch(this, execution.simulate(program_of(batch), this, **options), *want)
        if problem and "--fmad=false" not in compiled:
            fused = simulator.load(with_fused_products(ptx_of(batch), this.name))
            if not mismatch(this, execution.simulate(fused, this, **options), *want):
                problem = FUSED
    except simulator.SimulatorError as error:
        problem = str(error)
    return f"{head}: {problem}" if problem else ""


def with_fused_products(ptx: str, name: str) -> str:
    """PTX where one kernel's products that go into one sum or difference alone become part of an `fma.rn`."""
    start = ptx.index(f".entry {name}(")
    end = ptx.find("\n}\n", start)
    body = ptx[start:end]
    for line, kind, product, a, b in re.findall(r"(mul\.(f32|f64)\s+(%\w+), (\S+), (\S+);)", body):
        uses = re.findall(rf"((add|sub)\.{kind}\s+(%\w+), (\S+), (\S+);)", body)
        uses = [use for use in uses if product in use[3:]]
        if len(uses) != 1 or len(re.findall(rf"{product}\b", body)) != 2:
            continue
        old, operation, result, left, right = uses[0]
        if operation == "add":
            new = f"fma.rn.{kind} {result}, {a}, {b}, {right if left == product else left};"
        elif right == product:
            new = f"neg.{kind} {product}, {a}; fma.rn.{kind} {result}, {product}, {b}, {left};"
        else:
            new = f"neg.{kind} {product}, {right}; fma.rn.{kind} {result}, {a}, {b}, {product};"
        body = body.replace(line, "").replace(old, new)
    return ptx[:start] + body + ptx[end:]


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
    parser.add_argument("--numpy", action="store_true", help="by NumPy alone, without machine code")
    arguments = parser.parse_args()
    batches = range(*arguments.batches) if arguments.batches else range(len(recorded().ptx))
    seeds = [seed for batch in batches for seed in seeds_of(batch)]
    bad = fused = 0
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        one = functools.partial(difference, machine_code=not arguments.numpy)
        for problem in pool.imap(one, seeds, chunksize=BATCH):
            if problem:
                fused += problem.endswith(FUSED)
                bad += not problem.endswith(FUSED)
                print(problem, flush=True)
    about = recorded().about
    good = len(seeds) - bad - fused
    print(f"{good} of {len(seeds)} kernels agree with {about['device']}, recorded {about['date']}", end="")
    print(f", and {fused} once ptxas' fusing is taken into account" if fused else "")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
