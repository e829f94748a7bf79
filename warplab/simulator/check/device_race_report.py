"""The error for a race between devices: who did what to which element, and which rule of `device_clocks` is broken."""

import re
from typing import Any, NamedTuple

import numpy as np

from warplab.simulator.check.device_clocks import Rules, replayed
from warplab.simulator.errors import DeviceRace
from warplab.simulator.memory.array_locations import element
from warplab.simulator.memory.device_memory import Allocation

_SYSTEM_FENCE = "__threadfence_system() (in Numba cuda.threadfence_system())"

# What is forgiven, in this order, until the two accesses are in order: then this is the cause.
_CAUSES = (
    ("narrow fence", Rules(any_fence=True)),
    ("narrow flag", Rules(any_fence=True, any_flag=True)),
    ("no fence before the flag", Rules(unfenced_stores=True)),
    ("no fence after the wait", Rules(unfenced_loads=True)),
    ("no fence before the flag", Rules(unfenced_stores=True, unfenced_loads=True)),
    ("no barrier", Rules(no_barriers=True)),  # number _BARRIERS
    ("no barrier", Rules(True, True, True, True, True)),
)
_BARRIERS = 5


def _reason(cause: str, before: str, now: str) -> str:
    return {
        "narrow fence": f"The fence between {before} and the flag, or after the wait for it, is too narrow: "
        f"__threadfence() is for the threads of one device. Another device needs {_SYSTEM_FENCE}.",
        "narrow flag": "The flag has too narrow a scope: an atomic operation without _system, or an access with .gpu, "
        "is for the threads of one device. Use a volatile flag, atomicExch_system or cuda::thread_scope_system (in "
        "Numba, whose atomic functions are for one device, link functions in CUDA C++, cuda.declare_device).",
        "split word": "The two have different sizes, so neither is one access to the other: half of a word may be seen "
        "without the other half. Write and read data and flag by one access each, of the same size.",
        "no fence before the flag": f"A flag is set after {before}, but no fence stands between the two, so the other "
        f"device may see the flag first: put a {_SYSTEM_FENCE} between them.",
        "no fence after the wait": "The thread has waited for the flag, but no fence stands between the wait and "
        f"{now}, which may have been done before: put a {_SYSTEM_FENCE} after the wait.",
        "plain flag": "Is this a flag? Of an ordinary variable the compiler may load the value once, before the loop, "
        "and nothing orders what the flag guards: make it volatile on both devices (in Numba link functions in "
        "CUDA C++, cuda.declare_device).",
        "volatile data": "`volatile` brings no order into what is read and written beside a flag: put a "
        f"{_SYSTEM_FENCE} between {before} and the flag, and one between the wait for it and {now}.",
        "no wait": f"Is a wait missing? Before {now} the thread must wait for a flag that the other device sets after "
        f"{before}, with a {_SYSTEM_FENCE} between the two. Or was a flag set before that was done?",
        "no barrier": "The flag speaks for one thread only: put a __syncthreads() between the accesses of all threads "
        "and the one that sets the flag, and between the wait and the accesses of all threads (in Numba "
        "cuda.syncthreads()).",
    }[cause]


class Access(NamedTuple):
    """An access to the word in question: its site, `device_races.Kind`, and the thread's number and lane."""

    site: Any
    kind: Any
    thread: int
    lane: int


def race_error(
    shared, verbs: tuple[str, str], now: Access, before: Access, time: int, allocation: Allocation, offset: int
) -> DeviceRace:
    """Return the error for access `now` to the word at `offset` of an allocation, and an earlier one, made at `time`.

    `shared`: the `device_races.DeviceAccesses`. `verbs`: of both, as in "reads" and "wrote".
    """
    here, there = _members(shared, now.thread), _members(shared, before.thread)
    does, did = verbs
    name = here.names.get(allocation.address) or there.names.get(allocation.address) or allocation.name
    other_name = there.names.get(allocation.address)
    index = element(allocation, allocation.address + offset, now.site.item)
    array = f"array `{name}`" if name else "an array"
    owner = "" if allocation.device is None else f" of device {allocation.device}"
    also = f" (its `{other_name}`)" if other_name and other_name != name else ""
    block, thread = here.chunk.indices(now.thread - here.first)
    other_block, other_thread = there.chunk.indices(before.thread - there.first)
    cause = _cause(shared, now, before, time, here, there, allocation.holds_flags)
    return DeviceRace(
        f"race between devices: thread {thread} of block {block} of device {here.device} {does} element {index} of "
        f"{array}{owner}, which thread {other_thread} of block {other_block} of device {there.device} {did} at line "
        f"{before.site.where.line}{also}, and nothing orders the two for both devices",
        reason=_reason(cause, _done(did, there.device), _doing(does)),
        cause=cause,
        device=here.device,
        other_device=there.device,
        other_kernel=there.chunk.entry.name,
        other_file=before.site.where.file or None,
        other_source=there.chunk.entry.program.source_line(before.site.where),
        other_line=before.site.where.line,
        other_thread=(other_block, other_thread),
        array=name,
        index=index,
        **here.chunk.where(now.site, now.thread - here.first),
    )


def _done(did: str, device: int) -> str:
    return f"device {device}'s write" if did == "wrote" else f"device {device}'s read"


def _doing(does: str) -> str:
    return "this write" if does == "writes" else "this read"


def _members(shared, thread: int):
    return next(m for m in reversed(shared.members) if m.first <= thread)


def _cause(shared, now: Access, before: Access, time: int, here, there, holds_flags: bool) -> str:
    strong = now.kind.strong, before.kind.strong
    if all(strong) and holds_flags:
        return "split word" if now.kind.system and before.kind.system else "narrow flag"
    lane, other, when = np.array([now.lane]), np.array([before.lane]), np.array([time])
    # What is volatile on one side is a flag, unless the fences of another one would have brought it into order.
    for cause, rules in _CAUSES[:_BARRIERS] if any(strong) and holds_flags else _CAUSES:
        if replayed(shared.events, shared.warps, rules).knows(lane, other, when)[0]:
            return "volatile data" if any(strong) and cause != "no barrier" else cause
    if any(strong) and holds_flags:
        return "plain flag"
    if here.observer.neighbour_waits(now.thread) or there.observer.neighbour_waits(before.thread):
        return "no barrier"
    plain = _waits(here.chunk, now.site) or _waits(there.chunk, before.site)
    return "plain flag" if plain else "no wait"


def _waits(chunk, site) -> bool:
    """Tell whether this is a load in the condition of a loop, by the text of its line."""
    line = chunk.entry.program.source_line(site.where) or ""
    return site.op == "load" and re.search(r"\bwhile\b", line) is not None
