"""What steps 5 and 6 need from the driver: machine code for sm_90a, tensor maps for TMA, and launches with them.

CuPy compiles for sm_90, without Hopper's own instructions, and has no tensor maps. The structure that a map is encoded
into must start at a multiple of 128 bytes, which `cuda.bindings` does not ensure; so its function is called by address.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warplab import cp
from warplab.compile import nvrtc
from warplab.hardware import backend

FOLDER = Path(__file__).parent
ARCHITECTURE = "sm_90a"  # Hopper with wgmma and setmaxnreg
CAPABILITY = "90"
LINE_BYTES = 128  # of a box's rows: all banks once, the width of the swizzle
LINE = LINE_BYTES // 2  # elements, of float16
GROUP_ROWS = 64  # of C that a warpgroup computes
MAP_BYTES, MAP_ALIGNMENT = 128, 128  # CUtensorMap, cuda.h of CUDA 13
MAX_BOX = 256


@dataclass(frozen=True)
class Boxes:
    """What a tensor map says: a row-major matrix in global memory and the box of it that one instruction copies.

    In shared memory a box lies row after row of 128 bytes, the 16-byte chunks of each exchanged by chunk ^ row % 8.
    Outside the matrix loads give zeros and stores write nothing.
    """

    address: int
    dtype: str  # "float16" or "float32"
    rows: int
    columns: int
    box_rows: int
    box_columns: int

    def __post_init__(self) -> None:
        """Raise ValueError for what the driver would refuse, and for boxes whose rows are not 128 bytes."""
        rules = (
            (self.dtype in ("float16", "float32"), "dtype must be float16 or float32"),
            (self.address % 16 == 0, "the address must be a multiple of 16"),
            (self.row_bytes % 16 == 0, "rows must be a multiple of 16 bytes long"),
            (self.row_bytes < 2**40, "rows must be shorter than 2^40 bytes"),
            (0 < self.rows <= 2**32 and 0 < self.columns <= 2**32, "rows and columns must be 1 to 2^32"),
            (0 < self.box_rows <= MAX_BOX, f"box_rows must be 1 to {MAX_BOX}"),
            (self.box_columns * self.item == LINE_BYTES, f"rows of a box must be {LINE_BYTES} bytes long"),
        )
        for right, rule in rules:
            if not right:
                raise ValueError(f"{self}: {rule}")

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.dtype).itemsize

    @property
    def row_bytes(self) -> int:
        """Bytes from one row of the matrix to the next."""
        return self.columns * self.item


def tensor_map(matrix: Any, box_rows: int, box_columns: int) -> np.ndarray:
    """The tensor map of a row-major matrix on the GPU, 128 bytes, to be given to a kernel by value."""
    address = matrix.__cuda_array_interface__["data"][0]
    return encoded(Boxes(address, matrix.dtype.name, *matrix.shape, box_rows, box_columns))


@functools.lru_cache(maxsize=256)
def encoded(boxes: Boxes) -> np.ndarray:
    """The driver's 128 bytes for `boxes`; RuntimeError when it refuses them."""
    from cuda.bindings import driver

    room = np.zeros(MAP_BYTES + MAP_ALIGNMENT, np.uint8)
    start = -room.ctypes.data % MAP_ALIGNMENT
    encoding = room[start : start + MAP_BYTES]
    kinds = driver.CUtensorMapDataType
    kind = {
        "float16": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        "float32": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    }[boxes.dtype]
    # The axis along rows comes first; its stride is that of an element and so is left out.
    status = _encoder()(
        encoding.ctypes.data,
        kind.value,
        2,
        boxes.address,
        (ctypes.c_uint64 * 2)(boxes.columns, boxes.rows),
        (ctypes.c_uint64 * 1)(boxes.row_bytes),
        (ctypes.c_uint32 * 2)(boxes.box_columns, boxes.box_rows),
        (ctypes.c_uint32 * 2)(1, 1),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE.value,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B.value,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B.value,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE.value,
    )
    _check("cuTensorMapEncodeTiled", driver.CUresult(status))
    encoding.flags.writeable = False
    return encoding


@functools.cache
def _encoder() -> Any:
    """The driver's cuTensorMapEncodeTiled, as ctypes calls it."""
    from cuda.bindings import driver

    result, address, found = driver.cuGetProcAddress(b"cuTensorMapEncodeTiled", 12000, 0)
    _check("cuGetProcAddress", result)
    if not address:
        raise RuntimeError(f"the driver has no cuTensorMapEncodeTiled ({found.name}); it needs CUDA 12 or newer")
    pointer, word, long = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    longs, words = ctypes.POINTER(long), ctypes.POINTER(word)
    enum = ctypes.c_int
    arguments = pointer, enum, word, pointer, longs, longs, words, words, enum, enum, enum, enum
    return ctypes.CFUNCTYPE(enum, *arguments)(int(address))


class Kernel:
    """A kernel of machine code, loaded into the current device's context."""

    def __init__(self, code: bytes, entry: str) -> None:
        from cuda.bindings import driver

        cp.cuda.Device().synchronize()  # makes CuPy's context the current one
        result, self._module = driver.cuModuleLoadData(code)
        _check("cuModuleLoadData", result)
        result, self._function = driver.cuModuleGetFunction(self._module, entry.encode())
        _check("cuModuleGetFunction", result)
        self._shared_bytes = 0

    def _allow(self, shared_bytes: int) -> None:
        """Let blocks have so much dynamic shared memory."""
        from cuda.bindings import driver

        if shared_bytes > self._shared_bytes:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _check("cuFuncSetAttribute", driver.cuFuncSetAttribute(self._function, attribute, shared_bytes)[0])
            self._shared_bytes = shared_bytes

    def resident_clusters(self, cluster: int, threads: int, shared_bytes: int) -> int:
        """How many clusters of `cluster` blocks can be at work on the GPU at a time.

        Fewer than its multiprocessors allow: a cluster lies within one of the groups that these come in, and the groups
        of a card are not equally large.
        """
        from cuda.bindings import driver

        self._allow(shared_bytes)
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = cluster, 1, 1
        launch = driver.CUlaunchConfig()
        launch.gridDimX, launch.gridDimY, launch.gridDimZ = cluster, 1, 1
        launch.blockDimX, launch.blockDimY, launch.blockDimZ = threads, 1, 1
        launch.sharedMemBytes = shared_bytes
        launch.attrs, launch.numAttrs = [attribute], 1
        result, clusters = driver.cuOccupancyMaxActiveClusters(self._function, launch)
        _check("cuOccupancyMaxActiveClusters", result)
        return clusters

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple, shared_bytes: int) -> None:
        """Queue a launch on CuPy's current stream. `arguments`: arrays on the GPU, tensor maps and NumPy scalars."""
        from cuda.bindings import driver

        self._allow(shared_bytes)
        values = [_by_value(argument) for argument in arguments]
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        stream = cp.cuda.get_current_stream().ptr
        x, y, z = (*grid, 1, 1)[:3]
        threads = (*block, 1, 1)[:3]
        launched = driver.cuLaunchKernel(
            self._function, x, y, z, *threads, shared_bytes, stream, pointers.ctypes.data, 0
        )
        _check("cuLaunchKernel", launched[0])


def kernel(file: str, entry: str, options: tuple[str, ...] = ()) -> Kernel:
    """The extern "C" kernel `entry` of a file beside this one, on the current device. `options`: of `cubin`."""
    return _kernel(file, entry, options, cp.cuda.runtime.getDevice())


@functools.cache
def _kernel(file: str, entry: str, options: tuple[str, ...], device: int) -> Kernel:
    return Kernel(cubin(file, options), entry)


def cubin(file: str, options: tuple[str, ...] = ()) -> bytes:
    """Machine code for sm_90a of a file beside this one; needs no GPU. `options`: for NVRTC, such as "-DGROUP=8"."""
    code = (FOLDER / file).read_text()
    return nvrtc.compile_cubin(code, file, options=(f"--gpu-architecture={ARCHITECTURE}", *include(), *options))


def include() -> tuple[str, ...]:
    """Option that finds hopper.cuh."""
    return (f"-I{FOLDER}",)


def require(what: str) -> None:
    """Raise RuntimeError unless kernels run on a GPU of compute capability 9.0."""
    remedy = "run it on an H100 or H200, or take mma_stages"
    if backend.name() != "gpu":
        raise RuntimeError(
            f"{what} uses instructions that only Hopper GPUs have (wgmma, TMA), and here kernels run on the "
            f"{backend.name()}: {remedy}"
        )
    capability = cp.cuda.Device().compute_capability
    if capability != CAPABILITY:
        raise RuntimeError(
            f"{what} uses instructions of compute capability 9.0 only (wgmma, TMA); this GPU has "
            f"{capability[:-1]}.{capability[-1]}: {remedy}"
        )


def multiprocessors() -> int:
    """Number of multiprocessors of the current device."""
    return cp.cuda.Device().attributes["MultiProcessorCount"]


def _by_value(argument: Any) -> np.ndarray:
    """An argument's bytes, as the launch reads them."""
    if isinstance(argument, np.ndarray | np.generic):
        return np.atleast_1d(argument)
    return np.array([argument.__cuda_array_interface__["data"][0]], np.uint64)


def _check(call: str, result: Any) -> None:
    if result.value:
        raise RuntimeError(f"the NVIDIA driver answers {call} with {result.name}")
