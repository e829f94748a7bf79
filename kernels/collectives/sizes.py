"""What the generators of schedules ask of their arguments, and numbers as words."""

from collections.abc import Sequence

from kernels.collectives.schedule import ScheduleError


def check_sizes(ranks: int, slices: int, root: int = 0) -> None:
    """Raise ScheduleError unless there are ranks and slices, and the root is one of the ranks."""
    if ranks < 1 or slices < 1:
        raise ScheduleError(f"a collective needs at least one rank and one slice, not {ranks} and {slices}")
    if not 0 <= root < ranks:
        raise ScheduleError(f"root {root} is no rank; ranks are 0 to {ranks - 1}")


def check_multiple(name: str, slices: int, of: int) -> None:
    """Raise ScheduleError unless `slices` is a multiple of `of`."""
    if slices % of:
        raise ScheduleError(
            f"{name} needs a multiple of {of} slices, not {slices}; take {of * max(1, round(slices / of))}"
        )


def check_power_of_two(name: str, ranks: int) -> None:
    """Raise ScheduleError unless `ranks` is a power of two."""
    if ranks & (ranks - 1):
        raise ScheduleError(f"{name} needs a power of two of ranks, not {ranks}; take a ring for {ranks}")


def ring_order(ranks: int, order: Sequence[int] | None, first: int | None = None) -> list[int]:
    """Return `order`, or 0 to k − 1, turned to begin with `first`. ScheduleError unless each rank is there once."""
    ring = list(range(ranks)) if order is None else list(order)
    if sorted(ring) != list(range(ranks)):
        raise ScheduleError(f"{ring} is no ring of {ranks} ranks; name each of 0 to {ranks - 1} once")
    at = 0 if first is None else ring.index(first)
    return ring[at:] + ring[:at]


def binary_size(n: float) -> str:
    """Return bytes as words, such as "64 MiB"."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if n >= 2**power:
            return f"{n / 2**power:g} {unit}"
    return f"{n:g} B"


def rank_names(ranks: Sequence[int]) -> str:
    """Return words such as "rank 1" and "ranks 0, 2"."""
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))
