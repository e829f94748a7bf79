"""The relays and the one-shot all-reduce on virtual devices: copies by TMA are stood in for by threads, what orders the
ranks is the kernels' own, and the simulator looks for races between devices.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.collectives.relays import FOLDER, MAILBOX_WORDS
from warplab import cp, virtual_devices
from warplab.simulator import DeviceRace

PIECE, BLOCKS, TOGETHER = 64, 2, 2
STAGES = {"forward_tma": 3, "all_reduce_tma": 3, "one_shot_all_reduce": 1, "two_shot_all_reduce": 1}
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


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("entry", ["one_shot_all_reduce", "two_shot_all_reduce"])
def test_small_messages(entry, k):
    generator = np.random.default_rng(SEED)
    slot = -(-64 // k) * k
    function = kernel("one_shot.cu", entry)
    with virtual_devices(k) as devices:
        inboxes = [device.zeros(4 * k * slot, np.uint64) for device in devices]
        addresses = np.array([inbox.data.ptr for inbox in inboxes], np.uint64)
        tables = [device.asarray(addresses) for device in devices]
        calls = [device.zeros(2, np.uint32) for device in devices]
        words = [device.zeros(1, np.uint32) for device in devices]
        for n in (2, 4, 100, 128):
            arrays = [generator.standard_normal(n, dtype=np.float32) for _ in range(k)]
            outputs = []
            for rank, device in enumerate(devices):
                outputs.append(device.full(n, np.nan, np.float32))
                sizes = np.uint32(n // 2), np.uint32(rank), np.uint32(k)
                given = (device.asarray(arrays[rank]), outputs[rank], *sizes, tables[rank], np.uint64(slot))
                device.launch(function, 2, 32, (*given, calls[rank], words[rank]))
            devices.synchronize()
            want = arrays[0].copy()
            for array in arrays[1:]:
                want += array
            for output in outputs:
                np.testing.assert_array_equal(output.get(), want)
