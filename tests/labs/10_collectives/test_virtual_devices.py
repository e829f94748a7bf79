"""The engine on virtual devices, and the kernel that forwards a ring broadcast: right, and refused without any part."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from kernels.collectives import interpreter, on_virtual_devices
from kernels.collectives.on_virtual_devices import ring_forwarding, ring_order
from kernels.collectives.recursive import halving_doubling_all_reduce, recursive_doubling_all_reduce
from kernels.collectives.ring import (
    ring_all_gather,
    ring_all_reduce,
    ring_broadcast,
    ring_reduce,
    ring_reduce_scatter,
)
from kernels.collectives.ring_forwarding import SOURCE
from kernels.collectives.scatter_gather import scatter_all_gather_broadcast
from kernels.collectives.schedule import Schedule, ScheduleError, Send
from kernels.collectives.tree import binary_tree_broadcast, tree_all_reduce, tree_broadcast
from tests.support import numba_ring
from warplab import virtual_devices
from warplab.simulator import DeviceDeadlock, DeviceRace


def arrays_of(k: int, n: int, dtype=np.float32, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng([seed, k, n])
    return [rng.integers(-50, 50, n).astype(dtype) for _ in range(k)]


def check(schedule: Schedule, arrays: list[np.ndarray], **options) -> None:
    before = [array.copy() for array in arrays]
    got, wanted = on_virtual_devices.run(schedule, arrays, **options), interpreter.run(schedule, arrays)
    for rank, (here, there, mine, old) in enumerate(zip(got, wanted, arrays, before, strict=True)):
        np.testing.assert_array_equal(here, there, err_msg=f"rank {rank}")
        assert (here.shape, here.dtype) == (mine.shape, mine.dtype)
        np.testing.assert_array_equal(mine, old)


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize(
    ("k", "slices", "n", "dtype"),
    [
        (2, 1, 1, np.float32),
        (2, 3, 31, np.uint8),
        (3, 5, 777, np.float32),
        (4, 7, 1001, np.uint16),
        (4, 3, 33, np.float64),
        (8, 9, 513, np.int32),
        (8, 2, 7, np.int8),
    ],
)
def test_ring_broadcast(k, slices, n, dtype, persistent):
    check(ring_broadcast(k, slices, root=k - 1), arrays_of(k, n, dtype), persistent=persistent)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 16), (1, 32), (3, 48), (5, 128)])
def test_any_grid_forwards(blocks, threads):
    schedule = ring_broadcast(4, 5, root=2, order=[2, 0, 3, 1])
    assert ring_order(schedule) == [2, 0, 3, 1]
    check(schedule, arrays_of(4, 4099), blocks=blocks, threads=threads)


@pytest.mark.parametrize(
    "schedule",
    [
        ring_reduce(3, 5, root=1),
        ring_reduce_scatter(4, 8),
        ring_all_gather(3, 6),
        ring_all_reduce(4, 4),
        tree_broadcast(5, 3),
        binary_tree_broadcast(6, 4),
        tree_all_reduce(5, 3),
        recursive_doubling_all_reduce(8, 2),
        halving_doubling_all_reduce(4, 8),
        scatter_all_gather_broadcast(4, 8),
    ],
    ids=lambda schedule: f"{schedule.collective} of {len(schedule.sends)} messages",
)
def test_every_schedule_runs(schedule):
    check(schedule, arrays_of(schedule.ranks, 101, np.int64))


def test_shapes_and_dtypes():
    check(ring_all_reduce(2, 2), [array.reshape(3, 5) for array in arrays_of(2, 15)])
    check(ring_broadcast(3, 4), [array.reshape(2, 2, 3) for array in arrays_of(3, 12)])
    check(ring_broadcast(1, 2), arrays_of(1, 5))
    for name in on_virtual_devices._ITEMS:
        check(ring_all_reduce(2, 2), arrays_of(2, 9, name))


def test_what_does_not_fit_is_refused():
    schedule = ring_broadcast(3, 2)
    with pytest.raises(ValueError, match="2 arrays for 3 ranks"):
        on_virtual_devices.run(schedule, arrays_of(2, 4))
    with pytest.raises(TypeError, match="arrays of complex64: the kernels know float32"):
        on_virtual_devices.run(schedule, arrays_of(3, 4, np.complex64))
    with pytest.raises(ScheduleError):
        on_virtual_devices.run(Schedule("broadcast", 3, 1, (Send(0, 1, 2, 0),)), arrays_of(3, 4))
    with pytest.raises(ValueError, match="runs ring broadcasts only"):
        on_virtual_devices.run(tree_broadcast(3, 2), arrays_of(3, 4), persistent=True)
    with pytest.raises(ValueError, match="17 ranks: there are up to 16 virtual devices"):
        on_virtual_devices.run(ring_broadcast(17, 1), arrays_of(17, 4))
    for options, says in (({"threads": 8}, "give 16 to 1024"), ({"blocks": 0}, "at least one")):
        with pytest.raises(ValueError, match=says):
            on_virtual_devices.run(schedule, arrays_of(3, 4), **options)


@pytest.mark.parametrize(
    "schedule", [tree_broadcast(4, 2), ring_all_gather(3, 3), ring_reduce(3, 2), binary_tree_broadcast(5, 2)]
)
def test_other_schedules_are_no_ring(schedule):
    assert ring_order(schedule) is None


def ring_in_numba(kernel, k: int, n: int, slices: int, blocks: int, threads: int) -> list[np.ndarray]:
    with virtual_devices(k) as devices:
        buffers = [device.asarray(array) for device, array in zip(devices, arrays_of(k, n), strict=True)]
        flags = [device.zeros(slices * blocks, np.uint32) for device in devices]
        for launch in (1, 2):
            for rank, device in enumerate(devices):
                after = min(rank + 1, k - 1)
                arguments = (buffers[rank], buffers[after], flags[rank], flags[after])
                arguments += (slices, rank > 0, rank < k - 1, np.uint32(launch))
                device.launch(kernel, blocks, threads, arguments)
            devices.synchronize()
        return [buffer.get() for buffer in buffers]


@pytest.mark.parametrize(("k", "n", "slices", "blocks", "threads"), [(2, 33, 1, 1, 32), (3, 1001, 5, 2, 64)])
def test_the_ring_in_numba(k, n, slices, blocks, threads):
    for buffer in ring_in_numba(numba_ring.forward, k, n, slices, blocks, threads):
        np.testing.assert_array_equal(buffer, arrays_of(k, n)[0])


@pytest.mark.parametrize(
    ("text", "instead", "cause"),
    [
        (
            "                cuda.threadfence_system()\n                set_flag",
            "                set_flag",
            "no fence before the flag",
        ),
        (
            "                cuda.threadfence_system()\n            cuda.sync",
            "            cuda.sync",
            "no fence after the wait",
        ),
        ("                while look(arrived, part) != launch:\n", "                while False:\n", "no wait"),
    ],
)
def test_the_ring_in_numba_without_a_part_is_refused(text, instead, cause, tmp_path):
    source = Path(numba_ring.__file__).read_text()
    assert source.count(text) == 1
    path = tmp_path / "changed_ring.py"
    path.write_text(source.replace(text, instead))
    scope = runpy.run_path(str(path))
    with pytest.raises(DeviceRace) as caught:
        ring_in_numba(scope["forward"], 3, 101, 2, 2, 64)
    assert caught.value.cause == cause


# -- forward.cu --------------------------------------------------------------------------------------------------------


def forward(source: str = SOURCE, k: int = 4, *, n: int = 1001, launches: int = 2, order=None, skip=()) -> list:
    """Broadcast fresh data of the root by each of some launches that are queued together. Returns the buffers."""
    order = list(order or range(k))
    with virtual_devices(k) as devices:
        buffers = [device.asarray(array) for device, array in zip(devices, arrays_of(k, n), strict=True)]
        ring = ring_forwarding(devices, order, slices=5, blocks=2, threads=64, source=source)
        for _ in range(launches):
            ring.launch(buffers, buffers[0].nbytes, skip)
        devices.synchronize()
        return [buffer.get() for buffer in buffers]


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_it_can_be_launched_again_without_resetting_flags(k):
    rng = np.random.default_rng(k)
    with virtual_devices(k) as devices:
        buffers = [device.asarray(array) for device, array in zip(devices, arrays_of(k, 333), strict=True)]
        ring = ring_forwarding(devices, range(k), slices=3, blocks=2, threads=32)
        for _ in range(3):
            data = rng.random(333).astype(np.float32)
            buffers[0].set(data)
            ring.launch(buffers, buffers[0].nbytes)
            ring.launch(buffers, buffers[0].nbytes)  # the root may not overwrite what others still forward
            for buffer in buffers:
                np.testing.assert_array_equal(buffer.get(), data)
        assert ring.launches == 6


def test_each_device_moves_each_byte_once():
    with virtual_devices(3) as devices:
        buffers = [device.asarray(array) for device, array in zip(devices, arrays_of(3, 4096), strict=True)]
        ring = ring_forwarding(devices, range(3), slices=4, blocks=2, threads=64)
        ring.launch(buffers, buffers[0].nbytes)
        devices.synchronize()
        counts = [device.counts for device in devices]
    flags = 4 * 2 * 4  # bytes of one flag per slice and block
    assert [c.global_store_bytes for c in counts] == [4 * 4096 + flags, 4 * 4096 + flags + 8, 8]
    assert all(c.global_load_bytes >= 4 * 4096 for c in counts[:2])


WAIT_FOR_START = "        if (next) go_on = wait(started + block, launch, abort);\n"
WAIT_FOR_SLICE = "            if (speaks) go_on = wait(arrived + part, launch, abort);\n"
SEEN = "    __threadfence_system();\n    return true;"
SET = "                __threadfence_system();\n                next_arrived"
WITHOUT = {  # what is changed, into what, and what must be found
    "the wait for a slice": (WAIT_FOR_SLICE, "", "no wait"),
    "the fence after a wait": (SEEN, "    return true;", "no fence after the wait"),
    "system scope after a wait": (SEEN, SEEN.replace("_system", ""), "narrow fence"),
    "the fence before the flag": (SET, "                next_arrived", "no fence before the flag"),
    "system scope before the flag": (SET, SET.replace("_system", ""), "narrow fence"),
    "the barrier after the wait for a start": (
        "    if (!__syncthreads_and(go_on)) return;\n\n",
        "    if (!go_on) return;\n\n",
        "no barrier",
    ),
    "the barrier after the wait for a slice": (
        "            if (!__syncthreads_and(go_on)) return;\n        }",
        "            if (!go_on) return;\n        }",
        "no barrier",
    ),
    "the barrier before the flag": (
        "            __syncthreads();\n            if (speaks) {",
        "            if (speaks) {",
        "no barrier",
    ),
    "volatile where the flag is set": ("volatile unsigned *next_arrived", "unsigned *next_arrived", "plain flag"),
}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0)])
@pytest.mark.parametrize(("text", "instead", "cause"), WITHOUT.values(), ids=WITHOUT)
def test_without_any_of_its_parts_it_is_refused(text, instead, cause, order):
    assert SOURCE.count(text) == 1
    with pytest.raises(DeviceRace) as caught:
        forward(SOURCE.replace(text, instead), order=order)
    assert caught.value.cause == cause
    assert caught.value.file == caught.value.other_file == "forward.cu"


def test_a_plain_flag_is_refused():
    plain = SOURCE.replace("wait(const volatile unsigned *flag", "wait(const unsigned *flag")
    plain = plain.replace("const volatile unsigned *arrived", "const unsigned *arrived")
    plain = plain.replace("const volatile unsigned *started", "const unsigned *started")
    with pytest.raises(DeviceRace) as caught:
        forward(plain)
    assert caught.value.cause == "plain flag"


STUCK = {  # without the wait for the start, a launch sets flags to its number before they were seen with the last one
    "the wait for the start": (WAIT_FOR_START, ""),
    "the start": ("            before_started[block] = launch;", ""),
    "the right number": ("next_arrived[part] = launch", "next_arrived[part] = launch + 1"),
}


@pytest.mark.parametrize(("text", "instead"), STUCK.values(), ids=STUCK)
def test_without_some_it_waits_for_ever_and_says_so(text, instead):
    with pytest.raises(DeviceDeadlock) as caught:
        forward(SOURCE.replace(text, instead), k=3)
    assert {wait.array for wait in caught.value.waiting} <= {"arrived", "started"}


def test_a_rank_that_does_not_take_part_is_named_by_those_that_wait_for_it():
    with pytest.raises(DeviceDeadlock, match=r"Device 0 has ended\. Device 2 has no launch\.") as caught:
        forward(launches=1, skip=[2])
    assert [(w.device, w.array) for w in caught.value.waiting] == [(1, "started"), (3, "arrived")]


def test_the_forwarding_kernel_as_it_is():
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        for buffer in forward(order=order):
            np.testing.assert_array_equal(buffer, arrays_of(4, 1001)[order[0]])
