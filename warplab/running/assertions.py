"""`warplab.assert_counters(kernel, sectors_per_request__le=4)`: what a test says of a kernel's counters."""

import difflib
import operator
from collections.abc import Mapping
from numbers import Real
from typing import Any

from warplab.launch.kernel_source import is_source, source_of
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profile_queries import launches
from warplab.running import session
from warplab.running.collected import RATIOS, kernel_file
from warplab.simulator.count.counters import COUNTERS, Counts

_COMPARE = {
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "less than"),
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "more than"),
    "eq": (operator.eq, "exactly"),
    "ne": (operator.ne, "other than"),
}
_LABELS = {counter.label.replace(" ", "_"): counter.name for counter in COUNTERS}
_NAMES = {**{counter.name: counter.name for counter in COUNTERS}, **_LABELS, **{name: name for name in RATIOS}}


def assert_counters(kernel: Any = None, **limits: float) -> None:
    """Raise AssertionError unless the counters of a kernel's latest launch keep to `limits`.

    `kernel`: a kernel, its name, a launch or a profile; None for the latest launch of all. `limits`: NAME__OP=number,
    where NAME is a counter as reports show it (`global_load_requests`, `sectors_per_request`, `bank_conflicts`) and OP
    one of le, lt, ge, gt, eq, ne; without it eq. Efficiencies are fractions, 0.95 where a report shows 95 %. Raises
    ValueError for a per cent in place of a fraction and for an unknown name, naming the nearest, and LookupError for a
    name that kernels of several files have, and where no launch was recorded: outside of `pytest --warplab` and
    `warplab run`, give a profile's launch.
    """
    __tracebackhide__ = True  # of pytest
    if not limits:
        raise ValueError("assert_counters needs a limit, such as sectors_per_request__le=4")
    tests = limit_tests(limits)
    launch = _launch(kernel)
    _, wrong = check_limits(tests, launch.counts)
    if wrong:
        raise AssertionError(f"{launch.kernel}: " + "; ".join(wrong))


def limit_tests(limits: Mapping[str, float]) -> list[tuple]:
    """Return what `check_limits` takes. Raises ValueError for an unknown name."""
    return [_test(key, limit) for key, limit in limits.items()]


def check_limits(tests: list[tuple], counts: Counts) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each limit, and a phrase for each that counters do not keep to."""
    rows, wrong = [], []
    for name, compare, words, limit in tests:
        value = RATIOS[name](counts) if name in RATIOS else getattr(counts, name)
        if name == "bank_conflicts" and value is None:
            value = 0  # a number of conflicts: without an access there is none
        kept = value is not None and bool(compare(value, limit))
        rows.append({"counter": name, "value": value, "limit": f"{words} {limit:g}", "kept": kept})
        if value is None:
            wrong.append(f"{name} is not defined, as the kernel made no such access; {words} {limit:g} was asked for")
        elif not kept:
            wrong.append(f"{name} is {value:g}; {words} {limit:g} was asked for")
    return rows, wrong


def _test(key: str, limit: float) -> tuple:
    name, _, op = key.partition("__")
    op = op or "eq"
    if op not in _COMPARE:
        raise ValueError(f"{key}: there is no comparison {op}; choose among {', '.join(_COMPARE)}")
    if name not in _NAMES:
        near = difflib.get_close_matches(name, _NAMES, 1, 0)
        raise ValueError(f"{key}: there is no counter {name}; the nearest is {near[0]}")
    if not isinstance(limit, Real):
        raise ValueError(f"{key}={limit!r} is no number")
    if name.endswith("_efficiency") and limit > 1:
        raise ValueError(
            f"{key}={limit:g}: {name} is a fraction, of which reports show the per cent; write {key}={limit / 100:g}"
        )
    return _NAMES[name], *_COMPARE[op], limit


def _launch(kernel: Any) -> LaunchRecord:
    if hasattr(kernel, "counts"):  # a launch, or a profile, whose last one counts
        return launches(kernel)[-1]
    running = session.current()
    collected = running.collected if running is not None else None
    source = None if kernel is None or isinstance(kernel, str) else source_of(kernel)
    name = kernel if source is None else source.name
    found = [] if collected is None else collected.latest(name)
    if source is not None:
        found = [launch for launch in found if is_source(source, launch.sources)]
    files = {kernel_file(launch.sources): None for launch in found}
    if isinstance(kernel, str) and len(files) > 1:
        raise LookupError(f"kernels of {', '.join(files)} are called {name}: give the kernel itself")
    if not found:
        what = "no kernel" if name is None else f"no kernel {name}"
        raise LookupError(
            f"{what} was launched that is recorded. Launches are under pytest --warplab and warplab run; elsewhere "
            "write `with warplab.profile() as p:` around them and give p"
        )
    return found[-1]
