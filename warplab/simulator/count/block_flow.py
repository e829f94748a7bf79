"""How often each basic block of a kernel's PTX ran, and where its branches went: what machine code is counted by."""

from dataclasses import dataclass

from warplab.simulator.translate.translation import Translation


@dataclass(eq=False)
class BlockFlow:
    """One launch; the lists have an entry for each block of `translation`, scaled where a sample of the grid ran.

    `threads`, `warps`: how often the block was run, by thread and by warp. For a block that ends in a branch or guard:
    `taken_threads`, `taken_warps` went to its target (warps that parted count on both sides), the others on to the
    next block; `parted`: warps that went both ways. `trips`: by the head of each loop, how many threads went round it
    how often (`trip_counts`).
    """

    translation: Translation
    threads: list[float]
    warps: list[float]
    taken_threads: list[float]
    taken_warps: list[float]
    parted: list[float]
    trips: dict[int, dict[int, float]]

    def add_scaled(self, other: "BlockFlow", factor: float) -> None:
        """Add `factor` times the counts of another run of the same kernel."""
        for name in ("threads", "warps", "taken_threads", "taken_warps", "parted"):
            ours, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, [a + factor * b for a, b in zip(ours, theirs, strict=True)])
        for head, trips in other.trips.items():
            for number, threads in trips.items():
                self.trips[head][number] = self.trips[head].get(number, 0) + factor * threads
