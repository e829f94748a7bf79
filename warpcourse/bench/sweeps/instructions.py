"""Cycles of instructions: their latency, how many a multiprocessor does, and inner loops of matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpcourse.bench.sweeps.sweep import CHAINS, LOOPS, SMS, STEPS, TILES, cycles, registers

LENGTH, ROUNDS = 32, 32  # as in instructions.cu
FLOATS = {"ffma", "fadd", "fmnmx", "ex2", "rsqrt", "sin", "tanh", "f2f_half"}
DOUBLES = {"dfma", "dadd"}
FILE = "instructions.cu"


def chains() -> Iterator[dict[str, Any]]:
    """Measure cycles of an instruction in a chain: `latency` in one warp, `apart` per instruction of any of 32
    warps."""
    for step in STEPS:
        kind = np.float64 if step in DOUBLES else np.float32 if step in FLOATS else np.uint32
        yield {"step": step, **_chain(f"chain_{step}", (kind(1),))}
    for width in (1, 2, 4):
        for apart in (0, width):
            yield {
                "step": "lds",
                "words": width,
                "apart_words": apart,
                **_chain(f"chain_lds<{width}", (np.int32(apart),)),
            }


def _chain(name: str, first: tuple) -> dict[str, float]:
    found = {}
    for chains, block, what in zip(CHAINS, (32, 1024), ("latency", "apart"), strict=True):
        entry = f"{name}, {chains}>" if "<" in name else f"{name}<{chains}>"
        each = cycles(FILE, entry, SMS, block, first) / (LENGTH * ROUNDS * chains)
        found[what] = each if what == "latency" else each / (block // 32)
    return found


def loops(rounds: int = 256) -> Iterator[dict[str, Any]]:
    """Measure cycles of a pass of a loop of `length` multiply-adds in each of `ways` parts of a warp, by warps of an
    SM."""
    for length, ways in LOOPS:
        for warps in (4, 8, 16, 32):
            spent = cycles(FILE, f"loops<{length}, {ways}>", SMS, 32 * warps, (np.int32(rounds), np.float32(1)))
            yield {"length": length, "ways": ways, "warps": warps, "cycles": spent / rounds}


def latencies(rounds: int = 256) -> Iterator[dict[str, Any]]:
    """Measure cycles from an atomic to the next that needs its result, and of loads from constant memory."""
    import cupy

    data = cupy.zeros(1024, np.uint32)
    for place in (0, 1):
        spent = cycles(FILE, "chain_atomic", 1, 32, (data, np.int32(place), np.int32(rounds)))
        yield {"what": ("shared atomic", "global atomic")[place], "latency": spent / rounds}
    yield {"what": "constant", "latency": cycles(FILE, "chain_constant", 1, 32, (np.int32(rounds),)) / rounds}


def tiles(rounds: int = 64) -> Iterator[dict[str, Any]]:
    """Measure cycles of a row of `side` by `side` products in each of 256 threads, by blocks on a multiprocessor."""
    for side, vector, barriers in TILES:
        entry = f"tile<{side}, {vector}, {barriers}>"
        for blocks in (1, 2, 4):
            used = registers(FILE, entry)
            if blocks * 256 * -(-used // 8) * 8 > 65536:
                continue
            spent = cycles(FILE, entry, blocks * SMS, 256, (np.int32(rounds),))
            yield {
                "side": side,
                "vector": vector,
                "barriers": barriers,
                "blocks": blocks,
                "registers": used,
                "cycles": spent / (8 * rounds),
            }
