"""Schedules: what the check refuses and says, the reference engine, ranks' programs and their deadlocks."""

import re

import numpy as np
import pytest

from kernels.collectives import interpreter
from kernels.collectives.programs import ORDERS, ProgramLine, find_deadlock, program, programs
from kernels.collectives.ring import ring_all_gather, ring_all_reduce, ring_broadcast, ring_reduce_scatter
from kernels.collectives.schedule import Schedule, ScheduleError, Send, check_schedule, holdings, ranks_of
from kernels.collectives.tree import tree_broadcast
from tests.support.random_inputs import generator

RIGHT = Send(0, 0, 1, 0), Send(1, 1, 2, 0)  # a broadcast over three ranks, one slice


def broadcast(*sends, ranks=3, slices=1, root=0):
    return Schedule("broadcast", ranks, slices, sends, root)


def reduction(*sends, ranks=3, slices=1, collective="reduce"):
    return Schedule(collective, ranks, slices, [Send(*send, reduce=True) for send in sends])


def test_a_right_schedule_passes_in_any_order_of_sends():
    check_schedule(broadcast(*RIGHT))
    check_schedule(broadcast(*reversed(RIGHT)))
    assert broadcast(*reversed(RIGHT)).sends == RIGHT
    assert broadcast(*RIGHT).steps == 2
    assert broadcast(ranks=1).steps == 0
    check_schedule(broadcast(ranks=1))


REFUSED = {
    "rank 1 does not hold slice 0 when the step begins; let it receive the slice in an earlier step": broadcast(
        Send(0, 0, 1, 0), Send(0, 1, 2, 0)
    ),
    "step 1: rank 0 to rank 1, slice 0: in this step the link from rank 0 to rank 1 already carries slice 0": broadcast(
        Send(0, 0, 2, 0), Send(1, 0, 1, 0), Send(1, 0, 1, 0)
    ),
    "in this step rank 0 also writes slice 0 of rank 2; move one of them to another step": broadcast(
        *RIGHT, Send(1, 0, 2, 0)
    ),
    "after step 0, the last, slice 0 of rank 2 lacks the data of rank 0; send the slice to rank 2": broadcast(RIGHT[0]),
    "a broadcast adds nothing; send it with reduce=False": broadcast(RIGHT[0], Send(1, 1, 2, 0, True)),
    "there is no rank 3; ranks are 0 to 2": broadcast(*RIGHT, Send(2, 0, 3, 0)),
    "there is no such slice; slices are 0 to 0": broadcast(*RIGHT, Send(2, 0, 1, 1)),
    "slices 0 to 1: there is no such slice": broadcast(*RIGHT, Send(2, 0, 1, 0, False, 2)),
    "a rank sends to another rank; leave this message out": broadcast(*RIGHT, Send(2, 1, 1, 0)),
    "steps begin at 0": broadcast(*RIGHT, Send(-1, 0, 1, 0)),
    "a message carries at least one slice, not 0": broadcast(*RIGHT, Send(2, 0, 1, 0, False, 0)),
    "step must be a whole number, not 0.5": broadcast(Send(0.5, 0, 1, 0)),
    "source must be a whole number, not None": broadcast(RIGHT[0], Send(0, None, 2, 0)),
    "root 3 is no rank; ranks are 0 to 2": broadcast(*RIGHT, root=3),
    "there is no collective 'scatter'; choose one of broadcast, reduce-scatter": Schedule("scatter", 2, 1, ()),
    "a schedule has at least one of ranks, not 0": Schedule("broadcast", 0, 1, ()),
    "a schedule has at least one of slices, not 0": Schedule("broadcast", 2, 0, ()),
    "3 is no multiple of 2": Schedule("all-gather", 2, 3, ()),
    "the data of rank 1 would be added twice to slice 0 of rank 0": reduction((0, 1, 0, 0), (1, 1, 0, 0)),
    "the data of ranks 1, 2 would be added twice": reduction((0, 2, 1, 0), (1, 1, 0, 0), (2, 1, 0, 0)),
    "slice 0 of rank 0 lacks the data of rank 1; each rank's data must be added on the way to rank 0": reduction(
        (0, 2, 0, 0)
    ),
    "slice 0 of rank 0 lacks the data of ranks 1, 2": reduction(ranks=3),
    "rank 1; its sum is complete at rank 1, but rank 0 owns it": reduction(
        (0, 0, 1, 0), ranks=2, slices=2, collective="reduce-scatter"
    ),
    "slice 1 of rank 1 lacks the data of rank 0": reduction(
        (0, 1, 0, 0), ranks=2, slices=2, collective="reduce-scatter"
    ),
}


@pytest.mark.parametrize("says", REFUSED)
def test_a_wrong_schedule_is_refused_with_what_to_do(says):
    with pytest.raises(ScheduleError, match=re.escape(says)):
        check_schedule(REFUSED[says])


def test_links_are_those_of_the_topology():
    check_schedule(broadcast(*RIGHT), {(0, 1), (1, 2)})
    with pytest.raises(ScheduleError, match="there is no link from rank 1 to rank 2; send along the links"):
        check_schedule(broadcast(*RIGHT), {(0, 1), (0, 2)})


def test_what_is_no_send_is_refused():
    with pytest.raises(TypeError, match=r"\(0, 0, 1, 0\) is no Send; write Send\(step"):
        broadcast((0, 0, 1, 0))


def test_messages_of_a_step_read_what_was_there_before():
    """Two ranks swap parts of a sum and both add: neither sees what the other has just written."""
    swap = Schedule("all-reduce", 2, 1, [Send(0, 0, 1, 0, True), Send(0, 1, 0, 0, True)])
    check_schedule(swap)
    assert [x.tolist() for x in interpreter.run(swap, [np.array([3]), np.array([5])])] == [[8], [8]]


def test_holdings_are_followed_step_by_step():
    states = [[row[:] for row in held] for held in holdings(broadcast(*RIGHT))]
    assert states == [[[1], [0], [0]], [[1], [1], [0]], [[1], [1], [1]]]
    assert ranks_of(0b1010) == [1, 3]
    assert ranks_of(0) == []


@pytest.mark.parametrize("n", [0, 1, 7, 8, 29])
def test_slices_cover_a_buffer_once_whatever_its_size(n):
    schedule = ring_broadcast(3, 8)
    parts = [schedule.elements(Send(0, 0, 1, i), n) for i in range(8)]
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(n))
    assert max(part.stop - part.start for part in parts) - min(part.stop - part.start for part in parts) <= 1
    assert schedule.elements(Send(0, 0, 1, 2, count=3), n) == slice(parts[2].start, parts[4].stop)


def test_the_reference_engine_leaves_its_inputs_alone():
    arrays = [generator().standard_normal((3, 5)) for _ in range(4)]
    copies = [array.copy() for array in arrays]
    found = interpreter.run(ring_all_reduce(4, 4), arrays)
    for array, copy, result in zip(arrays, copies, found, strict=True):
        np.testing.assert_array_equal(array, copy)
        np.testing.assert_allclose(result, sum(copies))
        assert result.shape == (3, 5)


def test_the_reference_engine_takes_arrays_that_are_not_contiguous():
    arrays = [np.arange(24).reshape(4, 6).T[::2] for _ in range(3)]
    for result in interpreter.run(ring_all_reduce(3, 3), arrays):
        np.testing.assert_array_equal(result, 3 * arrays[0])


def test_the_reference_engine_refuses_what_does_not_fit():
    ring = ring_broadcast(3, 2)
    with pytest.raises(ValueError, match="2 arrays for 3 ranks; give one per rank"):
        interpreter.run(ring, [np.zeros(4)] * 2)
    with pytest.raises(ValueError, match="the array of rank 2 has shape \\(5,\\) and dtype float64, that of rank 0"):
        interpreter.run(ring, [np.zeros(4), np.zeros(4), np.zeros(5)])
    with pytest.raises(TypeError, match=r"the array of rank 1 is a list; give a numpy\.ndarray"):
        interpreter.run(ring, [np.zeros(4), [0], np.zeros(4)])
    with pytest.raises(ScheduleError):
        interpreter.run(broadcast(RIGHT[0]), [np.zeros(4)] * 3)


# --- Programs of ranks ---------------------------------------------------------------------------------------------

CLOSED = [ring_reduce_scatter(4, 4), ring_all_gather(5, 5), ring_all_reduce(3, 3)]  # each step goes all round the ring


@pytest.mark.parametrize("schedule", CLOSED)
def test_blocking_sends_round_a_ring_deadlock(schedule):
    deadlock = find_deadlock(programs(schedule, "send first"))
    assert set(deadlock.circle) == set(range(schedule.ranks))
    for (rank, operation, peer), following in zip(
        deadlock.waiting, [*deadlock.circle[1:], deadlock.circle[0]], strict=True
    ):
        assert (operation.action, operation.peer, peer) == ("send", following, following)
        assert operation == program(schedule, rank, "send first")[0]
    assert "let one rank of the circle receive before it sends" in str(deadlock)
    assert "rank 0 waits for rank 1" in str(deadlock)


@pytest.mark.parametrize("schedule", CLOSED)
def test_other_orders_and_eager_sends_do_not_deadlock(schedule):
    assert find_deadlock(programs(schedule)) is None
    assert find_deadlock(programs(schedule, "alternate")) is None
    assert find_deadlock(programs(schedule, "send first"), eager=True) is None


@pytest.mark.parametrize("order", ORDERS)
def test_a_broadcast_never_deadlocks(order):
    for schedule in (ring_broadcast(5, 7), ring_broadcast(5, 7, 3), tree_broadcast(7, 2, 1)):
        assert find_deadlock(programs(schedule, order)) is None


def test_programs_have_every_message_once_on_each_side():
    schedule = ring_all_reduce(3, 6)
    found = programs(schedule)
    sends = [op for rank in found for op in rank if op.action == "start send"]
    receives = [op for rank in found for op in rank if op.action == "start receive"]
    assert len(sends) == len(receives) == len(schedule.sends)
    assert [str(op) for op in found[0][:3]] == [
        "start send slice 4 to rank 1",
        "start receive slice 2 from rank 2",
        "wait",
    ]


def test_a_receive_that_nobody_serves_is_found():
    deadlock = find_deadlock([[ProgramLine("send", 1)], [ProgramLine("receive", 0), ProgramLine("receive", 0)]])
    assert deadlock.circle == ()
    assert deadlock.waiting == ((1, ProgramLine("receive", 0), 0),)
    assert "rank 0 has ended" in str(deadlock)


def test_two_of_three_ranks_that_wait_for_each_other_are_the_circle():
    waiting = [[ProgramLine("receive", 1)], [ProgramLine("receive", 2)], [ProgramLine("receive", 1)]]
    assert set(find_deadlock(waiting).circle) == {1, 2}


def test_a_wait_waits_for_all_that_was_started():
    good = [[ProgramLine("start receive", 1), ProgramLine("send", 1), ProgramLine("wait")]]
    good.append([ProgramLine("receive", 0), ProgramLine("send", 0)])
    assert find_deadlock(good) is None
    bad = [good[0], [ProgramLine("receive", 0)]]
    assert find_deadlock(bad).waiting == ((0, ProgramLine("start receive", 1), 1),)


def test_programs_that_cannot_run_are_refused():
    with pytest.raises(ScheduleError, match="receive slice 2 from rank 0, meets rank 0: send slice 1 to rank 1"):
        find_deadlock([[ProgramLine("send", 1, 1)], [ProgramLine("receive", 0, 2)]])
    with pytest.raises(ValueError, match="there is no action 'push'"):
        find_deadlock([[ProgramLine("push", 1)], []])
    with pytest.raises(ValueError, match="the other rank is one of 0 to 1, and not 0 itself"):
        find_deadlock([[ProgramLine("send", 0)], []])
    with pytest.raises(ValueError, match="there is no order 'random'"):
        program(CLOSED[0], 0, "random")
    with pytest.raises(ValueError, match="there is no rank 4"):
        program(CLOSED[0], 4)
