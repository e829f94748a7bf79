"""Whether threads that wait for flags would see anything new, and who waits at all."""

from __future__ import annotations

import numpy as np

from warplab import simulator
from warplab.simulator.check.flag_waits import FlagWaits, Looks, MemoryChanges
from warplab.simulator.translate.translation import translate

WAIT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 flag) {
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [flag];
L: ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra L;
    st.volatile.global.u32 [%rd1], 2;
    ret;
}
"""


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


def test_threads_before_and_behind_the_loop_in_which_they_wait_are_not_stuck():
    translation = translate(simulator.load(WAIT).entries["kernel"])
    waits = FlagWaits(MemoryChanges(), translation, 0, {})
    others = {block.index for block in translation.blocks} - waits.loops.keys() - waits.endless
    assert waits.loops
    assert others
    assert not any(waits.stuck([number]) for number in others)
