"""Streams, events, the device and its context."""

import asyncio
import concurrent.futures
import multiprocessing
import os

import numpy as np
import pytest
from numba.cuda.core import config
from numba.cuda.cudadrv.error import CudaDriverError, CudaSupportError

from warplab.dropin import numba_cuda as cuda
from warplab.dropin import simulated_device


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def test_the_device_says_what_it_is():
    device = cuda.get_current_device()
    assert device.name == "PTX simulator"
    assert device.compute_capability == (9, 0)
    assert device.WARP_SIZE == 32
    assert cuda.select_device(0) is device
    with pytest.raises(AttributeError, match="does not know"):
        _ = device.CLOCK_RATE


def test_events_order_but_give_no_time():
    stream = cuda.stream()
    start, end = cuda.event(), cuda.event(timing=True)
    start.record(stream)
    with stream.auto_synchronize():
        add_one[1, 32, stream](np.zeros(1))
    end.record(stream)
    end.synchronize()
    for elapsed in (lambda: cuda.event_elapsed_time(start, end), lambda: start.elapsed_time(end)):
        with pytest.warns(RuntimeWarning, match="no GPU here"):
            assert np.isnan(elapsed())


def test_streams():
    streams = [cuda.stream(), cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()]
    streams.append(cuda.external_stream(0x1234))
    x, called = np.zeros(3), []
    for stream in streams:
        with stream.auto_synchronize() as same:
            assert same is stream
            add_one[1, 32, stream](x)
        stream.add_callback(lambda *args: called.append(args), "data")
        stream.synchronize()
    assert (x == len(streams)).all()
    assert called == [(stream, 0, "data") for stream in streams]
    assert len({repr(stream) for stream in streams}) == 5


def test_a_stream_can_be_awaited():
    async def run():
        stream = cuda.stream()
        add_one[1, 32, stream](x)
        assert await stream.async_done() is stream

    x = np.zeros(3)
    asyncio.run(run())
    assert (x == 1).all()


def test_devices_and_contexts(capsys):
    assert len(cuda.gpus) == 1
    assert [gpu.id for gpu in cuda.gpus] == [cuda.gpus.current.id] == [0]
    with cuda.gpus[0]:
        add_one[1, 32](np.zeros(3))
    context = cuda.current_context()
    assert context.device is cuda.get_current_device()
    assert isinstance(context.get_memory_info(), cuda.MemoryInfo)
    context.synchronize()
    with pytest.raises(AttributeError, match="context has no memalloc"):
        context.memalloc(10)
    device = cuda.get_current_device()
    assert (device.MAX_THREADS_PER_MULTIPROCESSOR, device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) == (2048, 228 << 10)
    assert (device.COMPUTE_CAPABILITY_MAJOR, device.MAX_REGISTERS_PER_BLOCK) == (9, 65536)
    supported = cuda.is_float16_supported, cuda.is_bfloat16_supported, cuda.is_fp8_supported, cuda.is_supported_version
    assert all(ask() is True for ask in supported)
    assert cuda.cuda_error() is None
    assert cuda.runtime.get_version()[0] == 13
    assert cuda.detect() is True
    assert "'PTX simulator'" in capsys.readouterr().out


def test_what_only_a_gpu_needs_changes_nothing():
    @cuda.require_context
    def launch(x):
        with cuda.defer_cleanup(), cuda.profiling():
            add_one[1, 32](x)
        return x

    cuda.profile_start()
    assert launch(np.zeros(2)).tolist() == [1, 1]
    cuda.profile_stop()
    cuda.synchronize()
    cuda.close()


def test_memory_is_not_shared_between_processes():
    with pytest.raises(NotImplementedError, match="one process"):
        cuda.to_device(np.ones(3)).get_ipc_handle()
    with pytest.raises(NotImplementedError, match="one process"):
        cuda.open_ipc_array(b"", 3, np.float32)


def total() -> float:
    return float(cuda.to_device(np.ones(3)).copy_to_host().sum())


def test_a_forked_process_cannot_use_a_device_that_was_in_use(monkeypatch):
    def in_a_forked_process() -> float:
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            return pool.submit(total).result()

    monkeypatch.setattr(simulated_device, "_process", None)
    assert in_a_forked_process() == 3  # nothing was used here before
    cuda.current_context()
    assert simulated_device._process == os.getpid()
    with pytest.raises(CudaDriverError, match=r"CUDA initialized before forking.*get_context\('spawn'\)"):
        in_a_forked_process()


def test_a_device_that_numba_disables(monkeypatch):
    monkeypatch.setattr(config, "DISABLE_CUDA", 1)
    monkeypatch.setattr(simulated_device, "_process", None)
    assert not cuda.is_available()
    assert "NUMBA_DISABLE_CUDA=1" in cuda.cuda_error()
    with pytest.raises(CudaSupportError, match="CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1"):
        cuda.device_array(1)
