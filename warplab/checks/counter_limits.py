"""A launch's counters against the limits of a check, and the source lines that a learner should look at."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from warplab.checks.kernel_run import KernelRun
from warplab.checks.thread_work import KINDS, TOTALS, ThreadWork
from warplab.checks.uncounted import REASONS, Uncounted
from warplab.launch.kernel_source import source_of
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import COUNTERS, Counts, LaunchProfile

Limit = float | Callable[[Any], float]  # of a size

_LABELS = {counter.name: counter.label for counter in COUNTERS}
_DESCRIPTIONS = {counter.name: counter.description for counter in COUNTERS}
_SUMS = frozenset(field.name for field in fields(Counts))  # counters to which each line adds
_MOST_LINES = 4
_LONGEST_PATH = 2_000_000  # instructions; a few seconds
_ORDINARY = "what computes the sums: the ordinary cores?"

# What loads and stores as well, and is counted apart, as on the hardware.
_PAST_THE_COUNTERS = {
    "atomics": "Atomic operations load and store as well",
    "bulk_copies": "Bulk copies load and store as well",
}

# What stands behind a counter to which lines of the source add without asking for it.
_IN_NUMBA = "In Numba an untyped number such as 2 or 0.5 makes a sum float64; np.float32(2) does not."
_IN_CUDA = "In C++ 0.5 is a double, 0.5f a float."
_RATE = "Cards do float64 at 1/2 to 1/64 of the rate of float32."
_SPILLS = (
    "Local memory holds arrays whose index is known only at run time, and values for which a thread has no register "
    "left: how many does it keep at a time?"
)
_BEHIND = {
    "local_load_requests": _SPILLS,
    "local_store_requests": _SPILLS,
}


@dataclass(frozen=True)
class Limits:
    """What the counters of a launch may be; see `kernel`. `products`: None if any are allowed."""

    most: Mapping[str, Limit] = field(default_factory=dict)
    least: Mapping[str, Limit] = field(default_factory=dict)
    products: Mapping[str, Limit] | None = None
    per_thread: Mapping[str, Limit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(self.per_thread.keys() - KINDS.keys())
        if unknown:
            raise ValueError(f"per_thread has {', '.join(unknown)}; it may have {', '.join(KINDS)}")

    @property
    def by_thread(self) -> bool:
        """Return whether the work of each thread must be counted."""
        return bool(self.per_thread or TOTALS.keys() & (self.most.keys() | self.least.keys()))

    def __bool__(self) -> bool:
        return bool(self.most or self.least or self.products is not None or self.per_thread)

    def serial_path(self, run: KernelRun) -> int:
        """Return instructions that the threads of a launch may execute together, and a serial kernel along one path: it
        is to be told that it is serial, not that it never ends. 0 without a limit per thread."""
        most = _of(run, self.per_thread.get("instructions", 0))
        return min(math.ceil(run.threads * most), _LONGEST_PATH)

    def check(
        self,
        run: KernelRun,
        profile: LaunchProfile,
        work: ThreadWork | None = None,
        uncounted: Uncounted | None = None,
    ) -> None:
        """Raise `CheckFailed` at the first limit that the launch misses. `work`: needed for limits per thread.

        `uncounted`: what the most that a counter may be bounds as well.
        """
        every = profile if uncounted is None else uncounted.added_to(profile)
        if work is not None:
            most = {kind: _of(run, limit) for kind, limit in self.per_thread.items()}
            work.check(run, most, "\n".join(filter(None, (_busiest_line(profile), _float64(run, profile.counts)))))
            for name in TOTALS:
                _check_total(run, work, name, self.least.get(name, 0), self.most.get(name, math.inf))
        if self.products is not None:
            _check_products(run, profile, {name: _of(run, limit) for name, limit in self.products.items()})
        for counter, limit in _counters(self.most):
            _check_most(run, every, counter, _of(run, limit), getattr(profile.counts, counter))
        if any(re.match("(global|shared)_(load|store)_|sectors_per_", counter) for counter in self.most):
            for counter in _PAST_THE_COUNTERS:
                if counter not in self.most and counter not in self.least:
                    _check_none(run, every, counter)
        for counter, limit in _counters(self.least):
            _check_least(run, profile, counter, _of(run, limit))


def of_size(limit: Limit, size: Any) -> float:
    """Return a limit for a size."""
    return limit(size) if callable(limit) else limit


def _of(run: KernelRun, limit: Limit) -> float:
    return of_size(limit, run.size)


def _counters(limits: Mapping[str, Limit]) -> list[tuple[str, Limit]]:
    """Return the limits without those of TOTALS, which the counters of a launch do not have."""
    return [(counter, limit) for counter, limit in limits.items() if counter not in TOTALS]


def _check_total(run: KernelRun, work: ThreadWork, name: str, least: Limit, most: Limit) -> None:
    got, low, high = work.total(name), _of(run, least), _of(run, most)
    if low <= got <= high:
        return
    problem = f"too {'few' if got < low else 'many'} {TOTALS[name]}"
    raise run.failed(
        f"{run.name}: {problem}.",
        expected=f"at least {_number(low)}" if got < low else f"at most {_number(high)}",
        got=_number(got),
        look_at="which threads have nothing to do"
        if got < low
        else "which threads store what another stores, too"
        if name == "writing_threads"
        else "what a thread loads and does not need",
        kind="limit",
        missed=problem,
    )


def _check_products(run: KernelRun, profile: LaunchProfile, wanted: dict[str, float]) -> None:
    got: Mapping[str, float] = profile.tensor_operations
    if got == wanted:
        return
    if not got:
        problem, look_at = "the tensor cores do nothing", _ORDINARY
    elif got.keys() - wanted.keys():
        problem = "the matrix products on the tensor cores are of another kind"
        look_at = "the shape, and the types of the factors and of the sums"
    else:
        many = sum(got.values()) > sum(wanted.values())
        problem = f"too {'many' if many else 'few'} matrix products on the tensor cores"
        look_at = "how many tiles there are, how many steps each takes, and whether " + (
            "any product is computed twice" if many else "every product is computed"
        )
    raise run.failed(
        f"{run.name}: {problem}.",
        expected=_products(wanted),
        got=_products(got),
        look_at=look_at,
        kind="limit",
        missed=problem,
    )


def _check_most(run: KernelRun, profile: LaunchProfile, counter: str, most: float, counted: float | None) -> None:
    """Demand that a counter is at most `most`. `counted`: without what does the same by other instructions."""
    got = getattr(profile.counts, counter)
    if _known(got) and got <= most:
        return
    problem = f"too many {_words(counter)}{_meaning(counter)}"
    outputs = sum(value.nbytes for value in run.case.expected.values())
    again = counter == "global_store_requests" and profile.counts.global_store_bytes > outputs
    raise run.failed(
        f"{run.name}: {problem}.",
        expected=f"at most {_number(most)}",
        got=_number(got) if _known(got) else "none counted",
        look_at="\n".join(
            [_over_limit(run, profile, counter, got, most), REASONS[counter]]
            if counter in REASONS and got != counted
            else [_over_limit(run, profile, counter, got, most) if _known(got) else ""]
        )
        + "\nAn element is stored several times: let one thread do it." * again,
        kind="limit",
        missed=problem,
    )


def _check_none(run: KernelRun, profile: LaunchProfile, counter: str) -> None:
    """Refuse what gets around the limits on loads and stores."""
    got = getattr(profile.counts, counter)
    if not got:
        return
    raise run.failed(
        f"{run.name}: {_PAST_THE_COUNTERS[counter]}, and do not count as loads or stores.",
        expected=f"no {_words(counter)}, since this test limits loads or stores",
        got=_number(got),
        look_at=_over_limit(run, profile, counter, got, 0),
        kind="limit",
        missed=f"{_words(counter)} where loads or stores are limited",
    )


def _check_least(run: KernelRun, profile: LaunchProfile, counter: str, least: float) -> None:
    got = getattr(profile.counts, counter)
    if _known(got) and got >= least:
        return
    # The counters of `Counts` are numbers of things; what is derived from them is not.
    few = f"too few {_words(counter)}" if counter in _SUMS else f"the {_words(counter)} is too low"
    problem = f"{few}{_meaning(counter)}"
    raise run.failed(
        f"{run.name}: {problem}.",
        expected=f"at least {_number(least)}",
        got=_number(got) if _known(got) else "none counted",
        look_at=_under_limit(run, profile, counter),
        kind="limit",
        missed=problem,
    )


def _known(count: float | None) -> bool:
    return count is not None and not math.isnan(count)


def _over_limit(run: KernelRun, profile: LaunchProfile, counter: str, got: float, most: float) -> str:
    """Return the source lines that add to `counter`, the most first, and why they do; empty where lines are not known.

    For a ratio, to which lines do not add, the line where it is largest.
    """
    if not hasattr(type(profile.counts), counter) or not profile.lines:
        return ""
    parts = {place: getattr(counts, counter) or 0 for place, counts in profile.lines.items()}
    found = sorted((place for place in parts if parts[place]), key=lambda place: (-parts[place], place))
    if not found:
        return ""
    if counter not in _SUMS:
        text = _line(profile, found[0])
    elif len(found) == 1:
        text = f"{_line(profile, found[0])}\nNo other line adds to the count."
    else:
        text = "\n".join(f"{_line(profile, place)}  ({_number(parts[place])})" for place in found[:_MOST_LINES])
        left = found[_MOST_LINES:]
        if left:
            text += f"\nand {len(left)} more line{'s' * (len(left) > 1)} ({_number(sum(parts[x] for x in left))})"
    if counter == "global_store_bytes" and most:
        text += f"\n{_number(got / most)} times the bytes allowed: is an element stored several times?"
    behind = _why_float64(run) if counter == "flops_f64" else _BEHIND.get(counter)
    return text + (f"\n{behind}" if behind else "")


def _under_limit(run: KernelRun, profile: LaunchProfile, counter: str) -> str:
    """Name the source line at which most lanes idle, for warp efficiency; for tensor cores, what may work instead.

    For FP32 operations, FP64 in their place. Empty for other counters, and where lines are not known.
    """
    if counter == "tensor_operations":
        return _ORDINARY
    if counter == "flops_f32":
        return _float64(run, profile.counts)
    if counter != "warp_efficiency":
        return ""

    def idle(counts: Counts) -> int:
        return WARP_SIZE * counts.warp_instructions - counts.thread_instructions

    place = max(profile.lines, key=lambda place: idle(profile.lines[place]), default=None)
    if place is None or not idle(profile.lines[place]):
        return ""
    counts = profile.lines[place]
    active = counts.thread_instructions / counts.warp_instructions
    are = f"{_number(active)} of the {WARP_SIZE} lanes of a warp {'is' if active == 1 else 'are'}"
    return f"{_line(profile, place)}\nOn average, {are} active here."


def _why_float64(run: KernelRun) -> str:
    return f"{_IN_NUMBA if source_of(run.kernel).language == 'Numba' else _IN_CUDA} {_RATE}"


def _float64(run: KernelRun, counts: Counts) -> str:
    return f"There are {counts.flops_f64:,} FP64 operations. {_why_float64(run)}" if counts.flops_f64 else ""


def float64_line(run: KernelRun, profile: LaunchProfile) -> str:
    """Return the source line with most FP64 operations, if it is known, and why they are FP64; "" if there are none."""
    if not profile.counts.flops_f64:
        return ""
    place = max(profile.lines, key=lambda place: profile.lines[place].flops_f64, default=None)
    return (f"{_line(profile, place)}\n" if place else "") + _why_float64(run)


def _busiest_line(profile: LaunchProfile) -> str:
    """Return the source line with most of a launch's instructions, if it has a third of them; "" without one."""
    place = max(profile.lines, key=lambda place: profile.lines[place].thread_instructions, default=None)
    total = profile.counts.thread_instructions
    if place is None or 3 * profile.lines[place].thread_instructions < total:
        return ""
    share = 100 * profile.lines[place].thread_instructions / total
    return f"Of all instructions {share:.0f} % are in {_line(profile, place)}"


def _line(profile: LaunchProfile, place: tuple[str, int]) -> str:
    """Return a source line with its number, such as "line 7: out[i] = a[i]"."""
    file, line = place
    text = profile.sources.get(file, "").splitlines()
    return f"line {line}" + (f": {text[line - 1].strip()}" if 0 < line <= len(text) else "")


def _words(counter: str) -> str:
    """Name a counter, or a property derived from counters, in words."""
    return _LABELS.get(counter, counter.replace("_", " "))


def _meaning(counter: str) -> str:
    return f" ({_DESCRIPTIONS[counter]})" if counter in _DESCRIPTIONS else ""


def _products(counts: Mapping[str, float]) -> str:
    """List matrix products by name, such as "8 of m16n16k16.f32.f16"."""
    return ", ".join(f"{_number(count)} of {name}" for name, count in counts.items()) or "none"


def _number(value: float) -> str:
    """Format a number: digits with separators for a whole one, else 3 significant ones."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}" if value < 1000 else f"{value:,.1f}"
