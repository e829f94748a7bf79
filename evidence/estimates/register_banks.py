"""How long multiply-adds take by where their registers lie: `python -m evidence.estimates.register_banks`, on a GPU.

A register file has two banks, registers of even and of odd number. A loop of FFMA is drawn, compiled, and its machine
code read: which registers come out of the banks, and which the flag `.reuse` has kept since the instruction before.
Into register_banks.json.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np

from warpcourse.bench import timing
from warplab.compile.disassembler import disassemble
from warplab.compile.nvrtc import compile_cubin
from warplab.estimating.register_reads import clocks_each

RECORD = Path(__file__).with_name("register_banks.json")
A, B, C = 16, 16, 24  # numbers in registers: factors, factors, sums
LENGTH, PASSES, BLOCKS = 512, 200, 132
WARPS = (1, 2, 4)  # of a scheduler
# Dataflows: a square; an outer product, as of a register tile; drawn until a coin that falls so often says whether sum
# and factors shall be alike, all of even or all of odd number; drawn. The assembler then chooses registers of its own.
FLOWS = ("square", "rows", "0", "0.05", "0.1", "0.2", "0.4", "0.7", "1", "drawn")
SEEDS = (1, 2)
_FFMA = re.compile(r"FFMA R\d+, (-?\|?R\d+)(\.reuse)?, (-?\|?R\d+)(\.reuse)?, (-?\|?R\d+)(\.reuse)?")


def multiply_adds(flow: str, seed: int) -> list[tuple[str, str, str]]:
    """Return the operands of each: sum, and two factors."""
    rng, found = random.Random(seed), []
    for n in range(LENGTH):
        c = n % C
        if flow == "rows":
            a, b = n // C % A, n % B
        elif flow == "square":
            a = b = rng.randrange(A)
        elif flow == "drawn":
            a, b = rng.randrange(A), rng.randrange(B)
        else:
            while True:
                a, b = rng.randrange(A), rng.randrange(B)
                if (a % 2 == b % 2 == c % 2) == (rng.random() < float(flow)):
                    break
        found.append((f"c{c}", f"a{a}", f"a{a}" if flow == "square" else f"b{b}"))
    return found


def source(flow: str, seed: int) -> str:
    """Return a kernel that repeats a drawn dataflow, and tells the clocks of each warp."""
    names = [f"{x}{i}" for x, n in (("a", A), ("b", B), ("c", C)) for i in range(n)]
    loads = "\n".join(f"    float {name} = in[threadIdx.x + {64 * k}];" for k, name in enumerate(names))
    body = "\n".join(f"        {c} = fmaf({a}, {b}, {c});" for c, a, b in multiply_adds(flow, seed))
    return f"""
extern "C" __global__ void __launch_bounds__(512) flow(const float *in, float *out, long long *clocks, int n) {{
{loads}
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < n; i++) {{
{body}
    }}
    long long end = clock64();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = {" + ".join(names)};
    if (threadIdx.x % 32 == 0) clocks[i / 32] = end - begin;
}}"""


def read(cubin: bytes) -> dict[str, float]:
    """Return shares of the multiply-adds: with three registers from one bank, with two, with a register kept."""
    kept: dict[int, str] = {}
    three = two = flags = count = 0
    for row in disassemble(cubin, "flow"):
        found = _FFMA.search(row.text)
        if not found:
            kept = {}
            continue
        registers = {slot: re.sub(r"\D", "", found[2 * slot + 1]) for slot in range(3)}
        fresh = [int(one) for one in {name for slot, name in registers.items() if kept.get(slot) != name}]
        kept = {slot: name for slot, name in registers.items() if found[2 * slot + 2]}
        most = max(sum(one % 2 == bank for one in fresh) for bank in (0, 1))
        three, two, flags, count = three + (most == 3), two + (most == 2), flags + bool(kept), count + 1
    return {"three": three / count, "two": two / count, "kept": flags / count}


def by_ports(cubin: bytes) -> float:
    """Return the clocks of a multiply-add as the model has them."""
    return clocks_each(tuple(row.text for row in disassemble(cubin, "flow") if _FFMA.search(row.text)))


def clocks(cubin: bytes) -> dict[str, float]:
    """Return clocks of a scheduler per multiply-add, by its warps: of each block the slowest warp, the median."""
    import cupy

    module = cupy.cuda.function.Module()
    module.load(cubin)
    kernel = module.get_function("flow")
    given = cupy.asarray(np.random.default_rng(5).uniform(-1e-3, 1e-3, 2**13).astype(np.float32))
    found = {}
    for warps in WARPS:
        threads = 128 * warps
        out, taken = cupy.zeros(BLOCKS * threads, np.float32), cupy.zeros(BLOCKS * threads // 32, np.int64)
        for _ in range(3):
            kernel((BLOCKS,), (threads,), (given, out, taken, np.int32(PASSES)))
        slowest = np.median(taken.get().reshape(BLOCKS, -1).max(axis=1))
        found[str(warps)] = float(slowest) / (PASSES * LENGTH * warps)
    return found


def measured() -> list[dict[str, Any]]:
    """Return a row for each dataflow."""
    rows = []
    for seed in SEEDS:
        for flow in FLOWS:
            cubin = compile_cubin(source(flow, seed), "flow.cu", 90)
            rows.append({"flow": flow, "seed": seed, **read(cubin), "clocks": clocks(cubin)})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows, as README has them: shares in per cent, clocks with four warps."""
    lines = [
        "| dataflow | three registers of one bank | two | one kept | clocks |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        shares = (f"{100 * row[key]:.0f} %" for key in ("three", "two", "kept"))
        lines.append(f"| {row['flow']} | {' | '.join(shares)} | {row['clocks']['4']:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    timing.require_gpu()
    about = timing.machine()
    record = {"device": about["device"], "date": about["date"], "rows": timing.rounded(measured())}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table(record["rows"]))
