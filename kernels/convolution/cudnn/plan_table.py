"""Tables of cuDNN's execution plans, and the choice of a plan: no GPU is needed here.

A row is what the measurements record of one plan, in JSON types:

    id               position in the table; smaller: proposed earlier by cuDNN's heuristics
    plan             cuDNN's name of it: engine (algorithm) and knobs (settings), such as "eng45_k2=4_k5=3_k14=3"
    engine           the number of the engine
    proposed         the heuristics' mode that proposed it first: "A", "B", "FALLBACK", or "" where none did
    status           "ok", or why the plan cannot run
    seconds          median time of one call; None unless the status is "ok"
    workspace_bytes  device memory that a call needs beside its operands; None where the plan could not be built
    behavior         cuDNN's behaviour notes, separated by blanks, such as "RUNTIME_COMPILATION"
    numerical        cuDNN's numerical notes likewise, such as "TENSOR_CORE" or "WINOGRAD"
    relative_error   of its result against float64; None unless it ran
"""

from collections.abc import Iterable, Mapping
from typing import Any

OK = "ok"
REDUCED = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS")  # numerical notes of plans that compute float32 as TF32
Row = Mapping[str, Any]


class NoPlan(LookupError):
    """No plan of a table can run, or none within a limit."""


def choose(rows: Iterable[Row], limit_bytes: int | None = None) -> Row:
    """Return the fastest plan whose status is "ok" and whose workspace is at most `limit_bytes` (None: no limit).

    Of plans equally fast, the one with the smaller workspace, then the smaller id. NoPlan where there is none;
    ValueError for a negative limit.
    """
    if limit_bytes is not None and limit_bytes < 0:
        raise ValueError(f"limit_bytes is {limit_bytes}; a workspace has 0 bytes or more")
    running = able(rows)
    if not running:
        raise NoPlan("none of the plans can run; their statuses say why")
    fitting = [row for row in running if limit_bytes is None or row["workspace_bytes"] <= limit_bytes]
    if not fitting:
        least = min(row["workspace_bytes"] for row in running)
        raise NoPlan(
            f"no plan fits into {limit_bytes:,} bytes; the smallest workspace is {least:,} bytes: raise the limit, or "
            "take an algorithm without workspace"
        )
    return min(fitting, key=lambda row: (row["seconds"], row["workspace_bytes"], row["id"]))


def first_choice(rows: Iterable[Row]) -> Row:
    """Return the plan that runs without measuring: the first that the heuristics propose whose status is "ok"."""
    running = [row for row in able(rows) if row["proposed"]]
    if not running:
        raise NoPlan("none of the proposed plans can run; their statuses say why")
    return min(running, key=lambda row: row["id"])


def able(rows: Iterable[Row]) -> list[Row]:
    """Return the plans that run."""
    return [row for row in rows if row["status"] == OK]


def full_precision(rows: Iterable[Row]) -> list[Row]:
    """Return the plans that compute float32 as float32, not as TF32."""
    return [row for row in rows if not set(REDUCED) & set(row["numerical"].split())]


def frontier(rows: Iterable[Row]) -> list[Row]:
    """Return the plans worth a limit: each is faster than every plan with as little or less workspace; smallest
    first."""
    found: list[Row] = []
    for row in sorted(able(rows), key=lambda row: (row["workspace_bytes"], row["seconds"], row["id"])):
        if not found or row["seconds"] < found[-1]["seconds"]:
            found.append(row)
    return found
