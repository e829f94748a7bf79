"""docs/estimate.md and what estimates say of their own error: written from the errors of both halves.

`python -m tools.estimate_page` reads both halves, so it runs when the model is final.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence

from tools.estimate_error import FAR, NEAR, Result, percent, result, summary
from tools.timed_work import half
from warplab.estimating.rates import rates
from warplab.hardware.cards import CARDS
from warplab.paths import COURSE
from warplab.text.tables import duration, markdown

PAGE = COURSE / "docs" / "estimate.md"
ERROR = COURSE / "warplab" / "estimating" / "error.json"
TEXT = COURSE / "tools" / "estimate_page.md"  # what the page says beside the tables
WORST = 12


def page(open_half: Sequence[Result], held_out: Sequence[Result]) -> str:
    """The page: what is estimated and how, both errors, the worst launches, all launches, the rates."""
    both = [*open_half, *held_out]
    worst = sorted(both, key=lambda r: -abs(r.error))[:WORST]
    origins = sorted({r.origin for r in both})
    rows = [
        [name, str(len(part)), *_figures([r.error for r in part]), *_figures([r.bound_error for r in part])]
        for name, part in (("open", open_half), ("held out", held_out), ("both", both))
    ]
    head = ["half", "launches", "mean error", "within 15 %", "within 30 %"]
    errors = markdown([*head, "roofline: mean error", "within 15 %", "within 30 %"], rows, numbers=True)
    kinds = markdown(["lab", "half", "launches", "mean error", "within 30 %"], _by_lab(open_half, held_out))
    return TEXT.read_text(encoding="utf-8").format(
        errors=errors,
        kinds=kinds,
        limits=markdown(
            ["limit", "launches", "mean error", "within 15 %", "within 30 %"], _by_limit(both), numbers=True
        ),
        origins=", ".join(origins),
        worst=_table(worst),
        open=_table(open_half),
        held_out=_table(held_out),
        rates=_rates(),
    )


def _figures(errors: Sequence[float]) -> list[str]:
    sizes = [abs(error) for error in errors]
    return [
        f"{100 * statistics.fmean(sizes):.1f} %",
        *(f"{100 * sum(size <= limit for size in sizes) / len(sizes):.0f} %" for limit in (NEAR, FAR)),
    ]


def _by_lab(*halves: Sequence[Result]) -> list[list[str]]:
    rows = []
    for name, part in zip(("open", "held out"), halves, strict=True):
        for lab in sorted({r.name.partition(",")[0] for r in part}):
            own = [r.error for r in part if r.name.startswith(lab + ",")]
            mean, _, far = _figures(own)
            rows.append([lab, name, str(len(own)), mean, far])
    return sorted(rows)


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


def error(open_half: Sequence[Result], held_out: Sequence[Result]) -> dict[str, object]:
    """What the label of an estimate says: the error of the half that was held out, and of both halves by limit."""
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
            for limit, errors in sorted(_errors_by_limit([*open_half, *held_out]).items())
        },
    }


def main() -> int:
    """Write the page and error.json."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    open_half, held_out = ([result(one) for one in half(which)] for which in (False, True))
    PAGE.write_text(page(open_half, held_out), encoding="utf-8")
    ERROR.write_text(json.dumps(error(open_half, held_out), indent=1) + "\n", encoding="utf-8")
    print(f"open: {summary([r.error for r in open_half])}")
    print(f"held out: {summary([r.error for r in held_out])}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
