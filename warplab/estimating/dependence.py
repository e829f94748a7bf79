"""What in a kernel's machine code depends on the number of the thread, and what on values that were loaded.

Code between barriers that only some warps of a block run, all others wait for. What one warp in eight runs, as the end
of a sum by the first warp, is an eighth of a time for a warp on average, but one for the block. Where all warps do
alike, and a condition that changes from pass to pass leaves code out, the average is right. So it matters whether a
branch depends on the thread. Loads whose places were loaded, as by a list of neighbours, read anywhere.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from warplab.estimating.work import Work

_REGISTER = re.compile(r"\b(U?[RP])(\d+)\b")
_LOADS, _ATOMICS, _JUMPS = ("LDG", "LD"), ("ATOM", "ATOMG", "ATOMS"), ("BRA", "EXIT")
_WITHOUT_RESULT = (*_JUMPS, *("LDGSTS", "ST", "STG", "STS", "STL", "RED", "REDG", "BAR", "BSSY", "BSYNC", "WARPSYNC"))
_CARRIES = ("IADD3", "LEA", "UIADD3", "ULEA", "IMAD", "VIADD")  # may write predicates after their result
_PAIRS = ("DADD", "DMUL", "DFMA")
_LESS = 0.999  # of the warps that come to a block of code, below which some have left before


class _Operands(NamedTuple):
    """Of an instruction: whether a predicate guards it, its name, and the registers that it writes and reads."""

    guarded: bool
    name: str
    writes: frozenset[str]
    reads: frozenset[str]


class _Followed(NamedTuple):
    """Blocks of code at whose ends warps of a thread block may part, and rows that load from places that were
    loaded."""

    parting: frozenset[int]
    looked_up: frozenset[int]


def looked_up(work: Work) -> float:
    """Return the share of loads from global memory whose places depend on what was loaded before (0 to 1)."""
    loads = [(number, row.warps) for number, row in enumerate(work.rows) if row.name in _LOADS]
    every, found = sum(warps for _, warps in loads), _followed(_texts(work)).looked_up
    return sum(warps for number, warps in loads if number in found) / every if every else 0.0


def of_longest_warp(work: Work) -> list[float]:
    """Return, for each block of code, how often the longest warp of a thread block runs it for each time that a warp
    does on average: 1 without barriers, and where nothing says more."""
    code, barriers = work.code, [row for row in work.rows if row.name == "BAR" and row.warps]
    if not barriers:
        return [1.0] * len(code)
    passes = {-1: work.warps}  # between barriers, of all warps, by loop; code outside loops runs once
    for row in barriers:
        passes[code[row.block].loop] = max(passes.get(code[row.block].loop, 0.0), row.warps)
    parting = _followed(_texts(work)).parting
    shares: list[float] = []  # of the warps of a thread block that run it
    for k, block in enumerate(code):
        if block.loop in passes:
            shares.append(_share(work, k, passes[block.loop], parting, shares))
        else:  # a loop between barriers: of the warps that come to it
            shares.append(shares[-1] if k and code[k - 1].loop in (block.loop, *passes) else 1.0)
    return [min(1.0, share * work.warps_per_block) / share for share in shares]


def _share(work: Work, k: int, passes: float, parting: frozenset[int], shares: Sequence[float]) -> float:
    """Return the share of a thread block's warps that run a block of code: of those that came to the nearest one before
    it at which some left, if they left by their own numbers or values."""
    code, here = work.code, work.code[k].warps
    for before in range(k - 1, -1, -1) if here else ():
        last, come = work.rows[code[before].end - 1], min(passes, code[before].warps)
        if last.text.startswith("EXIT"):
            break
        if code[before].loop == code[k].loop and here < _LESS * come and last.name in _JUMPS:
            return shares[before] * (here / come if before in parting else 1.0)
    return 1.0


def _texts(work: Work) -> tuple[tuple[str, int, int], ...]:
    """Return the machine code as texts with their blocks and loops."""
    return tuple((row.text, row.block, work.code[row.block].loop) for row in work.rows)


@functools.lru_cache(maxsize=64)
def _followed(rows: tuple[tuple[str, int, int], ...]) -> _Followed:
    last_of = {loop: number for number, (_, _, loop) in enumerate(rows)}
    nothing: tuple[set[str], set[str]] = set(), set()
    ends: dict[int, tuple[set[str], set[str]]] = {}
    parting: set[int] = set()
    found: set[int] = set()
    for _ in range(2):  # the second time with what comes round a loop
        # Registers that depend on the thread, and on what was loaded; the same at the last branch that some do not take
        of_thread: set[str] = set()
        loaded: set[str] = set()
        jumped = nothing
        begun = {-1}
        for number, (text, block, loop) in enumerate(rows):
            if loop not in begun:
                begun.add(loop)
                of_thread, loaded = (a | b for a, b in zip((of_thread, loaded), ends.get(loop, nothing), strict=True))
            guarded, name, writes, reads = _operands(text)
            varies = "SR_TID" in text or name in _ATOMICS or not of_thread.isdisjoint(reads)
            looks_up = not loaded.isdisjoint(reads)
            if name in _JUMPS:
                if varies:
                    parting.add(block)
                if guarded:
                    jumped = set(of_thread), set(loaded)
                elif text.startswith(("BRA (", "EXIT")):  # what follows comes from elsewhere
                    of_thread, loaded = (set(of) for of in jumped)
            if name in _LOADS and looks_up:
                found.add(number)
            if varies or not guarded:
                of_thread = of_thread | writes if varies else of_thread - writes
            loaded = loaded | writes if looks_up or name in (*_LOADS, *_ATOMICS) else loaded - writes
            if last_of[loop] == number:
                ends[loop] = of_thread, loaded
    return _Followed(frozenset(parting), frozenset(found))


@functools.lru_cache(maxsize=4096)
def _operands(text: str) -> _Operands:
    guard, _, rest = text.partition(" ") if text.startswith("@") else ("", "", text)
    opcode, _, listed = rest.partition(" ")
    operands, name = listed.split(", "), opcode.partition(".")[0]
    results = 0 if name in _WITHOUT_RESULT else 2 if _is_predicate(operands[0]) else 1
    while name in _CARRIES and results and len(operands) > results and _is_predicate(operands[results]):
        results += 1
    writes = _registers(operands[:results])
    words = 4 if ".128" in opcode else 2 if ".64" in opcode or ".WIDE" in opcode or name in _PAIRS else 1
    for kind, first in _REGISTER.findall(operands[0]) if results else ():
        writes |= {f"{kind}{int(first) + k}" for k in range(words)}
    return _Operands(bool(guard), name, writes, _registers([guard, *operands[results:]]))


def _is_predicate(operand: str) -> bool:
    return operand.startswith(("P", "UP"))


def _registers(operands: Sequence[str]) -> frozenset[str]:
    return frozenset(kind + number for kind, number in _REGISTER.findall(" ".join(operands)))
