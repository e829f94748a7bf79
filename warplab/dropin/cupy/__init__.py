"""CuPy on the simulator: the names that public programs use (evidence/cupy_names).

Arrays are in simulated device memory. NumPy computes on them what CuPy's own kernels would, so that results have
CuPy's shapes and dtypes. As in CuPy, nothing moves between host and device unasked, and reductions and single
elements are arrays on the device. Kernels that a program writes itself (`RawKernel`, `ElementwiseKernel`,
`ReductionKernel`, `fuse`) are compiled and run on the simulator, with its checks and counters.
"""

import sys
from typing import Literal as _Literal

import numpy as np

from warplab.dropin.cupy import cuda, fft, random, testing
from warplab.dropin.cupy._core._kernel import ElementwiseKernel
from warplab.dropin.cupy._core._reduction import ReductionKernel
from warplab.dropin.cupy._core.core import functions as _array_functions
from warplab.dropin.cupy._core.core import lift, ndarray, ufunc
from warplab.dropin.cupy._core.core import lift_answer as _lift_answer
from warplab.dropin.cupy._core.core import lift_in_place as _lift_in_place
from warplab.dropin.cupy._core.core import to_host as _to_host
from warplab.dropin.cupy._core.fusion import fuse
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.dropin.cupy._core.missing import small_module as _small_module
from warplab.dropin.cupy._core.raw import RawKernel, RawModule
from warplab.dropin.cupy._routines import apply_along_axis, c_, clear_memo, memoize, mgrid, ogrid, r_
from warplab.launch import dlpack as _dlpack
from warplab.launch.device_arrays import BorrowedBuffer as _BorrowedBuffer
from warplab.launch.device_arrays import DeviceArray
from warplab.launch.device_arrays import Order as _Order
from warplab.simulator import default_device as _default_device

__version__ = "14.2.0"  # of the CuPy whose names these are
__all__ = ["RawKernel", "RawModule", "asarray", "asnumpy", "cuda", "ndarray", "random", "testing"]

_SAME = """
    bool bool_ byte cdouble complex64 complex128 complexfloating csingle double dtype e euler_gamma finfo float16
    float32 float64 floating generic half iinfo index_exp inexact inf int8 int16 int32 int64 int_ intc integer intp
    iterable long longlong nan ndindex newaxis number pi printoptions s_ set_printoptions get_printoptions short
    signedinteger single ubyte uint uint8 uint16 uint32 uint64 uintc uintp ulong ulonglong unsignedinteger ushort
"""

# Of which arguments may be arrays, and what is returned is none.
_ANSWERS = """
    array2string array_repr array_str base_repr binary_repr broadcast_shapes can_cast common_type
    format_float_positional format_float_scientific iscomplexobj isdtype isfortran isrealobj isscalar issubdtype
    may_share_memory min_scalar_type mintypecode promote_types result_type save savetxt savez savez_compressed
    shares_memory typename
"""

_CREATION = """
    arange bartlett blackman diag_indices diag_indices_from eye frombuffer fromfile fromfunction fromiter fromstring
    genfromtxt hamming hanning identity indices ix_ kaiser linspace load loadtxt logspace mask_indices tri tril_indices
    tril_indices_from triu_indices triu_indices_from
"""

_IN_PLACE = "fill_diagonal place put put_along_axis putmask"

_FUNCTIONS = """
    all allclose amax amin angle any append argmax argmin argpartition argsort argwhere around array_equal array_equiv
    array_split astype atleast_1d atleast_2d atleast_3d average bincount broadcast_arrays broadcast_to choose clip
    column_stack compress concat concatenate convolve copy corrcoef correlate count_nonzero cov cross cumprod cumsum
    cumulative_prod cumulative_sum delete diag diagflat diagonal diff digitize dot dsplit dstack ediff1d einsum
    expand_dims extract fix flatnonzero flip fliplr flipud gradient histogram histogram2d histogramdd hsplit hstack i0
    imag inner interp intersect1d iscomplex isin isneginf isposinf isreal isclose kron lexsort matrix_transpose max mean
    median meshgrid min moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
    nanprod nanstd nansum nanvar nonzero outer packbits pad partition percentile permute_dims piecewise poly polyadd
    polyfit polymul polysub polyval prod ptp quantile ravel ravel_multi_index real real_if_close repeat require reshape
    resize roll rollaxis roots rot90 round searchsorted select setdiff1d setxor1d sinc sort sort_complex split squeeze
    stack std sum swapaxes take take_along_axis tensordot tile trace transpose trapezoid tril trim_zeros triu union1d
    unique unique_all unique_counts unique_inverse unique_values unpackbits unravel_index unwrap vander var vdot vsplit
    vstack where
"""

# Old names, which NumPy has given up and CuPy 14 has not.
_OLD = {
    **dict.fromkeys(("NaN", "NAN"), "nan"),
    **dict.fromkeys(("Inf", "Infinity", "PINF", "infty"), "inf"),
    "alltrue": "all",
    "cumproduct": "cumprod",
    "product": "prod",
    "round_": "round",
    "sometrue": "any",
    "complex_": "complex128",
    "float_": "float64",
    "in1d": "isin",
    "row_stack": "vstack",
    "trapz": "trapezoid",
    "cfloat": "complex128",
    "singlecomplex": "complex64",
    "asanyarray": "asarray",
}

# Ufuncs of NumPy that CuPy 14 does not have.
_NOT_IN_CUPY = ("isnat", "matvec", "spacing", "vecdot", "vecmat")

_pool, _pinned_pool = cuda.MemoryPool(), cuda.PinnedMemoryPool()

_LINALG = """
    cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_power matrix_rank matrix_transpose norm
    pinv qr slogdet solve svd tensorinv tensorsolve
"""
linalg = _small_module(
    "cupy.linalg",
    LinAlgError=np.linalg.LinAlgError,
    **{_name: lift(getattr(np.linalg, _name)) for _name in _LINALG.split()},
)
exceptions = _small_module("cupy.exceptions", find=lambda name: getattr(np.exceptions, name))
_as_strided = lift(np.lib.stride_tricks.as_strided)
lib = _small_module("cupy.lib", stride_tricks=_small_module("cupy.lib.stride_tricks", as_strided=_as_strided))

# From here on names such as `sum` and `any` mean CuPy's functions in this module.
for _name in _SAME.split():
    globals()[_name] = getattr(np, _name)
for _name in (*_CREATION.split(), *_FUNCTIONS.split()):
    globals()[_name] = lift(getattr(np, _name))
for _name in _ANSWERS.split():
    globals()[_name] = _lift_answer(getattr(np, _name))
for _name in _IN_PLACE.split():
    globals()[_name] = _lift_in_place(getattr(np, _name))
for _name in dir(np):
    if isinstance(getattr(np, _name), np.ufunc) and _name not in _NOT_IN_CUPY:
        globals()[_name] = ufunc(getattr(np, _name))


def array(
    obj, dtype=None, copy: bool = True, order: _Literal["K", "A", "C", "F"] = "K", subok: bool = False, ndmin: int = 0
) -> ndarray:
    """Make a new array on the device, from an array of the host or the device, a number or nested lists of numbers."""
    if isinstance(obj, ndarray) and not copy and dtype in (None, obj.dtype) and obj.ndim >= ndmin:
        return obj
    if _dlpack.is_foreign(obj):
        obj = _dlpack.host_view(obj)
    source = obj if isinstance(obj, np.ndarray) else _to_host(obj)
    return ndarray._from_host(np.array(source, dtype, order=order, ndmin=ndmin))


def asarray(a, dtype=None, order=None) -> ndarray:
    """Return `a` on the device, copied unless it is there already in this dtype."""
    if isinstance(a, DeviceArray) and dtype in (None, a.dtype):
        return a if isinstance(a, ndarray) else ndarray._wrap(a._buffer, a._view)
    if _dlpack.is_foreign(a):
        return _of_foreign(a, dtype, order)
    return array(a, dtype, order=order or "K")


def from_dlpack(array, *, device=None, copy: bool | None = None) -> ndarray:
    """Return `array` of another library on the device: a copy, unless the library had its memory from here."""
    if isinstance(array, ndarray):
        return array
    if not _dlpack.is_foreign(array):
        raise TypeError(f"from_dlpack takes arrays with __dlpack__ in the CPU's memory, not {type(array).__name__}")
    return _of_foreign(array)


def _of_foreign(value, dtype=None, order=None) -> ndarray:
    host = _dlpack.host_view(value)
    memory = _default_device().memory
    address = memory.address_of(host)
    if address is None or dtype not in (None, host.dtype) or not host.flags.forc:
        return array(host, dtype, order=order or "K")
    return ndarray._wrap(_BorrowedBuffer(address, host.nbytes, value), host)


def ascontiguousarray(a, dtype=None) -> ndarray:
    a = asarray(a, dtype)
    return a if a.flags.c_contiguous else a.copy()


def asfortranarray(a, dtype=None) -> ndarray:
    a = asarray(a, dtype)
    return a if a.flags.f_contiguous else a.copy("F")


def asnumpy(
    a, stream=None, order: _Literal["C", "F", "A"] = "C", out: np.ndarray | None = None, *, blocking: bool = True
) -> np.ndarray:
    """Return `a` as a NumPy array; device arrays are copied."""
    return a.get(order=order, out=out) if isinstance(a, ndarray) else np.asarray(a)


def empty(shape, dtype=float, order: _Order = "C") -> ndarray:
    """Make an array of undefined values; a kernel that reads one before it is written fails on the simulator."""
    return ndarray._undefined(shape, dtype, order)


def zeros(shape, dtype=float, order: _Order = "C") -> ndarray:
    return full(shape, 0, dtype, order)


def ones(shape, dtype=float, order: _Order = "C") -> ndarray:
    return full(shape, 1, dtype, order)


def full(shape, fill_value, dtype=None, order: _Order = "C") -> ndarray:
    """Make an array filled with `fill_value`, of its dtype unless one is given."""
    filled = ndarray._allocate(shape, np.asarray(_to_host(fill_value)).dtype if dtype is None else dtype, order)
    filled._write(..., _to_host(fill_value))
    return filled


def empty_like(prototype, dtype=None, order: _Literal["K", "A", "C", "F"] = "K", subok=None, shape=None) -> ndarray:
    """Make an `empty` array of the shape, dtype and order of axes of `prototype`."""
    like = np.empty_like(_to_host(prototype), dtype, order, subok=False, shape=shape)
    return ndarray._undefined(like.shape, like.dtype, strides=like.strides)


def zeros_like(a, dtype=None, order: _Literal["K", "A", "C", "F"] = "K", subok=None, shape=None) -> ndarray:
    return full_like(a, 0, dtype, order, subok, shape)


def ones_like(a, dtype=None, order: _Literal["K", "A", "C", "F"] = "K", subok=None, shape=None) -> ndarray:
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(a, fill_value, dtype=None, order: _Literal["K", "A", "C", "F"] = "K", subok=None, shape=None) -> ndarray:
    filled = empty_like(a, dtype, order, subok, shape)
    filled._write(..., _to_host(fill_value))
    return filled


def copyto(dst: ndarray, src, casting: str = "same_kind") -> None:
    """Assign `dst[...] = src`, a device array or a number."""
    dst[...] = src


def get_default_memory_pool() -> cuda.MemoryPool:
    return _pool


def get_default_pinned_memory_pool() -> cuda.PinnedMemoryPool:
    return _pinned_pool


def get_array_module(*args):
    """Return this module if any of the arguments is one of its arrays, else numpy."""
    for arg in args:
        if isinstance(arg, ndarray):
            return sys.modules[__spec__.name]  # a program finds cupy as __name__
    return np


def shape(a) -> tuple[int, ...]:
    return np.shape(_to_host(a))


def ndim(a) -> int:
    return np.ndim(_to_host(a))


def size(a, axis=None) -> int:
    return np.size(_to_host(a), axis)


def __getattr__(name: str):
    raise _missing("cupy", name)


globals().update({_name: globals()[_new] for _name, _new in _OLD.items()})
for _home, _names in (("numpy", globals()), ("numpy.linalg", vars(linalg)), ("numpy.fft", vars(fft))):
    _array_functions.update({f"{_home}.{n}": v for n, v in _names.items() if callable(v) and n[0] != "_"})
