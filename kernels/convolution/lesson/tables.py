"""Tables of lab 06 as text, for the lesson."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernels.convolution.cudnn.calls import CALLS
from kernels.convolution.cudnn.plan_table import OK, Row
from warplab.text.tables import Column, Table, markdown


def plans(rows: Iterable[Row]) -> Table:
    """Return the fastest plan of each of cuDNN's engines, fastest first, then an engine's plan that cannot run.

    A row of `plan_table` each, as the sources' search shows it: id, time, workspace, status, and what else is known.
    """
    best: dict[int, Row] = {}
    for row in rows:
        known = best.setdefault(row["engine"], row)
        if _order(row) < _order(known):
            best[row["engine"]] = row
    columns = [Column(name) for name in ("plan", "engine", "proposed", "ms", "workspace, MB", "error")]
    columns += [Column("numerical notes", "left"), Column("status", "left")]
    return Table(columns, [_plan(row) for row in sorted(best.values(), key=_order)])


def calls() -> str:
    """Return the calls of the sources' example and what each has become, in Markdown."""
    rows = ((_code(call.then), _code(call.today), call.why) for call in CALLS)
    return markdown(("2017", "today", "what changed"), rows).replace(" --- ", " :--- ")


def algorithms(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return what cuDNN's own search of 2017 returns: rows as `cudnn.find.ForwardPass.find` gives them."""
    columns = [Column("algorithm", "left"), *(Column(name) for name in ("ms", "workspace, MB", "error"))]
    columns.append(Column("status", "left"))
    return Table(
        columns,
        [
            [row["algorithm"], _ms(row), _megabytes(row), _error(row), row["status"]]
            for row in sorted(rows, key=lambda row: (row["status"] != OK, row["seconds"] or 0))
        ],
    )


def _order(row: Row) -> tuple[bool, float, int]:
    return row["status"] != OK, row["seconds"] or 0, row["id"]


def _plan(row: Row) -> list[str]:
    numbers = str(row["id"]), str(row["engine"]), row["proposed"] or "–", _ms(row), _megabytes(row), _error(row)
    notes = row["numerical"].lower().replace(" ", ", ").replace("_", " ")
    return [*numbers, notes, row["status"].partition(":")[0]]


def _code(text: str) -> str:
    return text if text == "–" else f"`{text}`"


def _ms(row: Row) -> str:
    return "" if row["seconds"] is None else f"{1e3 * row['seconds']:.4f}"


def _megabytes(row: Row) -> str:
    return "" if row["workspace_bytes"] is None else f"{row['workspace_bytes'] / 1e6:.4g}"


def _error(row: Row) -> str:
    return "" if row["relative_error"] is None else f"{row['relative_error']:.0e}"
