"""`Options`: how a launch is simulated."""

from __future__ import annotations

from dataclasses import dataclass

from warplab.simulator.observer import Observer

POLICIES = ("volta", "pascal")


@dataclass(frozen=True)
class Options:
    """How a launch is simulated.

    `checks`: test every access; `races`: and look for data races. `volatile_orders`: volatile accesses are meant to
    synchronise and are no races themselves; without it those to shared memory are, like any others.
    `counters`: count, and keep what the first `trace_warps` warps did, at most `trace_events` accesses and steps.
    `instruction_limit`: thread instructions of the launch, and an eighth of it of a chunk; `path_limit`: instructions
    along one chunk's way; beyond either the launch is taken for endless. `chunk_lanes`: threads run at a time, about.
    `scheduling`: "volta" (a program counter a thread) or "pascal" (one a warp); see `scheduler`.
    `cooperative`: all blocks run together and can wait for one another (see `cooperative`).
    `sample_blocks`: run about so many blocks of a larger grid only and scale the counters (see `sampling`). Memory then
    holds the results of those blocks alone, and checks see nothing of the others; not for kernels whose blocks wait
    for one another. `observers`: see the launch, too (see `observer`).
    """

    checks: bool = True
    races: bool = True
    volatile_orders: bool = True
    counters: bool = True
    trace_warps: int = 4
    trace_events: int = 4096
    instruction_limit: int = 2**33
    path_limit: int = 1_000_000
    chunk_lanes: int = 1 << 15
    scheduling: str = "volta"
    cooperative: bool = False
    sample_blocks: int | None = None
    observers: tuple[Observer, ...] = ()

    def __post_init__(self) -> None:
        if self.sample_blocks is not None and self.sample_blocks < 1:
            raise ValueError(f"sample_blocks must be at least 1, not {self.sample_blocks}")
        if self.scheduling not in POLICIES:
            raise ValueError(f"scheduling must be one of {POLICIES}, not {self.scheduling!r}")
