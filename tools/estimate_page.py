"""docs/estimate.md and what estimates say of their own error: written from the errors of all groups of launches.

`python -m tools.estimate_page` reads what was put aside, so it runs when the model is final.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence

from tools.estimate_error import FAR, NEAR, Result, percent, result, summary
from tools.estimate_model import model_hash
from tools.timed_work import FIRST, GROUPS, HELD_OUT, OPEN, group, timed
from warplab.estimating.rates import rates
from warplab.hardware.cards import CARDS
from warplab.paths import COURSE
from warplab.text.tables import duration, markdown

PAGE = COURSE / "docs" / "estimate.md"
ERROR = COURSE / "warplab" / "estimating" / "error.json"
TEXT = COURSE / "tools" / "estimate_page.md"  # what the page says beside the tables
FIRST_READING = COURSE / "tools" / "unseen_launches" / "first_reading.json"
WORST = 10  # of the set held out
# Kernels whose worst launches the model was changed for after the first reading.
CHANGED = ("gather", "hash_insert", "merge_path", "scatter", "layer_norm", "permute_nchw_nhwc")
Groups = Mapping[str, Sequence[Result]]


def first_reading() -> list[Result]:
    """What the first reading of the first set's held-out half said, with the model as it was then."""
    kept = json.loads(FIRST_READING.read_text(encoding="utf-8"))
    origin = f"{kept['device']}, {kept['date']}"
    return [
        Result(name, r["recorded"], r["estimated"], r["bound"], r["limit"], origin, name.split(", ")[1])
        for name, r in kept["launches"].items()
    ]


def page(groups: Groups, first: Sequence[Result], missing: int = 0) -> str:
    """The page: what is estimated and how, the errors of each group, the worst launches, all launches, the rates.

    `groups`: results by the groups of `timed_work`. `first`: of the first reading. `missing`: unseen launches that have
    not been recorded.
    """
    labs, opened, read, held_out = (groups[name] for name in GROUPS)
    rows = [
        [name, str(len(part)), *_figures([r.error for r in part]), *_figures([r.bound_error for r in part])]
        for name, part in (
            ("unseen, second set, held out", held_out),
            ("unseen, first set, held out, at its first reading", first),
            ("the same, now", read),
            ("unseen, first set, open", opened),
            ("labs 01 to 05, published before", labs),
        )
    ]
    head = ["launches", "number", "mean error", "within 15 %", "within 30 %"]
    return TEXT.read_text(encoding="utf-8").format(
        errors=markdown([*head, "roofline: mean error", "within 15 %", "within 30 %"], rows, numbers=True),
        first_kernels=f"{_kernels(opened)} kernels are open, {_kernels(read)} were held out",
        second_kernels=f"{_kernels(held_out)} kernels, {len(held_out)} launches",
        missing=f"{missing} of the unseen launches have not been recorded and are not counted. " if missing else "",
        verdict=_verdict([r.error for r in held_out]),
        first_verdict=_verdict([r.error for r in first]),
        limits=markdown(["limit", *head[1:]], _by_limit(held_out), numbers=True),
        all_limits=markdown(["limit", *head[1:]], _by_limit([*labs, *opened, *read, *held_out]), numbers=True),
        labs_by_lab=markdown(["lab", *head[1:]], _by_kind(labs), numbers=True),
        by_kernel=markdown(["kernel", "set", *head[1:]], _by_kernel(groups)),
        origins_of_labs=_origins(labs),
        origins=_origins([*opened, *read, *held_out]),
        worst=_table(sorted(held_out, key=lambda r: -abs(r.error))[:WORST]),
        changed=markdown(["kernel", "at the first reading", "now"], _changed(first, read)),
        first_worst=_table(sorted(first, key=lambda r: -abs(r.error))[:WORST]),
        labs=_table(labs),
        open=_table(opened),
        read=_table(read),
        held_out=_table(held_out),
        rates=_rates(),
    )


def _kernels(results: Sequence[Result]) -> int:
    return len({r.kind for r in results})


def _origins(results: Sequence[Result]) -> str:
    return "; ".join(sorted({r.origin for r in results}))


def _verdict(errors: Sequence[float]) -> str:
    """Whether the goal is reached."""
    sizes = [abs(error) for error in errors]
    far = sum(size <= FAR for size in sizes)
    reached = {True: "reached", False: "not reached"}
    return (
        f"the first is {reached[statistics.fmean(sizes) <= NEAR]} ({100 * statistics.fmean(sizes):.1f} %), "
        f"the second {reached[far >= 0.9 * len(sizes)]} ({far} of {len(sizes)})"
    )


def _figures(errors: Sequence[float]) -> list[str]:
    sizes = [abs(error) for error in errors]
    return [
        f"{100 * statistics.fmean(sizes):.1f} %",
        *(f"{100 * sum(size <= limit for size in sizes) / len(sizes):.0f} %" for limit in (NEAR, FAR)),
    ]


def _by_kind(results: Sequence[Result]) -> list[list[str]]:
    """A row per lab or kernel, in the order of `results`."""
    kinds = {r.kind: [one.error for one in results if one.kind == r.kind] for r in results}
    return [[kind, str(len(errors)), *_figures(errors)] for kind, errors in kinds.items()]


def _by_kernel(groups: Groups) -> list[list[str]]:
    names = {HELD_OUT: "second, held out", FIRST: "first, held out first", OPEN: "first, open"}
    return sorted([f"`{row[0]}`", said, *row[1:]] for name, said in names.items() for row in _by_kind(groups[name]))


def _changed(first: Sequence[Result], now: Sequence[Result]) -> list[list[str]]:
    """Mean errors of kernels before and after the model was changed for what was worst in the first reading."""
    before, after = ({row[0]: row[2] for row in _by_kind(part)} for part in (first, now))
    return [[f"`{kernel}`", before[kernel], after.get(kernel, "")] for kernel in CHANGED if kernel in before]


def _errors_by_limit(results: Sequence[Result]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for r in results:
        found.setdefault(r.limit, []).append(r.error)
    return found


def _by_limit(results: Sequence[Result]) -> list[list[str]]:
    ordered = sorted(_errors_by_limit(results).items(), key=lambda item: -len(item[1]))
    return [[limit, str(len(errors)), *_figures(errors)] for limit, errors in ordered]


def _table(results: Sequence[Result]) -> str:
    rows = [
        [r.name, duration(r.recorded), duration(r.estimated), percent(r.error), r.limit, percent(r.bound_error)]
        for r in results
    ]
    return markdown(["launch", "recorded", "estimate", "error", "limit", "roofline's error"], rows)


def _rates() -> str:
    names = [name for name in vars(rates("H100")) if name not in ("card", "sources", "validated")]
    rows = []
    for name in names:
        values = [f"{getattr(rates(card), name):.4g}" for card in CARDS]
        rows.append([f"`{name}`", *values, rates("H100").sources.get(name, "")])
    return markdown(["rate", *CARDS, "source (H100)"], rows)


def error(groups: Groups) -> dict[str, object]:
    """What the label of an estimate says: the error of the set that is held out, in all and by limit."""
    held_out = groups[HELD_OUT]
    sizes = [abs(r.error) for r in held_out]
    device, _, date = max(r.origin for r in held_out).rpartition(", ")
    return {
        "model": model_hash(),
        "device": device,
        "date": date,
        "launches": len(sizes),
        "mean_percent": round(100 * statistics.fmean(sizes), 1),
        "within_15": sum(size <= NEAR for size in sizes),
        "within_30": sum(size <= FAR for size in sizes),
        "limits": {
            limit: {"launches": len(errors), "mean_percent": round(100 * statistics.fmean(map(abs, errors)), 1)}
            for limit, errors in sorted(_errors_by_limit(held_out).items())
        },
    }


def main() -> int:
    """Write the page and error.json."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    calls = timed()
    groups = {name: [result(one) for one in group(name, calls)] for name in GROUPS}
    missing = len(calls) - sum(map(len, groups.values()))
    PAGE.write_text(page(groups, first_reading(), missing), encoding="utf-8")
    ERROR.write_text(json.dumps(error(groups), indent=1) + "\n", encoding="utf-8")
    for name, results in groups.items():
        print(f"{name}: {summary([r.error for r in results])}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
