"""The comparisons of `tools.ncu` as pages: counters.md beside the kernels of each topic."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools import ncu
from warpcourse.bench import timing
from warplab.text.tables import markdown

_NOTE = (
    "<!-- Written by `make compare-ncu`; do not edit. --> The rules behind the counts: "
    "[docs/simulator.md](../../docs/simulator.md#how-counters-count)."
)


def summary(comparisons: Iterable[ncu.Comparison]) -> str:
    """Return a table by counter: compared, equal, within what is allowed, largest difference."""
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
            apart = 100 * max((c.apart for c in own if math.isfinite(c.apart)), default=0)
            largest = f"{apart:.1f} {'points' if name == ncu.EFFICIENCY else '%'}"
            rows.append((ncu.LABELS[name], len(own), sum(c.equal for c in own), within, beyond, largest))
    return rows


def path(topic: str) -> Path:
    """Return where the page of a topic is."""
    return ncu.folder(topic) / "counters.md"


def page(topic: str, recorded: dict[str, Any], comparisons: list[ncu.Comparison]) -> str:
    """Return the page of a topic: what was compared, a summary by counter, and each difference with its reason."""
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
    """Return a table for each section of launches in which something differs, and the reasons below it."""
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
    """Tell whether the page lists a comparison: the two numbers differ as they are written."""
    ours, theirs = _numbers(c)
    return ours != theirs


def _numbers(c: ncu.Comparison) -> tuple[str, str]:
    """Return both numbers as text, the warp efficiency in per cent."""
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
