"""Tables of cuDNN's execution plans, and the choice of a plan: no GPU is needed here.

A row is what the measurements record of one plan, in JSON types:

    id               position in the table; smaller: proposed earlier by cuDNN's heuristics
    engine, knobs    which of cuDNN's algorithms, and its settings by name
    proposed         the heuristics' mode that proposed it first: "A", "B" or "FALLBACK"
    status           "ok", or why the plan cannot run
    seconds          median time of one call; None unless the status is "ok"
    workspace_bytes  device memory that a call needs beside its operands; None where the plan could not be built
    behavior         cuDNN's behaviour notes, such as "RUNTIME_COMPILATION"
    numerical        cuDNN's numerical notes, such as "TENSOR_CORE" or "WINOGRAD"
    relative_error   of its result against float64; None unless it ran
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

OK = "ok"
Row = Mapping[str, Any]


class NoPlan(LookupError):
    """No plan of a table can run, or none within a limit."""


def choose(rows: Iterable[Row], limit_bytes: int | None = None) -> Row:
    """The fastest plan whose status is "ok" and whose workspace is at most `limit_bytes` (None: no limit).

    Of plans equally fast, the one with the smaller workspace, then the smaller id. NoPlan where there is none;
    ValueError for a negative limit.
    """
    if limit_bytes is not None and limit_bytes < 0:
        raise ValueError(f"limit_bytes is {limit_bytes}; a workspace has 0 bytes or more")
    able = [row for row in rows if row["status"] == OK]
    if not able:
        raise NoPlan("none of the plans can run; their statuses say why")
    fitting = [row for row in able if limit_bytes is None or row["workspace_bytes"] <= limit_bytes]
    if not fitting:
        least = min(row["workspace_bytes"] for row in able)
        raise NoPlan(
            f"no plan fits into {limit_bytes:,} bytes; the smallest workspace is {least:,} bytes: raise the limit, or "
            "take an algorithm without workspace"
        )
    return min(fitting, key=lambda row: (row["seconds"], row["workspace_bytes"], row["id"]))


def first_choice(rows: Iterable[Row]) -> Row:
    """The plan that runs without measuring: the first in the heuristics' order whose status is "ok"."""
    able = [row for row in rows if row["status"] == OK]
    if not able:
        raise NoPlan("none of the plans can run; their statuses say why")
    return min(able, key=lambda row: row["id"])


def frontier(rows: Iterable[Row]) -> list[Row]:
    """The plans worth a limit: each is faster than every plan with as little or less workspace; smallest first."""
    found: list[Row] = []
    able = (row for row in rows if row["status"] == OK)
    for row in sorted(able, key=lambda row: (row["workspace_bytes"], row["seconds"], row["id"])):
        if not found or row["seconds"] < found[-1]["seconds"]:
            found.append(row)
    return found
