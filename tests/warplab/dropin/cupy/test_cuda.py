"""`cupy.cuda` on the simulator."""

import math
import threading

import numpy as np
import pytest

from warplab.dropin import cupy as cp


def test_streams_events_device():
    with cp.cuda.Stream(non_blocking=True) as stream:
        start = stream.record()
    end = cp.cuda.Event()
    end.record(stream)
    end.synchronize()
    with pytest.warns(RuntimeWarning, match="no GPU here .* only NaN; `warplab run` estimates") as warned:
        assert math.isnan(cp.cuda.get_elapsed_time(start, end))
    assert warned[0].filename == __file__
    cp.cuda.Stream.null.synchronize()
    cp.cuda.Device().synchronize()
    cp.cuda.runtime.deviceSynchronize()
    assert cp.cuda.Device(0).compute_capability == "90"
    assert cp.cuda.runtime.getDeviceProperties(0)["name"] == b"PTX simulator"
    assert len(np.frombuffer(cp.cuda.alloc_pinned_memory(64), np.float32, 16)) == 16


def test_streams_are_those_of_their_thread():
    with cp.cuda.Stream() as outer:
        assert cp.cuda.get_current_stream() is outer
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cp.cuda.get_current_stream()))
        thread.start()
        thread.join()
        assert seen == [cp.cuda.Stream.null]
        with cp.cuda.stream.Stream(non_blocking=True):
            pass
        assert cp.cuda.get_current_stream() is outer
    called = []
    outer.launch_host_func(called.append, 3)
    outer.add_callback(lambda *arguments: called.append(arguments), 4)
    assert called == [3, (outer, 0, 4)]
    with pytest.raises(NotImplementedError, match="CUDA graphs are not on the simulator"):
        outer.begin_capture()


def test_memory_and_pools():
    pool = cp.get_default_memory_pool()
    used = pool.used_bytes()
    x = cp.zeros(1000)
    assert pool.used_bytes() == pool.total_bytes() == used + 8000
    del x
    pool.free_all_blocks()
    assert (pool.used_bytes(), pool.free_bytes(), pool.n_free_blocks()) == (used, 0, 0)
    memory = cp.cuda.alloc(80)
    y = cp.ndarray((4,), cp.float64, memory + 16)
    y[...] = 3
    assert y.data.ptr == memory.ptr + 16 == int(memory) + 16
    assert (memory.device.id, memory.device_id, (y.data - 16).ptr) == (0, 0, memory.ptr)
    shared = cp.ndarray((4,), cp.float64, cp.cuda.MemoryPointer(cp.cuda.UnownedMemory(y.data.ptr, 32, y), y.data.ptr))
    assert shared.tolist() == [3] * 4
    assert cp.get_default_pinned_memory_pool().n_free_blocks() == 0


def test_allocators():
    asked = []
    limited = cp.cuda.MemoryPool()
    limited.set_limit(cp.get_default_memory_pool().used_bytes() + 100)
    with pytest.raises(cp.cuda.memory.OutOfMemoryError, match="Out of memory allocating 1,000 bytes"):
        limited.malloc(1000)
    with cp.cuda.using_allocator(lambda size: (asked.append(size), limited.malloc(size))[1]):
        cp.cuda.alloc(64)
    assert asked == [64]
    before = cp.cuda.get_allocator()
    cp.cuda.set_allocator(limited.malloc)
    assert cp.cuda.get_allocator() == limited.malloc
    cp.cuda.set_allocator(before)
    with pytest.raises(ValueError, match="size and fraction"):
        limited.set_limit()
