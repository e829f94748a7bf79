"""What reports, pictures and estimates ask of a profile: its launches, titles, sectors, source lines."""

from warplab.launch.launch_record import LaunchRecord
from warplab.simulator.count.counters import Counts, LaunchProfile
from warplab.text.tables import TIMES, shape

SOURCE_WIDTH = 64


def launches(profile: object) -> list[LaunchRecord]:
    """List the launches of a profile, of one launch, or of a list of launches and profiles."""
    if isinstance(profile, list | tuple):
        return [launch for item in profile for launch in launches(item)]
    return [LaunchRecord.of(launch) for launch in getattr(profile, "launches", [profile])]


def one_launch(profile: object) -> tuple[LaunchRecord, str]:
    """Return the first launch of a profile and its name as a title ("launch 1 of 3" where there are more)."""
    found = launches(profile)
    if not found:
        raise ValueError("the profile has no launch; launch a kernel in `with profile():`")
    more = f", launch 1 of {len(found)}" if len(found) > 1 else ""
    return found[0], f"{found[0].kernel}, {size(found[0])}{more}"


def only_launch(profile: object, function: str, otherwise: str = "") -> LaunchRecord:
    """Return the launch of a profile that must have exactly one, as `function` takes no more; else raise ValueError."""
    found = launches(profile)
    if len(found) != 1:
        raise ValueError(
            f"{function}() takes one launch and the profile has {len(found)}; pass one, as in "
            f"{function}(p.launches[0]){otherwise}"
        )
    return found[0]


def no_counts(launch: LaunchProfile) -> ValueError:
    """Return the error for a launch without counters."""
    return ValueError(
        f"the profile of {launch.kernel} holds no counts, as counters were off; launch it in `with profile():`"
    )


def size(launch: LaunchProfile) -> str:
    """Write grid and block: "4 096 x 256"."""
    return f"{shape(launch.grid)} {TIMES} {shape(launch.block)}"


def sectors(counts: Counts) -> int:
    """Count the 32-byte sectors that global loads and stores touched."""
    return counts.global_load_sectors + counts.global_store_sectors


def sectors_per_request(counts: Counts) -> float | None:
    """Return the sectors per request of global loads and stores; None without requests."""
    requests = counts.global_load_requests + counts.global_store_requests
    return sectors(counts) / requests if requests else None


def bank_conflicts(counts: Counts) -> int | None:
    """Count the bank conflicts of loads, stores, copies and atomics; None without an access to shared memory."""
    kinds = ("load", "store", "copy", "atomic")
    if not any(getattr(counts, f"shared_{kind}_requests") for kind in kinds):
        return None
    return sum(getattr(counts, f"shared_{kind}_conflicts") for kind in kinds)


def shorten(code: str, width: int = SOURCE_WIDTH) -> str:
    """Cut a line of source to `width` characters."""
    return code if len(code) <= width else code[: width - 1] + "\N{HORIZONTAL ELLIPSIS}"


def source_lines(launch: LaunchProfile, file: str, numbers: list[int]) -> dict[int, str]:
    """Return the text of the source lines `numbers` of `file`, without common indent; "" where it is not known."""
    every = launch.sources.get(file, "").expandtabs(4).splitlines()
    lines = {n: every[n - 1].rstrip() if 0 < n <= len(every) else "" for n in numbers}
    indent = min((len(t) - len(t.lstrip()) for t in lines.values() if t.strip()), default=0)
    return {n: t[indent:] for n, t in lines.items()}
