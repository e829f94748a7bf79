"""How long a scheduler's instructions wait for the ports of the register file.

Its registers lie in two banks, those of even and of odd number, each with a port that reads a register of a warp per
clock. An instruction of fixed latency is held back until what it reads fits into the next three clocks. What it marks
`.reuse` is kept until another reads from the same bank as the same operand (Huerta et al., "Dissecting and Modeling the
Architecture of Modern GPU Cores", MICRO 2025, section 5.3, which fits almost all that they measured). Nothing of that
is fitted: of the multiply-adds of evidence/estimates/register_banks.json, on an H200, the clocks come out 2 % too few
in the mean, and 7 % at worst.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Sequence

from warplab.estimating.work import Row, Work

WINDOW = 3  # clocks in which an instruction reads its registers
PIPES = ("FMA", "ALU")  # of fixed latency; others read theirs in queues of their own
_REGISTER = re.compile(r"\bR(\d+)\b")
_PREDICATE = re.compile(r"!?U?P")

Reads = tuple[int, int]  # registers of either bank


class Ports:
    """Which clocks the ports of both banks are taken in."""

    def __init__(self) -> None:
        self._taken: tuple[set[int], set[int]] = set(), set()

    def wait(self, time: float, reads: Reads) -> int:
        """Return for how many clocks after `time` an instruction that reads so many registers is held back."""
        begin = clock = math.ceil(time)
        while any(
            sum(at not in taken for at in range(clock, clock + WINDOW)) < registers
            for registers, taken in zip(reads, self._taken, strict=True)
        ):
            clock += 1
        for registers, taken in zip(reads, self._taken, strict=True):
            taken.update([at for at in range(clock, clock + WINDOW) if at not in taken][:registers])
        return clock - begin


def issue_clocks(work: Work) -> float:
    """Return the clocks in which a scheduler alone would issue what all warps of a launch execute, one for each
    instruction and those in which it waits for registers."""
    rows = work.rows
    return sum(
        sum(row.warps for row in rows[one.first : one.end]) * clocks_each(_texts(rows[one.first : one.end]))
        for one in work.code
        if one.warps
    )


def reads_of(rows: Sequence[Row]) -> tuple[Reads, ...]:
    """Return what each of some instructions in a row reads of either bank."""
    return reads(_texts(rows))


def _texts(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(row.text if row.pipe in PIPES else "" for row in rows)


@functools.lru_cache(maxsize=4096)
def clocks_each(texts: tuple[str, ...]) -> float:
    """Return the clocks of each of a row of instructions, on average."""
    ports, clock = Ports(), 0
    for one in reads(texts):
        clock += ports.wait(clock, one) + 1
    return clock / len(texts)


@functools.lru_cache(maxsize=4096)
def reads(texts: tuple[str, ...]) -> tuple[Reads, ...]:
    """Return what each of a row of instructions reads of either bank; "" is one that needs no port."""
    kept: dict[tuple[int, int], int] = {}
    found = []
    for text in texts:
        banks: tuple[set[int], set[int]] = set(), set()
        for place, register, keep in _operands(text):
            at = place, register % 2
            if kept.pop(at, None) != register:
                banks[register % 2].add(register)
            if keep:
                kept[at] = register
        found.append((len(banks[0]), len(banks[1])))
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def _operands(text: str) -> tuple[tuple[int, int, bool], ...]:
    """Return places and numbers of the registers that an instruction reads, and whether it keeps them."""
    sources = [one for one in text.split(", ")[1:] if not _PREDICATE.match(one)]
    found = ((place, _REGISTER.search(one), ".reuse" in one) for place, one in enumerate(sources))
    return tuple((place, int(register[1]), keep) for place, register, keep in found if register)
