"""The published error of estimates: launches.csv, the tables of README.md, and what estimates say of it (error.json).

`python -m evidence.estimates.publish` reads what was put aside, so it runs when the model is final.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from evidence.estimates.error import FAR, NEAR, Result, percent, result, summary
from evidence.estimates.timed_work import FIRST, GROUPS, HELD_OUT, group, timed
from tests.support.estimate_model import model_hash
from warpcourse.paths import COURSE
from warplab.text.tables import duration, markdown

FOLDER = Path(__file__).parent
PAGE = FOLDER / "README.md"
LAUNCHES = FOLDER / "launches.csv"
ERROR = COURSE / "warplab" / "estimating" / "error.json"
FIRST_READING = COURSE / "evidence" / "unseen_launches" / "first_reading.json"
HEAD = ("number", "mean error", "within 15 %", "within 30 %")
SAME = 0.05  # times that differ by less have no order
WORST = 10  # of the set held out
# Kernels whose worst launches the model was changed for after the first reading.
CHANGED = ("gather", "hash_insert", "merge_path", "scatter", "layer_norm", "permute_nchw_nhwc")
Groups = Mapping[str, Sequence[Result]]


def first_reading() -> list[Result]:
    """Return what the first reading of the first set's held-out half said, with the model as it was then."""
    kept = json.loads(FIRST_READING.read_text(encoding="utf-8"))
    origin = f"{kept['device']}, {kept['date']}"
    return [
        Result(name, r["recorded"], r["estimated"], r["bound"], r["limit"], origin, name.split(", ")[1])
        for name, r in kept["launches"].items()
    ]


def page(text: str, groups: Groups, first: Sequence[Result], missing: int = 0) -> str:
    """Return the page with its tables written anew, each between two comments with its name.

    `groups`: results by the groups of `timed_work`. `first`: of the first reading. `missing`: unseen launches that have
    not been recorded.
    """
    held_out = groups[HELD_OUT]
    tables = {
        "errors": _errors(groups, first, missing),
        "limits": markdown(["limit", *HEAD], _by_limit(held_out), numbers=True),
        "worst": _table(sorted(held_out, key=lambda r: -abs(r.error))[:WORST]),
        "first_worst": _table(sorted(first, key=lambda r: -abs(r.error))[:WORST]),
        "ranking": ranking([(r.name, r.recorded, r.estimated) for r in groups["labs"]]),
        "changed": markdown(["kernel", "at the first reading", "now"], _changed(first, groups[FIRST])),
    }
    for name, table in tables.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        before, _, rest = text.partition(start)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the page lacks the place of the table {name!r}: {start.strip()} ... {end.strip()}")
        text = before + start + table.strip() + end + after
    return text


def _errors(groups: Groups, first: Sequence[Result], missing: int) -> str:
    """Return what was timed where, the errors of each group, and whether the goal is reached."""
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
    left = f" {missing} of the unseen launches have not been recorded and are not counted." if missing else ""
    head = ["launches", *HEAD, "roofline: mean error", "within 15 %", "within 30 %"]
    return (
        f"The unseen launches were timed on {_origins([*opened, *read, *held_out])}; the labs' on\n"
        f"{_origins(labs)}.{left}\n\n{markdown(head, rows, numbers=True)}\n\n"
        "The goal was a mean error of 15 %, and nine of ten within 30 %, on kernels that played no part in building "
        f"the\nmodel. On the second set {_verdict([r.error for r in held_out])}. "
        f"At the first reading of the first set {_verdict([r.error for r in first])}."
    )


def ranking(labs: Sequence[tuple[str, float, float]]) -> str:
    """Return how estimates order kernels that do one task, where at least four are recorded.

    `labs`: a launch's name, and its times, recorded and estimated.
    """
    tasks: dict[str, list[tuple[float, float]]] = {}
    for name, *times in labs:
        lab, _, *task = re.split(r"(?:, |: )", name, maxsplit=2)
        if task:
            tasks.setdefault(f"{lab}, {task[0]}", []).append((times[0], times[1]))
    rows, right, all_pairs, kernels = [], 0, 0, 0
    for name, times in tasks.items():
        if len(times) < 4:
            continue
        pairs = [pair for pair in itertools.combinations(times, 2) if abs(math.log(pair[0][0] / pair[1][0])) > SAME]
        ordered = sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in pairs)
        ranks = [[sorted(column).index(time) for time in column] for column in zip(*times, strict=True)]
        correlation = statistics.correlation(*ranks)
        rows.append([name, str(len(times)), f"{correlation:.2f}", f"{ordered} of {len(pairs)}"])
        right, all_pairs, kernels = right + ordered, all_pairs + len(pairs), kernels + len(times)
    head = ["task", "kernels", "rank correlation", "pairs in the right order"]
    return (
        f"Of {all_pairs} pairs of kernels for one task whose recorded times differ by more than {100 * SAME:.0f} %, "
        f"estimates have\n{right} in the right order ({kernels} kernels, {len(rows)} tasks):\n\n"
        f"{markdown(head, rows, numbers=True)}"
    )


def launches(groups: Groups) -> str:
    """Return launches.csv: a row per launch, times in microseconds, three digits of each."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["group", "launch", "recorded_us", "estimate_us", "error_percent", "limit", "roofline_error_percent"])
    for name in GROUPS:
        for r in groups[name]:
            times = (f"{float(f'{1e6 * seconds:.3g}'):.10g}" for seconds in (r.recorded, r.estimated))
            rows.writerow([name, r.name, *times, round(100 * r.error), r.limit, round(100 * r.bound_error)])
    return text.getvalue()


def kept() -> list[dict[str, str]]:
    """Return the rows of launches.csv."""
    with LAUNCHES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


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
    """Return a row per lab or kernel, in the order of `results`."""
    kinds = {r.kind: [one.error for one in results if one.kind == r.kind] for r in results}
    return [[kind, str(len(errors)), *_figures(errors)] for kind, errors in kinds.items()]


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


def error(groups: Groups) -> dict[str, object]:
    """Return what the label of an estimate says: the error of the set that is held out, in all and by limit."""
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
    """Write launches.csv, the tables of the page, and error.json."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    calls = timed()
    groups = {name: [result(one) for one in group(name, calls)] for name in GROUPS}
    missing = len(calls) - sum(map(len, groups.values()))
    LAUNCHES.write_text(launches(groups), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), groups, first_reading(), missing), encoding="utf-8")
    ERROR.write_text(json.dumps(error(groups), indent=1) + "\n", encoding="utf-8")
    for name, results in groups.items():
        print(f"{name}: {summary([r.error for r in results])}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
