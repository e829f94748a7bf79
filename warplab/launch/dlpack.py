"""CPU arrays of other libraries (torch, JAX, TensorFlow) as NumPy arrays of the same memory, by the DLPack protocol.

NumPy's own `from_dlpack` knows no bfloat16, and takes arrays of producers without versions for read-only.
"""

import ctypes

import ml_dtypes
import numpy as np

_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_KINDS = {0: "i", 1: "u", 2: "f", 4: "bfloat", 5: "c", 6: "b"}  # DLDataTypeCode
_BFLOAT = 4
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _Memory:
    """What a NumPy array refers to: the memory that a capsule describes, which lives as long as the capsule."""

    def __init__(self, capsule, interface: dict) -> None:
        self._capsule, self.__array_interface__ = capsule, interface


def is_foreign(value) -> bool:
    """Return whether `value` is another library's array in the memory of the CPU, with `__dlpack__`."""
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack__"):
        return False
    if hasattr(value, "__cuda_array_interface__"):  # of a GPU, or of the simulator
        return False
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and device()[0] in _HOST


def host_view(value) -> np.ndarray:
    """Return a NumPy array of the memory of `value`, which `is_foreign`; bfloat16 as ml_dtypes has it.

    It is read-only where the library says so, or does not let NumPy write there either, as JAX and TensorFlow. Raises
    what the library raises, such as BufferError for a tensor of torch that requires a gradient, and TypeError for a
    type that NumPy lacks.
    """
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer from before versions
        capsule = value.__dlpack__()
    versioned = _is(capsule, b"dltensor_versioned")
    pointer = _pointer(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    managed = ctypes.cast(pointer, ctypes.POINTER(_Versioned)).contents if versioned else None
    tensor = managed.tensor if managed else ctypes.cast(pointer, ctypes.POINTER(_Tensor)).contents
    dtype = _dtype(tensor)
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = tuple(dtype.itemsize * tensor.strides[k] for k in range(tensor.ndim)) if tensor.strides else None
    start = (tensor.data or 0) + tensor.byte_offset
    read_only = bool(managed.flags & _READ_ONLY) if managed else not _writable(value, start)
    interface = {
        "version": 3,
        "shape": shape,
        "strides": strides,
        "typestr": f"|V{dtype.itemsize}" if tensor.code == _BFLOAT else dtype.str,
        "data": (start, read_only),
    }
    if not np.prod(shape):
        return np.empty(shape, dtype)
    return np.asarray(_Memory(capsule, interface)).view(dtype)


def _dtype(tensor: _Tensor) -> np.dtype:
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        raise TypeError(
            f"an array of DLPack type {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes has no dtype in "
            "NumPy; convert it first"
        )
    return np.dtype(ml_dtypes.bfloat16) if tensor.code == _BFLOAT else np.dtype(f"{kind}{tensor.bits // 8}")


def _writable(value, start: int) -> bool:
    """Return whether the library lets NumPy write to the array's own memory, which begins at `start`."""
    try:
        seen = np.asarray(value)
    except Exception:  # torch's bfloat16, which NumPy lacks: torch's arrays are writable
        return True
    return seen.flags.writeable and seen.__array_interface__["data"][0] == start


_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
