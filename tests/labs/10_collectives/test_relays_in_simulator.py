"""The relays and the all-reduces for small messages on virtual devices: copies by TMA are stood in for by threads, what
orders the ranks is the kernels' own, and the simulator looks for races between devices.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.collectives.relays import FOLDER, MAILBOX_WORDS, OneShotAllReduce, TwoShotAllReduce
from warpcourse.bench import hopper
from warplab import cp, virtual_devices
from warplab.simulator import DeviceDeadlock, DeviceRace

PIECE, BLOCKS, TOGETHER = 64, 2, 2
STAGES = {"forward_tma": 3, "all_reduce_tma": 3, "one_shot_all_reduce": 1, "two_shot_all_reduce": 1}
SMALL = OneShotAllReduce, TwoShotAllReduce
SEED = 5


def source(file: str, changes: dict[str, str]) -> str:
    """A kernel's text with its headers in it, and the stand-in. `changes`: replaced text, which must be there."""
    parts = [
        Path(__file__).with_name("bulk_copies_stand_in.cuh").read_text(),
        *(FOLDER.joinpath(name).read_text() for name in ("signals.cuh", "relay.cuh", file)),
    ]
    text = "\n".join(line for part in parts for line in part.splitlines() if not line.startswith('#include "'))
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text.replace("#pragma once", "")


def kernel(file: str, entry: str, changes: dict[str, str] | None = None):
    options = (f"-DPIECE={PIECE}", f"-DSTAGES={STAGES[entry]}", f"-DTOGETHER={TOGETHER}")
    return cp.RawModule(code=source(file, changes or {}), options=options).get_function(entry)


class Relay:
    """A relay on virtual devices, from launch to launch."""

    def __init__(self, devices, entry, changes=None):
        self.devices, self.entry = list(devices), entry
        self.kernel = kernel(f"{entry}.cu", entry, changes)
        self.boxes = [device.zeros(BLOCKS * MAILBOX_WORDS, np.uint32) for device in devices]
        self.words = [device.zeros(1, np.uint32) for device in devices]

    def launch(self, buffers):
        k, nobody = len(buffers), np.uint64(0)
        for rank, device in enumerate(self.devices):
            after, size = (rank + 1) % k, np.uint64(buffers[rank].nbytes)
            mine, theirs, before = self.boxes[rank], self.boxes[after], self.boxes[rank - 1]
            if self.entry == "forward_tma":
                last = rank == k - 1
                arguments = (buffers[rank], nobody if last else buffers[after], size, mine)
                arguments += (nobody if last else theirs, before if rank else nobody)
            else:
                where = np.uint32(rank), np.uint32(k)
                arguments = (buffers[rank], buffers[after], size, *where, mine, theirs, before)
            given = (*arguments, self.words[rank])
            stages = STAGES[self.entry]
            device.launch(self.kernel, BLOCKS, 32 * stages, given, shared_bytes=PIECE * stages)


@pytest.mark.parametrize("entry", ["forward_tma", "all_reduce_tma"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", [4, 100, 332])
def test_results_of_several_launches(entry, k, n):
    generator = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    with virtual_devices(k) as devices:
        relay = Relay(devices, entry)
        for _ in range(3):
            arrays = [generator.integers(-99, 100, n).astype(np.float32) for _ in range(k)]
            buffers = [device.asarray(array) for device, array in zip(devices, arrays, strict=True)]
            relay.launch(buffers)
            devices.synchronize()
            want = arrays[0] if entry == "forward_tma" else np.sum(arrays, axis=0)
            for buffer in buffers:
                np.testing.assert_array_equal(buffer.get(), want)


@pytest.mark.parametrize(
    ("entry", "old", "new"),
    [
        ("forward_tma", "if (p.after != NOTHING)", "if (false)"),
        ("all_reduce_tma", "if (p.after != NOTHING)", "if (false)"),
        ("forward_tma", "st.release.sys", "st.relaxed.sys"),
    ],
    ids=["forwards what has not come", "adds what has not come", "word without release"],
)
def test_what_is_left_out_is_found(entry, old, new):
    changes = {old: new}
    if "release" in old:
        changes["__device__ __forceinline__ void fence_for_bulk() { __threadfence_system(); }"] = (
            "__device__ __forceinline__ void fence_for_bulk() {}"
        )
    with virtual_devices(3) as devices:
        relay = Relay(devices, entry, changes)
        relay.launch([device.asarray(np.arange(332, dtype=np.float32)) for device in devices])
        with pytest.raises(DeviceRace):
            devices.synchronize()


class SimulatedRanks:
    """What an all-reduce for small messages asks of `gpu_ranks.Ranks`, on virtual devices. `word`: the host's."""

    cupy = cp

    def __init__(self, devices, word=0):
        self._devices, self.devices = list(devices), [device.id for device in devices]
        self._word = devices[0].full(1, word, np.uint32)
        self.abort = np.uint64(self._word.data.ptr)

    def __len__(self):
        return len(self.devices)

    @contextmanager
    def on(self, rank):
        with self._devices[rank]:
            yield SimpleNamespace(synchronize=lambda: None)

    def put(self, arrays):
        return [device.asarray(array) for device, array in zip(self._devices, arrays, strict=True)]


@contextmanager
def small_messages(kind, changes=None):
    """Few threads, so that each has several pairs, and a changed kernel, if any change is given."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OneShotAllReduce, "BLOCKS", BLOCKS)
        patched.setattr(OneShotAllReduce, "THREADS", (32, 32))
        if changes:
            changed = kernel("one_shot.cu", kind.ENTRY, changes)
            patched.setattr(hopper, "kernel", lambda *_: lambda grid, block, given: changed(grid, block, given))
        yield


def sum_in_a_row(ranks, small, sizes, in_place):
    """Queue all-reduces one after another, so that ranks may be a call apart, and compare bits."""
    generator, calls = np.random.default_rng(SEED), []
    print(f"seed {SEED}")
    for n in sizes:
        arrays = [generator.standard_normal(n, dtype=np.float32) for _ in range(len(ranks))]
        inputs = ranks.put(arrays)
        outputs = inputs if in_place else ranks.put([np.full(n, np.nan, np.float32)] * len(ranks))
        small.launch(inputs, outputs)
        calls.append((outputs, functools.reduce(np.add, arrays)))
    for outputs, want in calls:
        for output in outputs:
            np.testing.assert_array_equal(output.get(), want)


@settings(max_examples=15)
@given(
    st.sampled_from(SMALL),
    st.sampled_from([2, 3, 5]),
    st.lists(st.integers(1, 150), min_size=1, max_size=4),
    st.booleans(),
)
def test_small_messages_of_any_sizes_in_a_row(kind, k, pairs, in_place):
    """The largest fills the inboxes to their limit; the simulator finds what lies outside."""
    with virtual_devices(k) as devices, small_messages(kind):
        ranks = SimulatedRanks(devices)
        sum_in_a_row(ranks, kind(ranks, 8 * max(pairs)), [2 * each for each in pairs], in_place)


LATE = {  # a loop, and what rank 1 has yet to read behind it when the others end the call
    OneShotAllReduce: (4000, "float2 sum = make_float2(0, 0);"),
    TwoShotAllReduce: (2000, "const unsigned source = (rank + hop) % ranks;"),
}


@pytest.mark.parametrize("halves", [True, False], ids=["two halves", "one half"])
@pytest.mark.parametrize("kind", SMALL)
def test_the_next_call_overwrites_nothing_that_a_slow_rank_has_yet_to_read(kind, halves):
    rounds, before = LATE[kind]
    late = f"if (rank == 1) for (volatile unsigned i = 0; i < {rounds}; ++i);"
    changes = {before: late + before} | ({} if halves else {"size_t(flag & 1)": "size_t(0)"})
    found = nullcontext() if halves else pytest.raises(DeviceDeadlock)
    with virtual_devices(2) as devices, small_messages(kind, changes):
        ranks = SimulatedRanks(devices)
        small = kind(ranks, 256)
        with found:
            sum_in_a_row(ranks, small, [4, 64], in_place=False)


@pytest.mark.parametrize("absent", [0, 1, 2])
@pytest.mark.parametrize("kind", SMALL)
def test_all_wait_for_an_absent_rank_until_the_host_calls_off(kind, absent):
    for word in (0, 1):
        with virtual_devices(3) as devices, small_messages(kind, {"LOOKS = 4096": "LOOKS = 4"}):
            ranks = SimulatedRanks(devices, word)
            buffers = ranks.put([np.ones(2, np.float32)] * 3)
            small = kind(ranks, 64)
            small.launch(buffers, buffers, skip=[absent])
            with nullcontext() if word else pytest.raises(DeviceDeadlock) as caught:
                devices.synchronize()
            if not word:
                assert str(caught.value).startswith("deadlock: 2 devices wait")


@pytest.mark.parametrize("kind", SMALL)
def test_too_few_arrays_are_refused_before_any_rank_waits(kind):
    with virtual_devices(3) as devices:
        ranks = SimulatedRanks(devices)
        buffers = ranks.put([np.ones(2, np.float32)] * 3)
        with pytest.raises(ValueError, match="2 inputs, 3 outputs of \\[2\\] elements: give 3 of each"):
            kind(ranks).launch(buffers[:2], buffers)
        assert not any(device.launches for device in devices)
