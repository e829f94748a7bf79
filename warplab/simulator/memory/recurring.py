"""Arrays that recur from step to step of a loop, and from launch to launch, such as the addresses of a tile's pieces.

They are found again by all that they are made of, so it does not matter whose launch or which device made them, and
nobody can write to them. The same array also saves what others compute of it: `Addresses` keep the elements they lead
to, `races` who the lanes are. Launches of several threads take turns (`device.launching`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

_MOST = 1 << 26  # bytes of all that is kept
_OF_KEY, _OF_ENTRY = 2048, 48  # bytes at most: of a key, objects and headers; of each entry, in all arrays made of it
_known: dict[tuple, Any] = {}
_kept = 0


def recurring(key: tuple, size: int, make: Callable[[], Any]) -> Any:
    """Return what `make` returns, arrays of `size` entries, or what it returned for this key before."""
    global _kept
    found = _known.get(key)
    if found is None:
        room = _OF_KEY + _OF_ENTRY * size
        if _kept + room > _MOST:
            _known.clear()
            _kept = 0
        _kept += room
        found = _known[key] = make()
    return found


def repeated(lanes: np.ndarray, times: int) -> np.ndarray:
    """Return each lane so many times."""
    return recurring((lanes.tobytes(), times), lanes.shape[0] * times, lambda: fixed(np.repeat(lanes, times)))


def fixed(array: np.ndarray) -> np.ndarray:
    """Return an array, to which nobody can write any more."""
    array.flags.writeable = False
    return array
