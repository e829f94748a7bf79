"""Seconds that a launch's atomics need: those on global memory, which slices of the L2 do, and those on shared memory.

As swept on an H100 (sweeps.json: global_atomics, atomic_places, shared_atomics). A slice takes a sector of a request at
a time, and lanes that meet at a word of it come one after the other. Neighbouring lines share slices, so that few lines
leave most slices idle. Floating-point operations on one word take longer, one after the other. In shared memory lanes
that meet take turns; what the hardware has no instruction for, additions of floats and of 64 bits, is a loop that
tries again.
"""

from __future__ import annotations

import itertools
import math

from warplab.estimating.rates import L2_USED, Rates
from warplab.estimating.work import Work

# How many slices work at a time, by the lines that are in use: atomic_places up to 256, the mean of 24 places each, of
# which those of up to 16 lines were all alike; from 512 on global_atomics.
SLICES = {1: 1.0, 2: 1.0, 4: 2.1, 8: 2.0, 16: 3.9, 32: 7.5, 64: 13.3, 256: 29.0, 512: 36.0, 2048: 52.0, 8192: 62.0}
_FLOATS = (".F32", ".F64", ".F16x2", ".BF16x2", ".F16", ".BF16")
LINE_BYTES = 128
OFTEN = 3  # operations on a word, of those that were watched, from which on it counts as common
TURNS = {"": 1.0, "CAST": 3.0, "CAST64": 5.0, "CAS": 2.0}  # wavefronts for each turn of a lane


def global_seconds(work: Work, rates: Rates) -> tuple[float, float]:
    """Return seconds of the atomics on global memory if nothing else ran, and how many operations they are."""
    requests, counted = (work.counts.get(f"global_atomic_{what}", 0.0) for what in ("requests", "sectors"))
    if not requests:
        return 0.0, 0.0
    reuse, each = work.reuse, rates.atomic_clocks / rates.clock_hz
    watched = reuse.get("atomic_requests", 0.0)
    if not watched:  # nothing is known but the line that most go to
        return work.hottest * counted * each, counted
    operations = requests * reuse["atomics"] / watched
    passes = requests * reuse["atomic_passes"]
    # The whole launch may use more lines than the blocks that were watched.
    used = reuse.get("atomic_bytes", 0.0)
    lines = max(reuse["atomic_lines"], used / LINE_BYTES)
    # Integers that meet at a word take passes, as any; floating-point numbers wait for each other.
    floating = any(row.name in ("ATOM", "ATOMG", "RED", "REDG") and _is_floating(row.opcode) for row in work.rows)
    turn = rates.atomic_float_clocks / rates.clock_hz if floating else each
    at_once = slices(lines * reuse["even_lines"] / reuse["atomic_lines"])
    seconds = max(passes * each, requests * reuse["atomic_turns"] * turn) / at_once
    # What the L2 does not hold the memory reads and writes, as it does for stores that fill sectors in part.
    held = L2_USED * rates.card.l2_bytes
    lost = requests * reuse["sectors"] * (1 - held / used) if used > held else 0.0
    hottest = reuse["hottest_word"]
    if hottest * reuse["atomics"] < OFTEN:  # no word is common: each block may have its own
        hottest *= reuse["atomic_lines"] / lines
    return max(seconds, hottest * operations * turn, lost / rates.scattered_stores), operations


def _is_floating(opcode: str) -> bool:
    return any(kind in opcode for kind in _FLOATS)


def slices(lines: float) -> float:
    """Return slices of the L2 that serve so many neighbouring lines."""
    known = sorted(SLICES)
    if lines >= known[-1]:
        return SLICES[known[-1]]
    for low, high in itertools.pairwise(known):
        if low <= lines < high:
            part = math.log(lines / low) / math.log(high / low)
            return SLICES[low] + part * (SLICES[high] - SLICES[low])
    return SLICES[1]


def shared_wavefronts(work: Work) -> float:
    """Return clocks of an SM that the atomics on shared memory need, all SMs together."""
    wavefronts = work.counts.get("shared_atomic_wavefronts", 0.0)
    kinds = {_kind(row.opcode): row.warps for row in work.rows if row.name == "ATOMS"}
    every = sum(kinds.values())
    if not every:
        return wavefronts
    return wavefronts * sum(TURNS[kind] * warps for kind, warps in kinds.items()) / every


def _kind(opcode: str) -> str:
    if ".CAST" in opcode:
        return "CAST64" if ".64" in opcode else "CAST"
    return "CAS" if ".CAS" in opcode else ""
