"""Whether threads that wait for flags would see anything new."""

from __future__ import annotations

import numpy as np

from warplab.simulator.check.flag_waits import Looks, MemoryChanges


def test_something_is_new_where_memory_was_written_and_a_flag_differs():
    memory, flags = MemoryChanges(count=7), np.zeros(4, np.uint32)
    looks = Looks(memory, 7, unknown=False, seen=[(flags, np.array([1]), np.array([0], np.uint32))])
    flags[1] = 5
    assert not looks.changed()  # no kernel has written since, as far as the count tells
    memory.count += 1
    assert looks.changed()
    flags[1], flags[2] = 0, 5
    assert not looks.changed()  # another word
    assert Looks(memory, 7, unknown=True, seen=[]).changed()
