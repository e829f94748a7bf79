"""cuDNN as Python reaches it: NVIDIA's frontend (`import cudnn`) for graphs, libcudnn itself by ctypes for the rest.

Both are loaded at the first use, so that modules can be imported where there is no GPU.
"""

import ctypes
import functools
from typing import Any

from warplab.hardware import backend

LIBRARY = "libcudnn.so.9"


class CudnnError(RuntimeError):
    """A call of cuDNN failed; the message holds the call, its status and the library's own explanation."""


def frontend() -> Any:
    """Return the module `cudnn`. RuntimeError where there is no GPU, no frontend, or no library for it to load."""
    _require_gpu()
    return _frontend()


def handle() -> Any:
    """Return cuDNN's handle of this process and GPU, on CuPy's current stream."""
    import cupy

    _require_gpu()
    found = _handle(cupy.cuda.Device().id)
    _frontend().set_stream(found, cupy.cuda.get_current_stream().ptr)
    return found


def version() -> str:
    """Return the library's version, such as "9.19.0"."""
    return str(frontend().backend_version_string())


def call(name: str, *arguments: Any) -> None:
    """Call a function of libcudnn that returns a status; CudnnError names the call where it is no success.

    `arguments`: objects of ctypes; a Python number would be passed as a C int.
    """
    status = getattr(_library(), name)(*arguments)
    if status:
        message = ctypes.create_string_buffer(512)
        _library().cudnnGetLastErrorString(message, ctypes.c_size_t(len(message)))
        raise CudnnError(f"{name}: {status_name(status)}. {message.value.decode(errors='replace')}".rstrip())


def status_name(status: int) -> str:
    """Return a status as the library names it, such as "CUDNN_STATUS_NOT_SUPPORTED"."""
    return _library().cudnnGetErrorString(status).decode()


def raw_handle() -> ctypes.c_void_p:
    """Return `handle`, as libcudnn's functions take it."""
    return ctypes.c_void_p(handle().backend_handle)


def pointer(array: Any) -> ctypes.c_void_p:
    """Return the device address of a CuPy array, as libcudnn's functions take it; a null pointer for None."""
    return ctypes.c_void_p(None if array is None else array.data.ptr)


def _require_gpu() -> None:
    if backend.name() != "gpu":
        raise RuntimeError(
            f"cuDNN needs an NVIDIA GPU; here kernels run on the {backend.name()} ({backend.reason()}). "
            "What cuDNN did on a GPU is in kernels/convolution/recordings.json."
        )


@functools.cache
def _frontend() -> Any:
    try:
        import cudnn
    except ImportError as error:
        raise RuntimeError(
            f"cuDNN needs the package nvidia-cudnn-frontend, which cannot be imported ({error}); "
            "`make setup` installs it on a machine with a GPU"
        ) from error
    try:
        cudnn.backend_version()
    except Exception as error:  # the frontend raises no narrower type where it found no library
        raise RuntimeError(f"nvidia-cudnn-frontend finds no {LIBRARY} ({error}); `make setup` installs it") from error
    return cudnn


@functools.cache
def _handle(device: int) -> Any:
    return _frontend().create_handle()


@functools.cache
def _library() -> Any:
    frontend()  # has loaded the library, wherever it lies: the same one is found by its name now
    library = ctypes.CDLL(LIBRARY)
    library.cudnnGetErrorString.restype = ctypes.c_char_p
    return library
