"""The check of a kernel that serves the requests of a ragged batch, a block for each, all its threads together."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from warplab import checks
from warplab.checks.counter_limits import Limit
from warplab.checks.kernel_run import counted
from warplab.simulator.constants import WARP_SIZE

# What a thread may execute in `check_ragged`: once, per request, per doubling of the threads of a block, per element.
_ONCE, _PER_REQUEST, _PER_DOUBLING, _PER_ELEMENT = 60, 80, 20, 40


class Lengths(tuple):
    """The elements of each request of a ragged batch, as the size of a kernel's check: failures name each request."""

    __slots__ = ()

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(f"request {number}" for number in range(len(self)))


def drawn_lengths(rng: np.random.Generator, requests: int, longest: int) -> Lengths:
    """Draw the lengths of so many requests, short ones as likely as long ones, and some of none."""
    lengths = np.floor((longest + 1) ** rng.uniform(0, 1, requests)).astype(int)
    return Lengths(int(length) if rng.random() < 0.9 else 0 for length in lengths)


def check_ragged(
    kernel: Any,
    make_case: Callable[[np.random.Generator, Lengths], checks.Case],
    batches: Iterable[Lengths],
    launches: Iterable[tuple[int, int]],
    **more: Any,
) -> None:
    """Check a kernel whose block b serves the requests b, b + blocks, ... of a batch, all threads of a block together.

    `batches`: ragged batches; each is launched with each of `launches`, (blocks, threads per block). `more`: further
    arguments of `checks.kernel`, whose counters of loads and stores may be limited.
    """
    batches, launches, more = list(batches), list(launches), dict(more)
    given = more.pop("limits", {})
    with contextlib.redirect_stdout(io.StringIO()):  # one line for all launches, not one for each
        for launch in launches:
            per_thread, limits = _limits(launch)
            more |= {"per_thread": per_thread, "limits": limits | given}
            checks.kernel(kernel, make_case, sizes=batches, launches=[launch], **more)
    found = f"{len(batches)} batch{'es' * (len(batches) != 1)} with {counted(len(launches), 'launch shape')}"
    print(f"{getattr(kernel, '__name__', 'the kernel')}: right for {found}.")


def _limits(launch: tuple[int, int]) -> tuple[dict[str, Limit], dict[str, Limit]]:
    """What one thread may do, and what a launch may; each a function of the lengths."""
    warps = math.ceil(launch[1] / WARP_SIZE)

    def busiest(kind: str) -> Limit:
        return lambda lengths: max(_shares(lengths, *launch)[kind])

    def full_warps(lengths: Lengths) -> int:
        return sum(math.ceil(length / WARP_SIZE) for length in lengths)

    return {kind: busiest(kind) for kind in ("instructions", "bytes_loaded", "bytes_written")}, {
        "warp_instructions": lambda lengths: warps * sum(_shares(lengths, *launch)["instructions"]),
        # Lanes that take turns make requests of their own. Neighbours that are apart make some more: sectors tell.
        "global_load_requests": lambda lengths: 5 * full_warps(lengths) + 6 * warps * len(lengths),
        "global_store_requests": lambda lengths: 1.5 * full_warps(lengths),
        "global_load_bytes": lambda lengths: 8 * (sum(lengths) + full_warps(lengths)) + 32 * warps * len(lengths),
        "barriers": lambda lengths: warps * len(lengths) * (math.log2(launch[1]) + 4),
        "atomics": 0,
        "bulk_copies": 0,
    }


def _shares(lengths: Lengths, blocks: int, threads: int) -> dict[str, list[float]]:
    """What one thread of each block may do for the requests of its block."""
    found: dict[str, list[float]] = {"instructions": [], "bytes_loaded": [], "bytes_written": []}
    for block in range(blocks):
        shares = [math.ceil(length / threads) for length in lengths[block::blocks]]
        fixed = _PER_REQUEST + _PER_DOUBLING * math.log2(threads)
        found["instructions"].append(_ONCE + sum(fixed + _PER_ELEMENT * share for share in shares))
        # Compilers load the ends of a request again for each element if they cannot know that y is another array.
        found["bytes_loaded"].append(sum(32 + 16 * share for share in shares))
        found["bytes_written"].append(4 * sum(shares))
    return found
