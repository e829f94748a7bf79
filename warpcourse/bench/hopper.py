"""What labs' kernels for Hopper need from the driver: machine code for sm_90a, tensor maps for TMA, and launches with
them. Their CUDA C++ includes <warplab/hopper.cuh>.

Without a GPU the simulator runs their PTX, with tensor maps of its own (`simulated_hopper`).

CuPy compiles for sm_90, without Hopper's own instructions, and has no tensor maps. The structure that a map is encoded
into must start at a multiple of 128 bytes, which `cuda.bindings` does not ensure: functions are called by address.
"""

import ctypes
import functools
import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpcourse.bench import simulated_hopper
from warpcourse.bench.lab_kernels import NotOnThisCard
from warpcourse.bench.simulated_hopper import SimulatedKernel
from warplab.compile import headers, nvrtc
from warplab.dropin import choice
from warplab.hardware import backend

ARCHITECTURE = "sm_90a"  # Hopper with wgmma and setmaxnreg
CAPABILITY = "90"
LINE_BYTES = 128  # of a box's rows: all banks once, the width of the swizzle
LINE = LINE_BYTES // 2  # elements, of float16
GROUP_ROWS = 64  # of a result that wgmma computes
MAP_BYTES, MAP_ALIGNMENT = 128, 128  # CUtensorMap, cuda.h of CUDA 13
MAX_BOX = 256
SWIZZLES = 128, 64, 32  # bytes of a box's rows
MAX_STEP = 8  # pixels, in im2col mode
CORNERS = -128, 127  # of a window of pixels, for tensors of four axes
_KINDS = ("float16", "float32", "uint16", "uint8")  # the last two for any 16 or 8 bits


Pair = tuple[int, int]  # of the height's and the width's


@dataclass(frozen=True)
class Boxes:
    """What a tensor map says: a row-major matrix in global memory and the box of it that one instruction copies.

    In shared memory a box lies row after row of 128 bytes, the 16-byte chunks of each exchanged by chunk ^ row % 8; of
    64 by chunk ^ row / 2 % 4, of 32 by chunk ^ row / 4 % 2.
    Outside the matrix loads give zeros and stores write nothing. With `middle` the tensor has three axes: each of
    `rows` has so many rows of `columns` elements, and a box has one of them. With `matrices` it is so many matrices,
    one after another, and a box lies in one. `promotion`: bytes that the L2 cache fetches together. `pitch`: elements
    from a row to the next, by default `columns`.
    """

    address: int
    dtype: str  # of _KINDS
    rows: int
    columns: int
    box_rows: int
    box_columns: int
    middle: int | None = None
    promotion: int = 256
    pitch: int | None = None
    matrices: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for what the driver would refuse, and for boxes whose rows are not 128, 64 or 32 bytes."""
        sizes = self.rows, self.columns, *(1 if n is None else n for n in (self.middle, self.matrices))
        demand(
            self,
            (self.dtype in _KINDS, f"dtype must be {' or '.join(_KINDS)}"),
            (self.address % 16 == 0, "the address must be a multiple of 16"),
            (self.row_bytes % 16 == 0, "rows must be a multiple of 16 bytes long"),
            (self.row_bytes * max(1, sizes[2]) < 2**40, "rows must be shorter than 2^40 bytes"),
            (self.matrices is None or self.row_bytes * self.rows < 2**40, "matrices must be smaller than 2^40 bytes"),
            (min(sizes) > 0 and max(sizes) <= 2**32, "rows and columns must be 1 to 2^32"),
            (0 < self.box_rows <= MAX_BOX, f"box_rows must be 1 to {MAX_BOX}"),
            (self.line in SWIZZLES, f"rows of a box must be {', '.join(map(str, SWIZZLES))} bytes long"),
        )

    @property
    def item(self) -> int:
        """Return bytes of an element."""
        return np.dtype(self.dtype).itemsize

    @property
    def line(self) -> int:
        """Return bytes of a row of a box."""
        return self.box_columns * self.item

    @property
    def row_bytes(self) -> int:
        """Return bytes from one row of the matrix to the next."""
        return (self.pitch or self.columns) * self.item


@dataclass(frozen=True)
class Pixels:
    """What a tensor map in im2col mode says: an NHWC tensor in global memory, and the pixels that a column visits.

    `shape`: images, height, width, channels. `strides`: bytes from an image, a row and a pixel to the next. In each
    image a column visits `positions` (down, right) pixels, the first at `first` (row, column), which may lie outside,
    `steps` apart; one instruction copies `line` bytes of channels of `lines` of them, that many further down and right
    as it says. Outside the tensor loads give zeros and stores write nothing. In shared memory they lie as `Boxes` do.
    """

    address: int
    dtype: str
    shape: tuple[int, int, int, int]
    strides: tuple[int, int, int]
    first: Pair
    positions: Pair
    steps: Pair
    lines: int
    line: int = LINE_BYTES

    def __post_init__(self) -> None:
        """Raise ValueError for what the driver would refuse."""
        corners = *self.first, *self.beyond
        low, high = CORNERS
        demand(
            self,
            (self.dtype in _KINDS, f"dtype must be {' or '.join(_KINDS)}"),
            (self.address % 16 == 0, "the address must be a multiple of 16"),
            (all(stride % 16 == 0 for stride in self.strides), "strides must be multiples of 16 bytes"),
            (max(self.strides) < 2**40, "strides must be less than 2^40 bytes"),
            (min(self.shape) > 0 and max(self.shape) <= 2**32, "sizes must be 1 to 2^32"),
            (min(self.positions) > 0, "positions must be at least 1"),
            (min(self.steps) > 0 and max(self.steps) <= MAX_STEP, f"steps must be 1 to {MAX_STEP}"),
            (0 < self.lines <= MAX_BOX, f"lines must be 1 to {MAX_BOX}"),
            (self.line in SWIZZLES, f"lines must be {', '.join(map(str, SWIZZLES))} bytes long"),
            (low <= min(corners) and max(corners) <= high, f"the corners of the window must be {low} to {high}"),
        )

    @property
    def item(self) -> int:
        """Return bytes of an element."""
        return np.dtype(self.dtype).itemsize

    @property
    def beyond(self) -> Pair:
        """Return rows and columns by which the last position lies beyond the image's last pixel, negative before it."""
        ends = (
            first + (count - 1) * step + 1 - size
            for first, count, step, size in zip(self.first, self.positions, self.steps, self.shape[1:3], strict=True)
        )
        below, right = ends
        return below, right


def demand(what: Any, *rules: tuple[bool, str]) -> None:
    """Raise ValueError for the first rule, whether it holds and its text, that does not hold."""
    for right, rule in rules:
        if not right:
            raise ValueError(f"{what}: {rule}")


def address_of(array: Any) -> int:
    """Return the address of an array on the GPU."""
    return array.__cuda_array_interface__["data"][0]


def tensor_map(matrix: Any, box_rows: int, box_columns: int, promotion: int = 256) -> np.ndarray:
    """Return the tensor map of a row-major matrix on the GPU, 128 bytes, to be given to a kernel by value."""
    rows, columns = matrix.shape
    address, dtype = address_of(matrix), matrix.dtype.name
    return encoded(Boxes(address, dtype, rows, columns, box_rows, box_columns, promotion=promotion))


@functools.lru_cache(maxsize=1024)
def encoded(what: Boxes | Pixels) -> np.ndarray:
    """Return the driver's 128 bytes for boxes or pixels, or the simulator's; RuntimeError when it refuses them."""
    from cuda.bindings import driver

    call, arguments = _pixels_call(what) if isinstance(what, Pixels) else _boxes_call(what)
    promotion = what.promotion if isinstance(what, Boxes) else 256
    kind = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{what.dtype.upper()}")
    modes = (
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE.value,
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{what.line}B").value,
        getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_L2_{promotion}B").value,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE.value,
    )
    if backend.name() != "gpu":
        return simulated_hopper.encoded(call, (kind.value, *arguments, *modes))
    room = np.zeros(MAP_BYTES + MAP_ALIGNMENT, np.uint8)
    start = -room.ctypes.data % MAP_ALIGNMENT
    encoding = room[start : start + MAP_BYTES].view(f"V{MAP_BYTES}")
    status = _driver_function(call)(encoding.ctypes.data, kind.value, *arguments, *modes)
    _check(call, driver.CUresult(status))
    encoding.flags.writeable = False
    return encoding


def _boxes_call(boxes: Boxes) -> tuple[str, tuple]:
    """Return the driver's function, and what it is given between the type and the modes."""
    # The axis along rows comes first; its stride is that of an element and so is left out.
    middle = () if boxes.middle is None else (boxes.middle,)
    last = () if boxes.matrices is None else (boxes.matrices,)
    extents = boxes.columns, *middle, boxes.rows, *last
    strides = boxes.row_bytes, *(boxes.row_bytes * rows for rows in (*middle, *(boxes.rows for _ in last)))
    box = boxes.box_columns, *(1 for _ in middle), boxes.box_rows, *(1 for _ in last)
    return "cuTensorMapEncodeTiled", (
        len(extents),
        boxes.address,
        _array(ctypes.c_uint64, extents),
        _array(ctypes.c_uint64, strides),
        _array(ctypes.c_uint32, box),
        _array(ctypes.c_uint32, (1,) * len(extents)),
    )


def _pixels_call(pixels: Pixels) -> tuple[str, tuple]:
    """Return the same for pixels. The driver takes width before height, as the innermost axis comes first."""
    down, right = pixels.steps
    return "cuTensorMapEncodeIm2col", (
        len(pixels.shape),
        pixels.address,
        _array(ctypes.c_uint64, pixels.shape[::-1]),
        _array(ctypes.c_uint64, pixels.strides[::-1]),
        _array(ctypes.c_int, pixels.first[::-1]),
        _array(ctypes.c_int, pixels.beyond[::-1]),
        pixels.line // pixels.item,
        pixels.lines,
        _array(ctypes.c_uint32, (1, right, down, 1)),
    )


def _array(kind: Any, values: tuple[int, ...]) -> Any:
    return (kind * len(values))(*values)


@functools.cache
def _driver_function(name: str) -> Any:
    """Return a function of the driver that encodes tensor maps, as ctypes calls it."""
    from cuda.bindings import driver

    result, address, found = driver.cuGetProcAddress(name.encode(), 12000, 0)
    _check("cuGetProcAddress", result)
    if not address:
        raise RuntimeError(f"the driver has no {name} ({found.name}); it needs CUDA 12 or newer")
    pointer, word, enum = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int
    longs, words, whole = (ctypes.POINTER(kind) for kind in (ctypes.c_uint64, word, enum))
    known = {"cuTensorMapEncodeTiled": (words, words), "cuTensorMapEncodeIm2col": (whole, whole, word, word, words)}
    sizes = known[name]
    return ctypes.CFUNCTYPE(enum, pointer, enum, word, pointer, longs, longs, *sizes, *[enum] * 4)(int(address))


class CubinKernel:
    """A kernel of machine code, loaded into the current device's context."""

    def __init__(self, code: bytes, entry: str) -> None:
        from cuda.bindings import driver

        choice.load("cp").cuda.Device().synchronize()  # makes CuPy's context the current one
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
        """Return how many clusters of `cluster` blocks can be at work on the GPU at a time.

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

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: tuple,
        shared_mem: int = 0,
        *,
        early: bool = False,
        together: bool = False,
    ) -> None:
        """Queue a launch on CuPy's current stream, called as CuPy's kernels are. `arguments`: arrays on the GPU, tensor
        maps and NumPy scalars.

        `early`: the kernel may start before the one queued before it has ended ("programmatic dependent launch"); it
        waits itself, by wait_for_kernel_before(). `together`: blocks wait for one another, so that all must be at work
        at a time. The GPU is not asked for that, which takes time: the caller sees to it that they fit.
        """
        from cuda.bindings import driver

        self._allow(shared_mem)
        values = [_by_value(argument) for argument in arguments]
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        stream = choice.load("cp").cuda.get_current_stream().ptr
        grid, block = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
        if early:
            launch = _early_launch()
            launch.gridDimX, launch.gridDimY, launch.gridDimZ = grid
            launch.blockDimX, launch.blockDimY, launch.blockDimZ = block
            launch.sharedMemBytes, launch.hStream = shared_mem, stream
            launched = driver.cuLaunchKernelEx(launch, self._function, pointers.ctypes.data, 0)
        else:
            launched = driver.cuLaunchKernel(self._function, *grid, *block, shared_mem, stream, pointers.ctypes.data, 0)
        _check("cuLaunchKernelEx" if early else "cuLaunchKernel", launched[0])


@functools.cache
def _early_launch() -> Any:
    """Return the driver's description of a launch that need not wait for the kernel before; its sizes are filled in."""
    from cuda.bindings import driver

    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    launch = driver.CUlaunchConfig()
    launch.attrs, launch.numAttrs = [attribute], 1
    return launch


def kernel(file: Path, entry: str, options: tuple[str, ...] = ()) -> CubinKernel | SimulatedKernel:
    """Return the extern "C" kernel `entry` of a file, on the device or the simulator. `options`: of `cubin`."""
    if backend.name() != "gpu":
        return _simulated_kernel(file, entry, options)
    return _kernel(file, entry, options, choice.load("cp").cuda.runtime.getDevice())


@functools.cache
def _kernel(file: Path, entry: str, options: tuple[str, ...], device: int) -> CubinKernel:
    return CubinKernel(cubin(file, options), entry)


@functools.cache
def _simulated_kernel(file: Path, entry: str, options: tuple[str, ...]) -> SimulatedKernel:
    return SimulatedKernel(file, entry, (f"--gpu-architecture={ARCHITECTURE}", *include(), *options))


_ahead: dict[tuple[Path, tuple[str, ...]], bytes] = {}  # machine code that `compile_ahead` has made


def compile_ahead(wanted: Iterable[tuple[Path, tuple[str, ...]]]) -> None:
    """Compile files with their options, as `cubin` takes them, in a process for each core."""
    new = sorted(set(wanted) - set(_ahead), key=str)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn")) as pool:
        _ahead.update(zip(new, pool.map(cubin, *zip(*new, strict=True)) if new else (), strict=True))


def cubin(file: Path, options: tuple[str, ...] = ()) -> bytes:
    """Return the machine code for sm_90a of a file; needs no GPU. `options`: for NVRTC, such as "-DGROUP=8"."""
    if (file, options) in _ahead:
        return _ahead[file, options]
    code = file.read_text(encoding="utf-8")
    return nvrtc.compile_cubin(code, file.name, options=(f"--gpu-architecture={ARCHITECTURE}", *include(), *options))


def include() -> tuple[str, ...]:
    """Return the option that finds <warplab/hopper.cuh>."""
    return (f"-I{headers.COURSE_HEADERS}",)


def require(what: str, instead: str) -> None:
    """Raise NotOnThisCard where a GPU without these instructions runs kernels. `instead`: a kernel for others."""
    if lack := missing(what, instead):
        raise NotOnThisCard(lack)


def missing(what: str, instead: str) -> str:
    """Return what the GPU lacks to run `what`, and what to do; "" in the simulator and for compute capability 9.0."""
    if backend.name() != "gpu":
        return ""
    remedy = f"run it on an H100 or H200, in the simulator, or take {instead}"
    capability = choice.load("cp").cuda.Device().compute_capability
    if capability != CAPABILITY:
        return (
            f"{what} uses instructions of compute capability 9.0 only (wgmma, TMA); this GPU has "
            f"{capability[:-1]}.{capability[-1]}: {remedy}"
        )
    return ""


def available() -> bool:
    """Return whether kernels run on a GPU that has these instructions. The simulator has them, but no speed."""
    return backend.name() == "gpu" and choice.load("cp").cuda.Device().compute_capability == CAPABILITY


def multiprocessors() -> int:
    """Return the number of multiprocessors of the current device; in the simulator, of the one that it is like."""
    if backend.name() != "gpu":
        return simulated_hopper.NUMBER_OF_SMS
    return choice.load("cp").cuda.Device().attributes["MultiProcessorCount"]


def _by_value(argument: Any) -> np.ndarray:
    """Return an argument's bytes, as the launch reads them."""
    if isinstance(argument, np.ndarray | np.generic):
        return np.atleast_1d(argument)
    return np.array([address_of(argument)], np.uint64)


def _check(call: str, result: Any) -> None:
    if result.value:
        raise RuntimeError(f"the NVIDIA driver answers {call} with {result.name}")
