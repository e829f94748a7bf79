"""`--strict`: which doubtful programs count as wrong, by three rule books."""

from typing import Any

# Fields of simulator.Options. Each book excuses more than the one before it.
BOOKS: dict[str, dict[str, Any]] = {
    # As the course grades: nothing that CUDA does not promise is relied on.
    "course": {"volatile_orders": False, "lanes_apart": True, "used_reads_only": False, "ended_arrive": False},
    # What CUDA's documents promise. A barrier waits for the threads that have not ended (tuning guide of Volta), and a
    # value that nobody uses may be undefined; `volatile` orders nothing.
    "cuda": {"volatile_orders": False, "lanes_apart": False, "used_reads_only": True, "ended_arrive": True},
    # As `cuda`, but a `volatile` flag in shared memory orders what it guards, as in code from before 2017.
    "sanitizer": {"volatile_orders": True, "lanes_apart": False, "used_reads_only": True, "ended_arrive": True},
}
DEFAULT = "cuda"
SECONDS = 60.0  # for one launch
