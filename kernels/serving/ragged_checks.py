"""The check of a kernel that serves the requests of a ragged batch, a block for each, all its threads together."""

import contextlib
import io
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from warplab import checks
from warplab.checks.counter_limits import Limit
from warplab.checks.kernel_run import KernelRun, counted
from warplab.checks.session import fresh_seed
from warplab.launch.kernel_source import source_of
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Lanes, Observer
from warplab.simulator.translate.block_writer import Site

# What a thread may execute in `check_ragged`: once, per request, per doubling of the threads of a block, per element.
_ONCE, _PER_REQUEST, _PER_DOUBLING, _PER_ELEMENT = 60, 80, 20, 40
# Where every thread has as many elements as the others: the least part of a warp's lanes that are active, on average,
# and how long loads and stores may take, in times of what they would if all threads had as many and none waited. Right
# kernels reach 0.95 and 1.02; lanes that load in two turns 0.72, half of the threads or of the warps at a time 1.33.
_ACTIVE, _LONGER = 0.8, 1.1


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
    arguments of `checks.kernel`, whose counters of loads and stores may be limited. Two batches of equal requests, each
    a multiple of the threads long, are added: there it shows who idles.
    """
    batches, launches, more = list(batches), list(launches), dict(more)
    given = more.pop("limits", {})
    with contextlib.redirect_stdout(io.StringIO()):  # one line for all launches, not one for each
        for launch in launches:
            per_thread, limits = _limits(launch)
            more |= {"per_thread": per_thread, "limits": limits | given}
            checks.kernel(kernel, make_case, sizes=batches, launches=[launch], **more)
        _check_even(kernel, make_case, more, given)
    found = f"{len(batches)} batch{'es' * (len(batches) != 1)} with {counted(len(launches), 'launch shape')}"
    print(f"{getattr(kernel, '__name__', 'the kernel')}: right for {found}.")


def _check_even(kernel: Any, make_case: Callable, more: dict[str, Any], given: dict[str, Limit]) -> None:
    """Check batches in which all threads have as much to do: one long request, and short ones in large blocks.

    The long one, which `checks.summable` allows, fits into no block's static shared memory (48 KiB): a kernel that
    keeps its request there is right for short ones only.
    """
    rng = np.random.default_rng(fresh_seed())
    threads = int(2 ** rng.integers(7, 9))
    long = 1, threads, int(rng.integers(13_000 // threads, 2**14 // threads + 1))
    short = 2, int(2 ** rng.integers(8, 11)), 1
    for blocks, threads, elements in (long, short):
        launch, lengths = (blocks, threads), Lengths((threads * elements,) * blocks)
        per_thread, limits = _limits(launch)
        more |= {"per_thread": per_thread, "limits": limits | given, "least": {"warp_efficiency": _ACTIVE}}
        checks.kernel(kernel, make_case, sizes=[lengths], launches=[launch], **more)
        if elements > 1:
            _check_balance(kernel, make_case, lengths, launch)


def _check_balance(kernel: Any, make_case: Callable, lengths: Lengths, launch: tuple[int, int]) -> None:
    """Raise `CheckFailed` if the threads of one block do not load and store at the same time as much as each other."""
    seed = fresh_seed()
    case, name = make_case(np.random.default_rng(seed), lengths), source_of(kernel).name
    run, traffic = KernelRun(kernel, name, case, lengths, *launch, seed, 0.0, 0.0), _Traffic()
    # The checks before have shown that it ends.
    run.simulate(tuple(case.buffers().values()), path_limit=10**6, counters=False, observers=(traffic,))
    average, thread = float(traffic.all.mean()), int(traffic.all.argmax())
    if traffic.waited_for <= _LONGER * average:
        return
    alike = traffic.all[thread] <= _LONGER * average
    busiest = (
        "threads in turn, with a barrier between" if alike else f"{traffic.all[thread]:,} of them by thread {thread}"
    )
    raise run.failed(
        f"{name}: the threads do not share the loads and stores.",
        expected=f"as long as at most {_LONGER} × {average:,.0f} bytes take, what a thread has on average",
        got=f"as long as {traffic.waited_for:,} bytes take: {busiest}",
        look_at="which elements each thread loads and stores, and when: here every thread has as many as the others",
        kind="limit",
        missed="the threads do not share the loads and stores",
    )


class _Traffic(Observer):
    """The bytes that each thread loads from and stores to global memory, in a launch of one block: `all`.

    `waited_for`: those of the thread with most between one barrier and the next, all of these added up.
    """

    def watch(self, chunk: Any) -> Observer:
        self.all, self._since, self.waited_for = np.zeros(chunk.lanes, np.int64), np.zeros(chunk.lanes, np.int64), 0
        return super().watch(chunk)

    def load(self, site: Site, space: str, addresses: Addresses, lanes: Lanes, _: Any = None) -> None:
        if space == "global":
            self._since[slice(None) if lanes is None else lanes] += site.width

    copy_request = store = load

    def barrier(self, lanes: Lanes) -> None:
        self.all += self._since
        self.waited_for += int(self._since.max())
        self._since[:] = 0

    def end_chunk(self) -> None:
        self.barrier(None)

    def end_launch(self, profile: Any, finished: bool) -> None:
        self.chunk = None  # and with it the launch's memory


def _limits(launch: tuple[int, int]) -> tuple[dict[str, Limit], dict[str, Limit]]:
    """Limit what one thread may do, and what a launch may; each a function of the lengths."""
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
        "barriers": lambda lengths: warps * len(lengths) * (2 * math.log2(launch[1]) + 6),
        "local_store_requests": 0,  # an array of each thread's own would hold requests up to a length
        "atomics": 0,
        "bulk_copies": 0,
    }


def _shares(lengths: Lengths, blocks: int, threads: int) -> dict[str, list[float]]:
    """Return what one thread of each block may do for the requests of its block."""
    found: dict[str, list[float]] = {"instructions": [], "bytes_loaded": [], "bytes_written": []}
    for block in range(blocks):
        shares = [math.ceil(length / threads) for length in lengths[block::blocks]]
        fixed = _PER_REQUEST + _PER_DOUBLING * math.log2(threads)
        found["instructions"].append(_ONCE + sum(fixed + _PER_ELEMENT * share for share in shares))
        # Compilers load the ends of a request again for each element if they cannot know that y is another array.
        found["bytes_loaded"].append(sum(32 + 16 * share for share in shares))
        found["bytes_written"].append(4 * sum(shares))
    return found
