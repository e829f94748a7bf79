"""docs/counters.md: the comparison of `tools.ncu` as one page."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tools import ncu
from warplab.bench import timing
from warplab.paths import COURSE
from warplab.text import tables

PAGE = COURSE / "docs" / "counters.md"
_INTRODUCTION = """\
# Counters: Nsight Compute and the simulator

Written by `make compare-ncu`. The same launches run on a GPU under `ncu` and on the simulator.
Hardware: {hardware}.

One number in a cell: both counted it. Two: ncu / **simulator**. The rules behind the counts:

- **Requests and sectors of global memory** are those of the L1 cache: one request an instruction and warp, and the
  distinct sectors of 32 bytes in it, whatever the width of the access. Bytes count an address once a warp; ncu's
  metric of them leaves out the copies of `cp.async` (LDGSTS), whose sectors it does count. The simulator counts both.
- **Wavefronts of shared memory**: each serves one word of each of the 32 banks, and lanes that share a word share it.
  Accesses of 8 bytes are served by half-warps, of 16 bytes by quarter-warps. Loads take two of these parts together
  where, throughout the warp, lane i reads what lane i ^ 1 reads, or lane i what lane i ^ 2 reads, or one of the two is
  idle; stores never do. `ldmatrix` takes eight rows at a time. Conflicts are the wavefronts beyond one for each part
  that has a lane.
- **Copies of `cp.async`** write to shared memory as stores do, by half- and quarter-warps, but each lane for itself,
  also where several write or read one word. Through the L1 cache (`.ca`) what they read comes out of 32 banks, too: a
  part takes as many wavefronts as its busiest bank on either side. Evidence: the 48 launches with elements 0 to 16
  apart. Past it (`.cg`, 16 bytes), what goes from one line of 128 bytes of global memory to one line of shared memory
  goes together, provided that all of it keeps its half of a sector, or all changes it, and that a sector of the target
  is filled from one sector of the source in each wavefront. So rows that begin in the middle of a sector take twice as
  many, and each row that crosses a line one more; and a request counts the sectors of the target, if they are more
  than those of the source. Evidence: the ten launches with tiles, of which 64 bytes swizzled and both padded ones tell
  this rule from that of `.ca`.
- **Merged accesses**: `ptxas` makes one access of 8 or 16 bytes of neighbouring 4-byte ones of a basic block where
  it can prove the alignment, also of words of several variables, which it lays one after another at their `.align`;
  three of four words it loads with the fourth. The simulator does the same (`warplab/simulator/translate/access_fusion.py`), so that
  the row of `A` in a tiled matrix product is read four words at a time.
- **Atomic operations**: lanes with one address take turns. On global memory each turn touches its sectors anew; on
  shared memory each lane takes a wavefront of its bank, except where 1 is added and the result not used
  (`ATOMS.POPC.INC`). For an integer added to an address that is the same for all, `ptxas` lets one lane add the
  warp's sum.
- **Branches** are the conditional ones of the machine code, once a warp: not the predicated short conditions, not the
  guard `if (i < n)` of a whole kernel, which ends threads by an exit under a predicate; but also the branch around the
  way for rare arguments that each division and square root has.
- **Warp efficiency** is `smsp__thread_inst_executed_per_inst_executed.ratio` / 32, threads that take part in an
  instruction, whether its predicate holds for them or not. The simulator weighs each PTX instruction by the number of
  machine instructions that `ptxas` makes of it, and takes short conditions as predicated
  (`warplab/simulator/translate/ptxas_model.py`). Both were read in the machine code of these kernels: on others expect somewhat more.
  `..._pred_on_...` (third number) counts only threads whose predicate holds, and so falls by one instruction in
  twenty for the guard `if (i < n)` alone, which is an exit under a predicate.

Allowed: no difference; 2 points for the warp efficiency. A launch may allow itself more and then says why. Branches may
differ, since `ptxas` unrolls some loops further.
"""


def summary(comparisons: Iterable[ncu.Comparison]) -> str:
    """A table by counter: compared, equal, within what is allowed, largest difference."""
    return timing.table(
        ("counter", "compared", "equal", "within", "beyond", "largest"), _summary_rows(list(comparisons))
    )


def _summary_rows(comparisons: list[ncu.Comparison]) -> list[tuple]:
    rows = []
    for name in (*ncu.COMPARED, ncu.EFFICIENCY):
        # Where neither counts anything there is nothing to compare.
        own = [c for c in comparisons if c.counter == name and (c.ncu or c.simulator)]
        if own:
            within = sum(c.holds and not c.equal for c in own)
            beyond = sum(not c.holds for c in own)
            largest = max((c.apart for c in own if math.isfinite(c.apart)), default=0)
            largest = f"{100 * largest:.1f} {'points' if name == ncu.EFFICIENCY else '%'}"
            rows.append((ncu.LABELS[name], len(own), sum(c.equal for c in own), within, beyond, largest))
    return rows


def document(results: dict[str, tuple[dict[str, Any], list[ncu.Comparison]]]) -> str:
    """The page, from what was recorded and the comparisons of each topic."""
    hardware = {f"{r['device']}, ncu {r['ncu']}, {r['date']} (`{t}`)" for t, (r, _) in results.items()}
    every = [c for _, comparisons in results.values() for c in comparisons]
    parts = [_INTRODUCTION.format(hardware="; ".join(sorted(hardware)))]
    parts.append("## Summary\n")
    header = ("counter", "launches that count it", "equal", "within what is allowed", "beyond", "largest difference")
    parts.append(_markdown(header, _summary_rows(every)))
    launches = sum(len(recorded["launches"]) for recorded, _ in results.values())
    beyond = sum(not c.holds for c in every)
    parts.append(f"{launches} launches, {len(every)} counters compared, {beyond} differ by more than is allowed.\n")
    parts += [
        _newer(topic, recorded) for topic, (recorded, _) in results.items() if any(ncu.unrecorded(topic, recorded))
    ]
    sections: dict[str, list[tuple[ncu.Launch, dict, list[ncu.Comparison]]]] = {}
    for topic, (recorded, comparisons) in results.items():
        for launch in ncu.launches(topic):
            if launch.name not in recorded["launches"]:
                continue
            own = [c for c in comparisons if c.launch == launch.name]
            entry = recorded["launches"][launch.name]["counters"]
            sections.setdefault(launch.section or topic, []).append((launch, entry, own))
    for title, rows in sections.items():
        parts += [f"## {title}\n", _section(rows)]
    return "\n".join(parts)


def _section(rows: list[tuple[ncu.Launch, dict, list[ncu.Comparison]]]) -> str:
    shown = [n for n in ncu.COMPARED if any(c.ncu or c.simulator for *_, own in rows for c in own if c.counter == n)]
    lines, notes = [], []
    for launch, entry, own in rows:
        cells = {c.counter: c for c in own}
        mark = "".join(dict.fromkeys(_note(notes, d) for d in launch.differences))
        efficiency = cells[ncu.EFFICIENCY]
        numbers = (100 * efficiency.ncu, 100 * efficiency.simulator, 100 * entry["threads_not_predicated_off"] / 32)
        lines.append(
            (
                launch.name + mark,
                *(_shape(x) for x in (launch.grid, launch.block)),
                *(_cell(cells.get(name)) for name in shown),
                "{:.1f} / **{:.1f}** / {:.1f}".format(*numbers),
            )
        )
    header = ("launch", "grid", "block", *(ncu.LABELS[name] for name in shown), "warp efficiency, %")
    explained = [f"{k}. {reason}" for k, reason in enumerate(notes, 1)]
    return "\n".join([_markdown(header, lines), *explained, ""] if explained else [_markdown(header, lines)])


def _note(notes: list[str], difference: ncu.Difference) -> str:
    if difference.reason not in notes:
        notes.append(difference.reason)
    return f" ({notes.index(difference.reason) + 1})"


def _newer(topic: str, recorded: dict[str, Any]) -> str:
    launches, counters = ncu.unrecorded(topic, recorded)
    what = [f"{len(launches)} launches"] if launches else []
    what += [ncu.LABELS[name] for name in counters]
    return f"Newer than the recording of `{topic}`, and so not compared: {', '.join(what)}.\n"


def _cell(c: ncu.Comparison | None) -> str:
    if c is None:  # not recorded
        return "–"
    return f"{c.ncu}" if c.equal else f"{c.ncu} / **{c.simulator}**"


def _shape(size: tuple[int, ...]) -> str:
    return f" {tables.TIMES} ".join(str(k) for k in size if k > 1) or "1"


def _markdown(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    header = list(header)
    lines = [f"| {' | '.join(header)} |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows]) + "\n"


def write(results: dict[str, tuple[dict[str, Any], list[ncu.Comparison]]]) -> None:
    """Writes docs/counters.md."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(document(results))
