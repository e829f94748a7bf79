"""The published error of estimates: launches.csv, the tables of README.md, and what estimates say of it (error.json).

Results are grouped by set and card.
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
from evidence.estimates.timed_work import (
    CARD,
    CARDS,
    FIFTH,
    FIRST,
    FOURTH,
    GROUPS,
    LABS,
    OPEN,
    OTHER,
    SECOND,
    SIXTH,
    THIRD,
    group,
    timed,
)
from tests.support.estimate_model import model_hash
from warpcourse.paths import COURSE
from warplab.text.tables import duration, markdown

FOLDER = Path(__file__).parent
PAGE = FOLDER / "README.md"
LAUNCHES = FOLDER / "launches.csv"
ERROR = COURSE / "warplab" / "estimating" / "error.json"
READINGS = {
    (name, card): COURSE / "evidence" / "unseen_launches" / f"{name}_reading{end}.json"
    for name, card, end in (
        *(("first", CARD, ""), ("second", CARD, "")),
        *((name, *card) for name in ("third", "fourth", "fifth", "sixth") for card in ((CARD, ""), (OTHER, "_h200"))),
    )
}
HEAD = ("card", "number", "mean error", "within 15 %", "within 30 %")
SAME = 0.05  # times that differ by less have no order
MEAN, MOST = 0.08, 0.95  # the goal: the mean error, and the share of the launches within FAR
LAST = "sixth"  # set, whose first reading counts
WORST = 10  # of a set held out
# Kernels whose worst launches the model was changed for after the first reading of either set.
CHANGED = ("gather", "hash_insert", "merge_path", "scatter", "layer_norm", "permute_nchw_nhwc")
CHANGED += ("chacha20", "coulomb_plane", "ray_balls", "group_norm")
CHANGED += ("smooth_series", "dequantise_int4", "base64", "median_of_5", "rule_110")
CHANGED += ("relax_edges", "rnn_sequence", "add_to_clusters", "sobel_tile")
CHANGED += (
    "common_subsequence",
    "tree_search",
    "march_rays",
    "queens",
    "top_p",
    "kth_largest",
    "spmm_rows",
    "join_probe",
)
CHANGED += ("american_put",)
Groups = Mapping[tuple[str, str], Sequence[Result]]  # by group, or set, and card


def reading(name: str, card: str = CARD) -> list[Result]:
    """Return what the first reading of what was held out of a set said, with the model as it was then."""
    kept = json.loads(READINGS[name, card].read_text(encoding="utf-8"))
    origin = f"{kept['device']}, {kept['date']}"
    return [
        Result(name, r["recorded"], r["estimated"], r["bound"], r["limit"], origin, name.split(", ")[1])
        for name, r in kept["launches"].items()
    ]


def page(text: str, groups: Groups, readings: Groups, missing: int = 0) -> str:
    """Return the page with its tables written anew, each between two comments with its name.

    `groups`: results by the groups of `timed_work`, and by card. `readings`: as `reading` returns. `missing`: unseen
    launches that have not been recorded on the first card.
    """
    now = [r for name in (FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH) for r in groups[name, CARD]]
    before = [r for (_, card), of in readings.items() if card == CARD for r in of]
    sets = dict.fromkeys(name for name, _ in readings)
    tables = {
        "errors": _errors(groups, readings, missing),
        "limits": markdown(["limit", *HEAD], _by_limit(groups), numbers=True),
        **{
            f"{name}_worst": _table([(card, r) for card in CARDS for r in readings.get((name, card), ())])
            for name in sets
        },
        "ranking": ranking([(r.name, _digits(r.recorded), _digits(r.estimated)) for r in groups[LABS, CARD]]),
        "changed": markdown(["kernel", "at the first reading", "now"], _changed(before, now)),
    }
    for name, table in tables.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        before, _, rest = text.partition(start)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the page lacks the place of the table {name!r}: {start.strip()} ... {end.strip()}")
        text = before + start + table.strip() + end + after
    return text


def _errors(groups: Groups, readings: Groups, missing: int) -> str:
    """Return what was timed where, the errors of each group, and whether the goal is reached."""
    rows = []
    for name, read, group_name in (
        ("sixth set", "sixth", SIXTH),
        ("fifth set", "fifth", FIFTH),
        ("fourth set", "fourth", FOURTH),
        ("third set", "third", THIRD),
        ("second set", "second", SECOND),
        ("first set, held out", "first", FIRST),
        ("first set, open", "", OPEN),
        ("labs 01 to 08, 10 and 11, published before", "", LABS),
    ):
        parts = [(f"{name}, at its first reading", card, of) for card in CARDS if (of := readings.get((read, card)))]
        now = f"{name}, now, seen" if parts else f"{name}, seen"
        parts += [(now, card, found) for card in CARDS if (found := groups[group_name, card])]
        for label, card, part in parts:
            figures = (_figures([r.error for r in part]), _figures([r.bound_error for r in part]))
            rows.append([label, card, str(len(part)), *figures[0], *figures[1]])
    left = f" {missing} of the unseen launches have not been recorded and are not counted." if missing else ""
    head = ["launches", *HEAD, "roofline: mean error", "within 15 %", "within 30 %"]
    unseen = [r for (name, _), of in groups.items() if name != LABS for r in of]
    verdicts = "; ".join(
        f"on an {card} {_verdict([r.error for r in of])}" for card in CARDS if (of := readings.get((LAST, card)))
    )
    return (
        f"The unseen launches were timed on {_origins(unseen)}; the labs' on\n"
        f"{_origins(groups[LABS, CARD])}.{left}\n\n{markdown(head, rows, numbers=True)}\n\n"
        f"The goal is a mean error of {100 * MEAN:.0f} %, and {100 * MOST:.0f} % of the launches within "
        f"{100 * FAR:.0f} %, on kernels that played no part in building the\nmodel. At the {LAST} set's first reading, "
        f"{verdicts}."
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
    """Return launches.csv: a row per launch and card, times in microseconds, three digits of each."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    what = ["recorded_us", "estimate_us", "error_percent", "limit", "roofline_error_percent"]
    rows.writerow(["group", "card", "launch", *what])
    for (name, card), results in groups.items():
        for r in results:
            times = (f"{_digits(seconds):.10g}" for seconds in (r.recorded, r.estimated))
            rows.writerow([name, card, r.name, *times, round(100 * r.error), r.limit, round(100 * r.bound_error)])
    return text.getvalue()


def _digits(seconds: float) -> float:
    """Return microseconds in three digits."""
    return float(f"{1e6 * seconds:.3g}")


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
        f"the first is {reached[statistics.fmean(sizes) <= MEAN]} ({100 * statistics.fmean(sizes):.1f} %), "
        f"the second {reached[far >= MOST * len(sizes)]} ({far} of {len(sizes)})"
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


def _by_limit(groups: Groups) -> list[list[str]]:
    """Return rows of the second to sixth set together."""
    rows = []
    for card in CARDS:
        found = _errors_by_limit([r for name in (SECOND, THIRD, FOURTH, FIFTH, SIXTH) for r in groups[name, card]])
        rows += [(limit, card, errors) for limit, errors in found.items()]
    rows.sort(key=lambda row: (row[1], -len(row[2])))
    return [[limit, card, str(len(errors)), *_figures(errors)] for limit, card, errors in rows]


def _table(results: Sequence[tuple[str, Result]]) -> str:
    """Return the worst of some results, with their cards."""
    rows = [
        [r.name, card, duration(r.recorded), duration(r.estimated), percent(r.error), r.limit, percent(r.bound_error)]
        for card, r in sorted(results, key=lambda one: -abs(one[1].error))[:WORST]
    ]
    return markdown(["launch", "card", "recorded", "estimate", "error", "limit", "roofline's error"], rows)


def error(readings: Groups) -> dict[str, object]:
    """Return what the label of an estimate says: by card, the error of the last set at its first reading, in all and
    by limit."""
    return {
        card: {"model": model_hash(card), **_of_card(found)} for card in CARDS if (found := readings.get((LAST, card)))
    }


def _of_card(held_out: Sequence[Result]) -> dict[str, object]:
    sizes = [abs(r.error) for r in held_out]
    device, _, date = max(r.origin for r in held_out).rpartition(", ")
    return {
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
    groups = {
        (name, card): [result(one, card) for one in group(name, calls, card)] for card in CARDS for name in GROUPS
    }
    missing = sum(one.group != LABS and not one.is_recorded(CARD) for one in calls)
    LAUNCHES.write_text(launches(groups), encoding="utf-8")
    readings = {key: reading(*key) for key in READINGS}
    text = page(PAGE.read_text(encoding="utf-8"), groups, readings, missing)
    PAGE.write_text(text, encoding="utf-8")
    ERROR.write_text(json.dumps(error(readings), indent=1) + "\n", encoding="utf-8")
    for (name, card), results in groups.items():
        if results:
            print(f"{name}, {card}: {summary([r.error for r in results])}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
