"""What copies and products read in shared memory until a thread waits for them, which must not change meanwhile."""

from typing import Any

import numpy as np

from warplab.simulator.memory.array_locations import describe_shared


def require_unchanged(
    chunk: Any, site: Any, start: np.ndarray, lanes: np.ndarray, changed: np.ndarray, reader: str, reason: str
) -> None:
    """Raise SimulatorError if any of the pieces at `start`, read in the name of `lanes`, has `changed`."""
    if not chunk.checked or not changed.any():
        return
    place = int(np.argmax(changed))
    what, name, index = describe_shared(chunk, int(start[place]) % chunk.shared_stride, site.item)
    what, found = f"shared memory was written while {reader} read it: {what}", {"array": name, "index": index}
    raise chunk.error(site, lanes[place], what, reason, address=int(start[place]), **found)
