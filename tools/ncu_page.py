"""The comparisons of `tools.ncu` as pages: docs/counters.md with the rules, and counters.md beside a lab's kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools import ncu
from warplab.bench import timing
from warplab.paths import COURSE
from warplab.text.tables import markdown

PAGE = COURSE / "docs" / "counters.md"
_RULES = """\
# Counters: Nsight Compute and the simulator

<!-- Written by `make compare-ncu`; do not edit. -->

The same launches run on a GPU under `ncu` and in the simulator: here those of `kernels/counters/`, one for each pattern
that is counted. Those of a lab are compared on a page beside its kernels ([labs.md](labs.md)).

## Rules

- **Requests and sectors of global memory** are those of the L1 cache: one request per instruction and warp, and the
  distinct sectors of 32 bytes that it touches, whatever the width of the access. Bytes count each address once per
  warp. ncu's metric of bytes leaves out the copies of `cp.async` (LDGSTS), whose sectors it does count; the simulator
  counts both.
- **Wavefronts of shared memory**: each serves one word from each of the 32 banks, and lanes that read the same word
  share it. Accesses of 8 bytes are served by half-warps, accesses of 16 bytes by quarter-warps. Loads take two of these
  parts together where, throughout the warp, lane i reads what lane i ^ 1 reads, or lane i what lane i ^ 2 reads, or one
  of the two is idle; stores never do. `ldmatrix` takes eight rows at a time. Conflicts are the wavefronts beyond one
  for each part that has an active lane.
- **Copies of `cp.async`** write to shared memory as stores do, by half- and quarter-warps, but each lane on its own,
  even where several write or read one word. Through the L1 cache (`.ca`) their source is read from 32 banks, too: a
  part takes as many wavefronts as its busiest bank on either side. Evidence: the 48 launches with elements 0 to 16
  apart. Past the L1 cache (`.cg`, 16 bytes), the bytes that go from one line of 128 bytes in global memory to one line
  in shared memory go together, provided that all of them keep their half of a sector, or all change it, and that each
  wavefront fills a sector of the target from one sector of the source. So rows that begin in the middle of a sector
  take twice as many wavefronts, and each row that crosses a line takes one more; and a request counts the sectors of
  the target, if they are more than those of the source. Evidence: the ten launches with tiles, of which the swizzled
  one with 64 bytes and both padded ones tell this rule from that of `.ca`. Of copies past the L1 cache ncu reports no
  conflicts, whatever wavefronts they take (61 launches read on an H100, 2026-11-23).
- **Predicates**: a warp whose predicate is false for all lanes still executes a load or store of shared memory, which
  counts as one; in global memory it makes no request.
- **Fused accesses**: `ptxas` fuses neighbouring 4-byte accesses of a basic block into one of 8 or 16 bytes where it can
  prove the alignment. They may belong to several variables, which it lays one after another at their `.align`; where
  three of four words are loaded, it loads the fourth too. The simulator does the same
  (`warplab/simulator/translate/access_fusion.py`), so that the row of `A` in a tiled matrix product is read four words
  at a time.
- **Atomic operations**: lanes with the same address take turns. On global memory each turn touches its sectors anew. On
  shared memory each lane takes a wavefront of its bank, except where 1 is added and the result is not used
  (`ATOMS.POPC.INC`). Where all lanes add an integer to one address, `ptxas` lets a single lane add the warp's sum.
- **Branches** are the conditional branches of the machine code, counted once per warp. They leave out predicated short
  conditions and the guard `if (i < n)` of a whole kernel, which ends threads by a predicated exit. They include the
  branch around the slow path that each division and square root has for rare arguments.
- **Warp efficiency** is `smsp__thread_inst_executed_per_inst_executed.ratio` / 32: the threads that take part in an
  instruction, whether its predicate holds for them or not. The simulator weighs each PTX instruction by the number of
  machine instructions that `ptxas` makes of it, and treats short conditions as predicated
  (`warplab/simulator/translate/ptxas_model.py`). Both rules were read from the machine code of these kernels; on others
  expect a somewhat larger difference. [machine_counts.md](machine_counts.md) counts the machine code itself.

Allowed: no difference; 2 points for the warp efficiency. A launch may allow more and then says why. Branches may
differ, since `ptxas` unrolls some loops further."""
_NOTE = (
    "<!-- Written by `make compare-ncu`; do not edit. --> The rules behind the counts: "
    "[docs/counters.md](../../docs/counters.md)."
)


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


def path(topic: str) -> Path:
    """Where the page of a topic is."""
    return PAGE if topic == ncu.COUNTERS_TOPIC else ncu.folder(topic) / "counters.md"


def page(topic: str, recorded: dict[str, Any], comparisons: list[ncu.Comparison]) -> str:
    """The page of a topic: what was compared, a summary by counter, and each difference with its reason."""
    if topic == ncu.COUNTERS_TOPIC:
        parts = [_RULES]
    else:
        parts = [f"# Counters of {ncu.title(topic)}: Nsight Compute and the simulator", _NOTE]
    parts += ["## Summary", f"{recorded['device']}, ncu {recorded['ncu']}, {recorded['date']}.", _sentence(comparisons)]
    if any(newer := ncu.unrecorded(topic, recorded)):
        parts.append(_newer(*newer))
    header = ("counter", "launches that count it", "equal", "within what is allowed", "beyond", "largest difference")
    parts.append(markdown(header, _summary_rows(comparisons), numbers=True))
    parts += ["## Differences", *_differences(topic, comparisons)]
    return "\n\n".join(parts) + "\n"


def _sentence(comparisons: list[ncu.Comparison]) -> str:
    counters = [c for c in comparisons if c.counter != ncu.EFFICIENCY and (c.ncu or c.simulator)]
    apart = max((abs(c.ncu - c.simulator) for c in comparisons if c.counter == ncu.EFFICIENCY), default=0)
    return (
        f"{len({c.launch for c in comparisons})} launches under `ncu` and in the simulator: of {len(counters):,} "
        f"counters {sum(not c.equal for c in counters)} differ, {sum(not c.holds for c in comparisons)} by more than "
        f"is allowed; warp efficiencies by at most {100 * apart:.1f} points."
    )


def _differences(topic: str, comparisons: list[ncu.Comparison]) -> Iterable[str]:
    """A table for each section of launches in which something differs, and the reasons below it."""
    sections: dict[str, list[ncu.Comparison]] = {}
    section = {launch.name: launch.section for launch in ncu.launches(topic)}
    for c in comparisons:
        if _shown(c):
            sections.setdefault(section[c.launch], []).append(c)
    if not sections:
        yield "None."
    for title, own in sections.items():
        reasons = list(dict.fromkeys(c.difference.reason for c in own if c.difference))
        rows = [
            (
                c.launch,
                ncu.LABELS[c.counter],
                *_numbers(c),
                str(reasons.index(c.difference.reason) + 1) if c.difference else "",
            )
            for c in own
        ]
        if title:
            yield f"### {title}"
        yield markdown(("launch", "counter", "ncu", "simulator", "why"), rows)
        if reasons:
            yield "\n".join(f"{k}. {reason}" for k, reason in enumerate(reasons, 1))


def _shown(c: ncu.Comparison) -> bool:
    """Whether the page lists a comparison: the two numbers differ as they are written."""
    ours, theirs = _numbers(c)
    return ours != theirs


def _numbers(c: ncu.Comparison) -> tuple[str, str]:
    """Both numbers as text, the warp efficiency in per cent."""
    if c.counter == ncu.EFFICIENCY:
        return f"{100 * c.ncu:.1f} %", f"{100 * c.simulator:.1f} %"
    return str(c.ncu), str(c.simulator)


def _newer(launches: list[str], counters: list[str]) -> str:
    what = [f"{len(launches)} launches"] if launches else []
    what += [ncu.LABELS[name] for name in counters]
    return f"Newer than the recording, and so not compared: {', '.join(what)}."


def write(topic: str, recorded: dict[str, Any], comparisons: list[ncu.Comparison]) -> None:
    """Write the page of a topic."""
    path(topic).write_text(page(topic, recorded, comparisons))
