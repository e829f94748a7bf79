"""Races between devices: litmus tests of PTX's memory model for flags, each mistake beside its mended twin."""

from __future__ import annotations

import numpy as np
import pytest

from warplab.compile.headers import include_folders
from warplab.dropin import numba_cuda as cuda
from warplab.dropin.virtual_devices import virtual_devices
from warplab.launch.kernel_source import CudaSource
from warplab.simulator import DataRace, DeviceRace, UninitializedRead

_INCLUDES = tuple(f"-I{folder}" for folder in include_folders())

# Message passing: `send` stores into the peer's memory and sets a flag there, `receive` waits for it.
ATOMIC = """#include <cuda/atomic>
#define SYSTEM cuda::thread_scope_system
typedef cuda::atomic_ref<unsigned, SYSTEM> system_ref;
"""
MESSAGE = r"""
__device__ void release(unsigned* f, unsigned v) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(f), "r"(v) : "memory");
}
__device__ unsigned acquire(unsigned* f) {
    unsigned v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(f) : "memory");
    return v;
}
__device__ unsigned acquire_gpu(unsigned* f) {
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(f) : "memory");
    return v;
}
#define SET *(volatile unsigned*)flag = 1
#define LOOK *(volatile unsigned*)flag
#define FENCE __threadfence_system()
#define SYNC __syncthreads()

extern "C" __global__ void send(const int* mine, int* theirs, unsigned* flag, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) theirs[i] = mine[i];
    @1;
    if (threadIdx.x == 0) { @2; @3; }
}
extern "C" __global__ void receive(const int* mine, unsigned* flag, int* out, int n) {
    if (threadIdx.x == 0) { @4; @5; }
    @6;
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = mine[i] + 1;
}
"""
RIGHT = ("SYNC", "FENCE", "SET", "while (LOOK == 0)", "FENCE", "SYNC")


def message(*changes: tuple[int, str]) -> str:
    """The source with some of its six places changed, which are numbered from 1."""
    parts = dict(enumerate(RIGHT, 1)) | dict(changes)
    text = MESSAGE
    for number, part in parts.items():
        text = text.replace(f"@{number};", f"{part};" if part else "")
    return ATOMIC + text if "cuda::" in text else text


def pass_message(
    code: str, *, threads: int = 64, n: int = 100, sender_first: bool = True, flag: int = 0, data_holds_flags=True
):
    """Send n numbers from device 0 to device 1. Returns what device 1 makes of them."""
    send, receive = CudaSource(code, "send", _INCLUDES), CudaSource(code, "receive", _INCLUDES)
    with virtual_devices(2) as devices:
        a = devices[0].asarray(np.arange(n, dtype=np.int32))
        b, out = devices[1].zeros(n, np.int32), devices[1].empty(n, np.int32)
        devices[1]._device.memory.find(b.data.ptr).holds_flags = data_holds_flags
        f = devices[1].zeros(8, np.uint32)[flag:]
        launches = [
            lambda: devices[0].launch(send, 1, threads, (a, b, f, np.int32(n))),
            lambda: devices[1].launch(receive, 1, threads, (b, f, out, np.int32(n))),
        ]
        for launch in launches if sender_first else launches[::-1]:
            launch()
        devices.synchronize()
        return out.get()


SOUND = {
    "volatile": (),
    "a fence by each thread": ((1, "FENCE; SYNC"), (2, "")),
    "fences on the other side of the barriers": ((5, ""), (6, "SYNC; FENCE")),
    "release and acquire": ((2, ""), (3, "release(flag, 1)"), (4, "while (acquire(flag) == 0)"), (5, "")),
    "system atomics": ((3, "atomicExch_system(flag, 1)"), (4, "while (atomicAdd_system(flag, 0) == 0)")),
    "cuda::atomic_ref": (
        (2, ""),
        (3, "system_ref(*flag).store(1, cuda::memory_order_release)"),
        (4, "while (system_ref(*flag).load(cuda::memory_order_acquire) == 0)"),
        (5, ""),
    ),
    "cuda::atomic_ref with fences": (
        (2, "cuda::atomic_thread_fence(cuda::memory_order_release, SYSTEM)"),
        (3, "system_ref(*flag).store(1, cuda::memory_order_relaxed)"),
        (4, "while (system_ref(*flag).load(cuda::memory_order_relaxed) == 0)"),
        (5, "cuda::atomic_thread_fence(cuda::memory_order_acquire, SYSTEM)"),
    ),
    "everybody waits": ((4, ""), (5, ""), (6, "while (LOOK == 0); FENCE")),
    "another thread fences, between barriers": ((1, "SYNC; if (threadIdx.x == 1) FENCE; SYNC"), (2, "")),
}
WRONG = {
    "no fence before the flag": ("no fence before the flag", ((2, ""),)),
    "no fence after the wait": ("no fence after the wait", ((5, ""),)),
    "a fence for one device, sender": ("narrow fence", ((2, "__threadfence()"),)),
    "a fence for one device, receiver": ("narrow fence", ((5, "__threadfence()"),)),
    "a fence for one block": ("narrow fence", ((2, "__threadfence_block()"),)),
    "no wait": ("no wait", ((4, ""),)),
    "no wait, one thread": ("no wait", ((4, ""), (5, ""), (6, ""))),
    "no barrier before the flag": ("no barrier", ((1, ""),)),
    "no barrier after the wait": ("no barrier", ((6, ""),)),
    "the fence after the flag": ("no fence before the flag", ((2, "SET"), (3, "FENCE"))),
    "a fence that all had before, and then another thread": (
        "no fence before the flag",
        ((1, "FENCE; theirs[threadIdx.x] = mine[threadIdx.x]; if (threadIdx.x) FENCE; SYNC"), (2, "")),
    ),
    "a plain flag": ("plain flag", ((4, "while (*flag == 0)"),)),
    "set as a plain variable": ("plain flag", ((3, "*flag = 1"),)),
    "an atomic of one device": ("narrow flag", ((3, "atomicExch(flag, 1)"),)),
    "acquired for one device": ("narrow flag", ((4, "while (acquire_gpu(flag) == 0)"), (5, ""))),
    "relaxed without fences": (
        "no fence before the flag",
        (
            (2, ""),
            (3, "system_ref(*flag).store(1, cuda::memory_order_relaxed)"),
            (4, "while (system_ref(*flag).load(cuda::memory_order_relaxed) == 0)"),
            (5, ""),
        ),
    ),
}


@pytest.mark.parametrize("sender_first", [True, False])
@pytest.mark.parametrize("changes", SOUND.values(), ids=SOUND)
def test_a_message_that_is_passed_by_the_rules_arrives(changes, sender_first):
    assert (pass_message(message(*changes), sender_first=sender_first) == np.arange(1, 101)).all()


@pytest.mark.parametrize("sender_first", [True, False])
@pytest.mark.parametrize(("cause", "changes"), WRONG.values(), ids=WRONG)
def test_whatever_is_missing_is_a_race_between_devices(cause, changes, sender_first):
    with pytest.raises(DeviceRace) as caught:
        pass_message(message(*changes), sender_first=sender_first)
    error = caught.value
    assert isinstance(error, DataRace)
    assert error.cause == cause
    assert {error.device, error.other_device} == {0, 1}


VOLATILE = (
    ("theirs[i] = mine[i]", "((volatile int*)theirs)[i] = mine[i]"),
    ("mine[i] + 1", "((volatile int*)mine)[i] + 1"),
)
UNFENCED = (2, ""), (5, "")


@pytest.mark.parametrize("sides", [VOLATILE[:1], VOLATILE[1:]], ids=["sender", "receiver"])
def test_volatile_data_beside_a_flag_is_told_from_a_plain_flag(sides):
    for changes, fine in ((), True), (UNFENCED, False):
        code = message(*changes)
        for plain, volatile in sides:
            code = code.replace(plain, volatile)
        if fine:
            assert (pass_message(code) == np.arange(1, 101)).all()
            continue
        with pytest.raises(DeviceRace, match="`volatile` brings no order") as caught:
            pass_message(code)
        assert caught.value.cause == "volatile data"


@pytest.mark.parametrize("missing", [(), *[(place,) for place in UNFENCED], UNFENCED])
def test_where_no_flags_are_volatile_on_both_sides_is_no_excuse(missing):
    """Such as a store of data and flag that was split in two."""
    code = message(*missing)
    for plain, volatile in VOLATILE:
        code = code.replace(plain, volatile)
    assert (pass_message(code) == np.arange(1, 101)).all()  # any word may be a flag
    if missing:
        with pytest.raises(DeviceRace) as caught:
            pass_message(code, data_holds_flags=False)
        assert caught.value.cause == "volatile data"
    else:
        assert (pass_message(code, data_holds_flags=False) == np.arange(1, 101)).all()


WORD = r"""
#define LOOK(at) (((volatile unsigned*)word)[at])
extern "C" __global__ void send(volatile unsigned long long* word) { @; }
extern "C" __global__ void receive(volatile unsigned long long* word, unsigned* out) {
    unsigned long long both;
    do both = *word; while (both >> 32 != 1);
    *out = both;
}
"""


@pytest.mark.parametrize("split", [False, True])
def test_data_and_flag_in_one_word_are_written_and_read_by_one_access_each(split):
    """NCCL's protocol LL. PTX: accesses of two sizes are not morally strong, so they race."""
    code = WORD.replace("@", "LOOK(0) = 7; LOOK(1) = 1" if split else "*word = 1ull << 32 | 7")
    with virtual_devices(2) as devices:
        word, out = devices[1].zeros(1, np.uint64), devices[1].zeros(1, np.uint32)
        devices[0].launch(CudaSource(code, "send"), 1, 1, (word,))
        devices[1].launch(CudaSource(code, "receive"), 1, 1, (word, out))
        if split:
            with pytest.raises(DeviceRace, match="half of a word") as caught:
                devices.synchronize()
            assert caught.value.cause == "split word"
        else:
            devices.synchronize()
            assert out.get() == 7


@pytest.mark.parametrize("sender_first", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        ((4, "if (LOOK == 0)"),),  # looks once: found set or not, that is luck
        ((1, "SYNC; if (threadIdx.x == 0) SET; SYNC"),),  # set before the fence and again after it
        ((1, "if (threadIdx.x == 0) { FENCE; SET; } SYNC"),),  # and before the others have stored
    ],
)
def test_luck_plays_no_part(changes, sender_first):
    with pytest.raises(DeviceRace):
        pass_message(message(*changes), sender_first=sender_first)


def test_a_flag_that_two_blocks_set_speaks_for_the_first():
    code = """
    extern "C" __global__ void send(const int* mine, int* theirs, volatile unsigned* flag, int per_block) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        theirs[i] = mine[i];
        __syncthreads();
        if (threadIdx.x == 0) { __threadfence_system(); flag[blockIdx.x * per_block] = 1; }
    }
    extern "C" __global__ void receive(const int* mine, volatile unsigned* flag, int* out, int per_block) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (threadIdx.x == 0) { while (flag[blockIdx.x * per_block] == 0); __threadfence_system(); }
        __syncthreads();
        out[i] = mine[i];
    }"""

    def run(per_block: bool):
        with virtual_devices(2) as devices:
            a, b = devices[0].asarray(np.arange(96, dtype=np.int32)), devices[1].zeros(96, np.int32)
            flag, out = devices[1].zeros(3, np.uint32), devices[1].empty(96, np.int32)
            devices[0].launch(CudaSource(code, "send"), 3, 32, (a, b, flag, np.int32(per_block)))
            devices[1].launch(CudaSource(code, "receive"), 3, 32, (b, flag, out, np.int32(per_block)))
            return out.get()

    assert (run(per_block=True) == np.arange(96)).all()
    with pytest.raises(DeviceRace, match=r"thread \(0, 0, 0\) of block \([12], 0, 0\) of device 0 wrote"):
        run(per_block=False)


@pytest.mark.parametrize("threads", [1, 32, 33, 128])
def test_any_number_of_threads(threads):
    assert (pass_message(message(), threads=threads) == np.arange(1, 101)).all()
    with pytest.raises(DeviceRace):
        pass_message(message((2, "")), threads=threads)
    with pytest.raises(DeviceRace):
        pass_message(message((4, "")), threads=threads)


def test_the_lanes_of_a_warp_do_not_know_what_one_of_them_has_seen():
    with pytest.raises(DeviceRace) as caught:
        pass_message(message((6, "")), threads=32)
    assert caught.value.cause == "no barrier"
    assert (pass_message(message((6, "__syncwarp()")), threads=32) == np.arange(1, 101)).all()


def test_the_message_names_all_that_one_needs():
    with pytest.raises(DeviceRace) as caught:
        pass_message(message((2, "")))
    error, text = caught.value, str(caught.value)
    assert (error.array, error.index, error.thread, error.other_thread) == ("mine", 0, (0, 0, 0), ((0,) * 3, (0,) * 3))
    assert (error.kernel, error.other_kernel, error.device, error.other_device) == ("receive", "send", 1, 0)
    for part in (
        "race between devices: thread (0, 0, 0) of block (0, 0, 0) of device 1 reads element 0 of array `mine` of "
        "device 1, which thread (0, 0, 0) of block (0, 0, 0) of device 0 wrote",
        "(its `theirs`)",
        f"device 1: kernel.cu, line {error.line}: for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = mine[i]",
        f"device 0: kernel.cu, line {error.other_line}: for (int i = threadIdx.x; i < n; i += blockDim.x) theirs[i] =",
        "put a __threadfence_system() between them",
    ):
        assert part in text, text


def test_reading_what_nobody_has_written_yet_is_told_as_the_missing_wait():
    code = message((4, ""), (5, ""))
    with virtual_devices(2) as devices:
        a, b = devices[0].asarray(np.arange(64, dtype=np.int32)), devices[1].empty(64, np.int32)
        out, flag = devices[1].empty(64, np.int32), devices[1].zeros(1, np.uint32)
        devices[1].launch(CudaSource(code, "receive", _INCLUDES), 1, 64, (b, flag, out, np.int32(64)))
        devices[0].launch(CudaSource(code, "send", _INCLUDES), 1, 64, (a, b, flag, np.int32(64)))
        with pytest.raises(DeviceRace) as caught:
            devices.synchronize()
        assert caught.value.cause == "no wait"
        empty = devices[1].empty(64, np.int32)
        devices[1].launch(CudaSource(code, "receive", _INCLUDES), 1, 64, (empty, flag, out, np.int32(64)))
        devices[0].launch(CudaSource(code, "send", _INCLUDES), 1, 64, (a, b, flag, np.int32(64)))
        with pytest.raises(UninitializedRead, match="kernel receive on device 1"):
            devices.synchronize()


def test_a_write_over_what_the_other_device_still_reads():
    code = """
    extern "C" __global__ void read(const int* x, int* out, volatile unsigned* seen, int tells) {
        out[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        if (tells && threadIdx.x == 0) { __threadfence_system(); *seen = 1; }
    }
    extern "C" __global__ void overwrite(int* x, volatile unsigned* seen, int waits) {
        if (waits && threadIdx.x == 0) { while (!*seen); __threadfence_system(); }
        __syncthreads();
        x[threadIdx.x] = -1;
    }"""

    def run(waits: bool):
        with virtual_devices(2) as devices:
            x, out = devices[0].asarray(np.arange(64, dtype=np.int32)), devices[0].empty(64, np.int32)
            seen = devices[1].zeros(1, np.uint32)
            devices[0].launch(CudaSource(code, "read"), 1, 64, (x, out, seen, np.int32(1)))
            devices[1].launch(CudaSource(code, "overwrite"), 1, 64, (x, seen, np.int32(waits)))
            devices.synchronize()
            return out.get()

    assert (run(waits=True) == np.arange(64)).all()
    with pytest.raises(DeviceRace) as caught:
        run(waits=False)
    assert caught.value.cause == "no wait"
    assert "writes element 0 of array `x` of device 0" in str(caught.value)


CHAIN = """
extern "C" __global__ void relay(const int* mine, int* next, volatile unsigned* come, volatile unsigned* next_come,
                                 int first, int n) {
    __shared__ int passed_on;
    if (threadIdx.x == 0) {
        if (!first) { while (come[blockIdx.x] != 7); @acquire; }
        passed_on = 1;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        next[i] = mine[i] + passed_on;
    __syncthreads();
    if (threadIdx.x == 0) { @release; next_come[blockIdx.x] = 7; }
}"""


def relay(k: int, acquire: str, release: str, grid: int, block: int, n: int = 301) -> np.ndarray:
    code = CHAIN.replace("@acquire", acquire).replace("@release", release)
    with virtual_devices(k) as devices:
        buffers = [devices[0].asarray(np.arange(n, dtype=np.int32))]
        buffers += [devices[i % k].empty(n, np.int32) for i in range(1, k + 1)]
        flags = [devices[i % k].zeros(grid, np.uint32) for i in range(k + 1)]
        for i in range(k):
            arguments = (buffers[i], buffers[i + 1], flags[i], flags[i + 1], np.int32(i == 0), np.int32(n))
            devices[i].launch(CudaSource(code, "relay"), grid, block, arguments)
        return buffers[-1].get()


@pytest.mark.parametrize(("k", "grid", "block"), [(2, 1, 32), (3, 2, 48), (4, 3, 64), (8, 2, 32)])
def test_what_one_device_has_seen_it_can_tell_the_next(k, grid, block):
    fence = "__threadfence_system()"
    assert (relay(k, fence, fence, grid, block) == np.arange(301) + k).all()
    with pytest.raises(DeviceRace, match="no fence stands between the two"):
        relay(k, fence, "", grid, block)
    with pytest.raises(DeviceRace, match="between the wait and this read"):
        relay(k, "", fence, grid, block)


def test_blocks_of_one_device_may_use_its_own_scope():
    code = """
    extern "C" __global__ void far(const int* mine, int* theirs, volatile unsigned* flag) {
        theirs[threadIdx.x] = mine[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) { __threadfence_system(); *flag = 1; }
    }
    extern "C" __global__ void near(const int* mine, volatile unsigned* flag, unsigned* local, int* out) {
        if (blockIdx.x == 0) {
            if (threadIdx.x == 0) { while (!*flag); __threadfence_system(); atomicExch(local, 1); }
            return;
        }
        if (threadIdx.x == 0) { while (atomicAdd(local, 0) == 0); FENCE; }
        __syncthreads();
        out[threadIdx.x] = mine[threadIdx.x];
    }"""

    def run(fence: str) -> np.ndarray:
        with virtual_devices(2) as devices:
            a, b = devices[0].asarray(np.arange(64, dtype=np.int32)), devices[1].empty(64, np.int32)
            flag, local, out = (
                devices[1].zeros(1, np.uint32),
                devices[1].zeros(1, np.uint32),
                devices[1].empty(64, "i4"),
            )
            text = code.replace("FENCE;", fence)
            devices[1].launch(CudaSource(text, "near"), 2, 64, (b, flag, local, out))
            devices[0].launch(CudaSource(text, "far"), 1, 64, (a, b, flag))
            return out.get()

    assert (run("__threadfence();") == np.arange(64)).all()
    with pytest.raises(DeviceRace) as caught:
        run("")
    assert caught.value.cause == "no fence after the wait"


# -- Numba -------------------------------------------------------------------------------------------------------------


# Numba has no volatile access and no atomic operation of system scope: flags are functions in CUDA C++.
FLAGS = """
#define ARRAY void*, void*, long long, long long, unsigned* flags, long long, long long
extern "C" __device__ int look(unsigned* result, ARRAY, long long i) {
    *result = *(volatile unsigned*)(flags + i);
    return 0;
}
extern "C" __device__ int set_flag(int* result, ARRAY, long long i, unsigned value) {
    *(volatile unsigned*)(flags + i) = value;
    return 0;
}"""
linked = cuda.CUSource(FLAGS, name="flags.cu")
look = cuda.declare_device("look", "uint32(uint32[::1], int64)", link=linked)
set_flag = cuda.declare_device("set_flag", "int32(uint32[::1], int64, uint32)", link=linked)


@cuda.jit
def numba_send(mine, theirs, flag, fence):
    i = cuda.threadIdx.x
    theirs[i] = mine[i]
    cuda.syncthreads()
    if i == 0:
        if fence == 1:
            cuda.threadfence_system()
        elif fence == 2:
            cuda.threadfence()
        set_flag(flag, 0, 1)


@cuda.jit
def numba_receive(mine, flag, out, waits):
    i = cuda.threadIdx.x
    if i == 0 and waits:
        while look(flag, 0) == 0:
            pass
        cuda.threadfence_system()
    cuda.syncthreads()
    out[i] = 2 * mine[i]


@cuda.jit
def numba_atomic(mine, flag, out, waits):
    i = cuda.threadIdx.x
    if i == 0 and waits:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.threadfence_system()
    cuda.syncthreads()
    out[i] = 2 * mine[i]


@cuda.jit
def numba_cached(mine, flag, out, waits):
    i = cuda.threadIdx.x
    if i == 0:
        while cuda.ldcv(flag, 0) == 0:
            pass
        cuda.threadfence_system()
    cuda.syncthreads()
    out[i] = 2 * mine[i]


@pytest.mark.parametrize(
    ("fence", "receive", "waits", "cause"),
    [
        (1, numba_receive, True, None),
        (0, numba_receive, True, "no fence before the flag"),
        (2, numba_receive, True, "narrow fence"),
        (1, numba_receive, False, "no wait"),
        (1, numba_atomic, True, "narrow flag"),
        (1, numba_cached, True, "plain flag"),
    ],
)
def test_numba(fence, receive, waits, cause):
    with virtual_devices(2) as devices:
        a = devices[0].asarray(np.arange(96, dtype=np.float32))
        b, out = devices[1].zeros(96, np.float32), devices[1].empty(96, np.float32)
        flag = devices[1].zeros(1, np.uint32)
        devices[1].launch(receive, 1, 96, (b, flag, out, waits))
        devices[0].launch(numba_send, 1, 96, (a, b, flag, fence))
        if cause is None:
            assert (out.get() == 2 * np.arange(96)).all()
            return
        with pytest.raises(DeviceRace) as caught:
            devices.synchronize()
        assert caught.value.cause == cause
        assert caught.value.kernel in ("numba_send", receive.__name__)


def test_two_devices_write_one_element():
    code = 'extern "C" __global__ void set(int* x, int v) { x[threadIdx.x] = v; }'
    with virtual_devices(2) as devices:
        x = devices[0].zeros(32, np.int32)
        for number in range(2):
            devices[number].launch(CudaSource(code, "set"), 1, 32, (x, np.int32(number)))
        with pytest.raises(DeviceRace, match="writes element 0 of array `x` of device 0"):
            devices.synchronize()
        for number in range(2):  # one after the other is no race
            devices[number].launch(CudaSource(code, "set"), 1, 32, (x, np.int32(number)))
            devices.synchronize()
        assert (x.get() == 1).all()


def test_atomic_operations_of_two_devices_need_the_system_scope():
    code = """
    extern "C" __global__ void wide(int* x) { atomicAdd_system(x, 1); }
    extern "C" __global__ void narrow(int* x) { atomicAdd(x, 1); }"""
    with virtual_devices(4) as devices:
        x = devices[2].zeros(1, np.int32)
        for device in devices:
            device.launch(CudaSource(code, "wide"), 2, 64, (x,))
        assert x.get() == 4 * 128
        for device in devices:
            device.launch(CudaSource(code, "narrow"), 2, 64, (x,))
        with pytest.raises(DeviceRace) as caught:
            devices.synchronize()
        assert caught.value.cause == "narrow flag"


def test_a_kernel_may_write_to_several_devices_at_once():
    code = """
    extern "C" __global__ void scatter(int** peers, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) peers[i % 3][i / 3] = i;
    }"""
    with virtual_devices(3) as devices:
        parts = [device.empty(32, np.int32) for device in devices]
        peers = devices[0].asarray(np.array([part.data.ptr for part in parts], np.uint64))
        devices[0].launch(CudaSource(code, "scatter"), 3, 32, (peers, np.int32(96)))
        devices[1].launch(CudaSource(code, "scatter"), 3, 32, (peers, np.int32(0)))
        assert [part.get().tolist() for part in parts] == [list(range(number, 96, 3)) for number in range(3)]
        for device in devices[:2]:
            device.launch(CudaSource(code, "scatter"), 3, 32, (peers, np.int32(96)))
        with pytest.raises(DeviceRace):
            devices.synchronize()
