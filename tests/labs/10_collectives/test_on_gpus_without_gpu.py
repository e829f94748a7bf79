"""The engine on GPUs, as far as it can be tested without one: its plan, its copies with a stand-in for CuPy, errors."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from kernels.collectives import gpu_ranks, interpreter, on_gpus, relays
from kernels.collectives.gpu_ranks import GpuTimeout, PeerAccessError, Ranks
from kernels.collectives.message_plan import ADD, COPY, STAGE, operations
from kernels.collectives.recursive import halving_doubling_all_reduce, recursive_doubling_all_reduce
from kernels.collectives.relays import FOLDER, OneShotAllReduce, StoreBroadcast, TmaBroadcast, TwoShotAllReduce, options
from kernels.collectives.ring import ring_all_gather, ring_all_reduce, ring_broadcast, ring_reduce, ring_reduce_scatter
from kernels.collectives.scatter_gather import scatter_all_gather_broadcast
from kernels.collectives.schedule import Schedule, ScheduleError, Send
from kernels.collectives.tree import binary_tree_broadcast, tree_all_reduce, tree_broadcast
from warpcourse.bench import hopper
from warpcourse.bench.lab_kernels import NotOnThisCard

SCHEDULES = [
    ring_broadcast(4, 7),
    ring_reduce(4, 5),
    ring_all_reduce(4, 8),
    ring_reduce_scatter(3, 6),
    ring_all_gather(4, 8),
    tree_broadcast(4, 3),
    binary_tree_broadcast(4, 5),
    tree_all_reduce(4, 3),
    recursive_doubling_all_reduce(4, 3),
    halving_doubling_all_reduce(4, 8),
    scatter_all_gather_broadcast(4, 8),
]
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: f"{s.collective}-{len(s.sends)}")


def arrays_for(schedule, n=101):
    return [np.random.default_rng(rank).integers(-999, 1000, n) for rank in range(schedule.ranks)]


def in_some_order(schedule, arrays, seed, forget=None):
    """The plan's operations, each as soon as its lane and its waits let it, which one is left to chance.

    `forget`: an operation whose waits are not heeded.
    """
    lanes, ended, n, order = {}, set(), arrays[0].size, random.Random(seed)
    for operation in operations(schedule):
        lanes.setdefault(operation.lane, []).append(operation)
    held, scratch = [array.copy() for array in arrays], [np.full_like(array, -(10**9)) for array in arrays]
    while lanes:
        ready = [
            lane
            for lane, (first, *_) in lanes.items()
            if first.number == forget or all(number in ended for number in first.waits)
        ]
        assert ready, "all lanes wait for each other"
        lane = order.choice(ready)
        operation = lanes[lane].pop(0)
        if not lanes[lane]:
            del lanes[lane]
        send, part = operation.send, schedule.elements(operation.send, n)
        if operation.kind == COPY:
            held[send.destination][part] = held[send.source][part]
        elif operation.kind == STAGE:
            scratch[send.destination][part] = held[send.source][part]
        elif operation.kind == ADD:
            held[send.destination][part] += scratch[send.destination][part]
        else:
            held[send.destination][part] = scratch[send.destination][part]
        ended.add(operation.number)
    return held


@each_schedule
def test_whatever_order_the_streams_take_the_result_is_the_interpreters(schedule):
    arrays = arrays_for(schedule)
    want = interpreter.run(schedule, arrays)
    for seed in range(20):
        np.testing.assert_array_equal(in_some_order(schedule, arrays, seed), want, err_msg=f"order {seed}")


def test_every_wait_is_needed():
    """Leave out the waits of any operation, and some order gives another result: the ring all-reduce waits no more than
    it must.
    """
    schedule = ring_all_reduce(3, 3)
    arrays = arrays_for(schedule)
    want = interpreter.run(schedule, arrays)
    waiting = [operation.number for operation in operations(schedule) if operation.waits]
    assert len(waiting) > 8
    for number in waiting:
        found = (in_some_order(schedule, arrays, seed, forget=number) for seed in range(300))
        assert any(not np.array_equal(one, want) for one in found), operations(schedule)[number]


def test_messages_of_one_step_that_change_places():
    """Both read what was there before the step: an exchange goes by the scratch."""
    schedule = Schedule("all-reduce", 2, 1, (Send(0, 0, 1, 0, True), Send(0, 1, 0, 0, True)))
    arrays = arrays_for(schedule)
    for seed in range(20):
        for found in in_some_order(schedule, arrays, seed):
            np.testing.assert_array_equal(found, arrays[0] + arrays[1])


@pytest.fixture
def cupy(monkeypatch):
    path = Path(__file__).with_name("fake_cupy.py")
    spec = importlib.util.spec_from_file_location("fake_cupy", path)
    fake = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(gpu_ranks.timing, "gpu_count", lambda: fake.GPUS)
    return fake


@each_schedule
@pytest.mark.parametrize("devices", [None, [0, 0, 0, 0], [0, 1, 0, 1]])
def test_copies_between_the_stand_ins_gpus(cupy, schedule, devices):
    arrays = arrays_for(schedule)
    chosen = devices[: schedule.ranks] if devices else None
    found = on_gpus.run(schedule, arrays, devices=chosen)
    np.testing.assert_array_equal(found, interpreter.run(schedule, arrays))


def test_devices_that_cannot_reach_each_other(cupy):
    cupy.state.broken.add((1, 2))
    with pytest.raises(PeerAccessError, match=r"GPU 1 cannot access the memory of GPU 2 .*choose other GPUs"):
        Ranks(3)
    assert len(Ranks(3, [0, 1, 3])) == 3
    assert cupy.state.current == 0


def test_a_link_that_does_not_deliver_is_an_error_in_time(cupy):
    schedule = ring_broadcast(3, 4)
    ranks = Ranks(3)
    cupy.state.stuck.add(1)  # streams made from now on
    messages = on_gpus.Messages(schedule, ranks, ranks.put(arrays_for(schedule)))
    messages.launch()
    with pytest.raises(GpuTimeout, match=r"messages from rank 1 to rank 2 had not all come after 0.05 s") as caught:
        messages.wait(0.05)
    assert caught.value.ranks == (2,)


def test_what_does_not_fit_is_refused(cupy):
    schedule = ring_broadcast(3, 2)
    with pytest.raises(ValueError, match=r"5 ranks want GPU 4, and this machine has 4: take fewer ranks"):
        Ranks(5)
    with pytest.raises(ValueError, match=r"2 devices for 3 ranks"):
        on_gpus.run(schedule, arrays_for(schedule), devices=[0, 1])
    with pytest.raises(ValueError, match=r"2 arrays for 3 ranks"):
        on_gpus.run(schedule, arrays_for(schedule)[:2])
    with pytest.raises(ScheduleError, match="rank 1 does not hold slice 0"):
        on_gpus.run(Schedule("broadcast", 3, 1, (Send(0, 1, 2, 0),)), arrays_for(schedule))


def test_without_a_gpu_the_error_says_so(monkeypatch):
    monkeypatch.setattr(gpu_ranks.timing, "gpu_count", lambda: 0)
    with pytest.raises(ValueError, match="2 ranks want GPU 0, 1, and this machine has none"):
        on_gpus.run(ring_broadcast(2, 1), [np.zeros(4), np.zeros(4)])


@pytest.mark.parametrize("file", ["forward_tma.cu", "all_reduce_tma.cu", "one_shot.cu"])
def test_kernels_compile_for_hopper(file):
    assert hopper.cubin(FOLDER / file, options(PIECE=16384, STAGES=12, TOGETHER=4))[:4] == b"\x7fELF"


@pytest.mark.parametrize("kind", [TmaBroadcast, StoreBroadcast, OneShotAllReduce, TwoShotAllReduce])
def test_kernels_for_hopper_are_refused_by_name_on_other_cards(kind, monkeypatch, cupy):
    """So that a lesson shows what was recorded instead."""
    monkeypatch.setattr(relays.hopper, "missing", lambda what, instead: f"{what} on this card: take {instead}")
    monkeypatch.setattr(relays.hopper, "kernel", lambda *given: pytest.fail("was compiled"))
    monkeypatch.setattr(relays, "_blocks", lambda *given: 1)
    with pytest.raises(NotOnThisCard, match=r"The machine code of \w+\.cu .*: take the engine on_gpus"):
        kind(Ranks(2))
