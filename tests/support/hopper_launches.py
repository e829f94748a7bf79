"""On a GPU of compute capability 9.0: launch what tests give to `simulate`, with tensor maps of the driver."""

from __future__ import annotations

import ctypes

import numpy as np

from warpcourse.bench import hopper
from warplab.compile.nvrtc import compile_cubin
from warplab.launch.kernel_source import CudaSource

_OF_THE_SIMULATOR = {"chunk_lanes"}  # options that change nothing on a GPU


def launch(source: CudaSource, grid, block, arguments, shared_bytes: int = 0, **options) -> None:
    """Run a kernel and wait for it. Arrays of NumPy are copied to the GPU and back, except tensor maps (dtype V128)."""
    import cupy

    assert set(options) <= _OF_THE_SIMULATOR, options
    architecture = f"--gpu-architecture={hopper.ARCHITECTURE}"
    given = tuple(o for o in source.options if not o.startswith("--gpu-architecture"))
    kernel = hopper.CubinKernel(compile_cubin(source.code, source.file, options=(architecture, *given)), source.entry)
    copies = {
        number: cupy.asarray(np.ascontiguousarray(given).reshape(-1).view(np.uint8))
        for number, given in enumerate(arguments)
        if isinstance(given, np.ndarray) and given.dtype != "V128"
    }
    every = tuple(copies.get(number, given) for number, given in enumerate(arguments))
    sizes = (tuple(np.atleast_1d(size).tolist()) for size in (grid, block))
    kernel(*sizes, every, shared_bytes)
    cupy.cuda.Device().synchronize()
    for number, copy in copies.items():
        arguments[number][...] = cupy.asnumpy(copy).view(arguments[number].dtype).reshape(arguments[number].shape)


def encode_tiled(
    data_type, rank, address, sizes, strides, box, steps, interleave=0, swizzle=0, promotion=0, fill=0
) -> np.ndarray:
    """What `tensor_maps.encode_tiled` is in the simulator."""
    own = _words(ctypes.c_uint32, box), _words(ctypes.c_uint32, steps)
    modes = interleave, swizzle, promotion, fill
    return _encoded("cuTensorMapEncodeTiled", data_type, rank, address, sizes, strides, own, modes)


def encode_im2col(
    data_type, rank, address, sizes, strides, lower, upper, channels, pixels, steps, interleave=0, swizzle=0,
    promotion=0, fill=0,
) -> np.ndarray:  # fmt: skip
    """What `tensor_maps.encode_im2col` is in the simulator."""
    corners = _words(ctypes.c_int, lower), _words(ctypes.c_int, upper)
    own = *corners, channels, pixels, _words(ctypes.c_uint32, steps)
    modes = interleave, swizzle, promotion, fill
    return _encoded("cuTensorMapEncodeIm2col", data_type, rank, address, sizes, strides, own, modes)


def _encoded(call, data_type, rank, address, sizes, strides, own, modes) -> np.ndarray:
    room = np.zeros(hopper.MAP_BYTES + hopper.MAP_ALIGNMENT, np.uint8)
    start = -room.ctypes.data % hopper.MAP_ALIGNMENT
    encoding = room[start : start + hopper.MAP_BYTES]
    places = _words(ctypes.c_uint64, sizes), _words(ctypes.c_uint64, strides)
    status = hopper._driver_function(call)(encoding.ctypes.data, data_type, rank, address, *places, *own, *modes)
    if status:
        raise ValueError(f"the driver answers {call} with {status}")
    return encoding


def _words(kind, values):
    return (kind * max(1, len(values)))(*values)
