"""The flow that the sources of 2017 show, on today's library: descriptors, find an algorithm, run it.

    with ForwardPass(conv, "NCHW", "float32") as forward:
        table = forward.find(x, w, y)              # per algorithm: name, seconds, workspace_bytes, status
        forward.run(table[0]["algorithm"], x, w, y)

cuDNN 9 still has these functions ("legacy API", deprecated); the lab runs them only to show the table. Source: cuDNN's
documentation, "cudnn_cnn library", and its headers cudnn_cnn.h, cudnn_ops.h and cudnn_graph.h of version 9.19.
"""

import ctypes
from ctypes import byref, c_float, c_int, c_size_t
from typing import Any

from kernels.convolution.cudnn import library
from kernels.convolution.cudnn.descriptors import FLOAT, FORMATS, MATH, TYPES, Descriptors, math_type, set_numbers
from kernels.convolution.cudnn.plan_table import OK
from kernels.convolution.definition.geometry import Convolution, check_layout

ALGORITHMS = (  # cudnnConvolutionFwdAlgo_t, in order
    "IMPLICIT_GEMM",
    "IMPLICIT_PRECOMP_GEMM",
    "GEMM",
    "DIRECT",
    "FFT",
    "FFT_TILING",
    "WINOGRAD",
    "WINOGRAD_NONFUSED",
)
CROSS_CORRELATION = 1  # cudnnConvolutionMode_t
MOST_WORKSPACE = 8 * 2**30  # bytes
RETURNED = 4 * len(ALGORITHMS)  # an algorithm may come back once per kind of arithmetic


class _Performance(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t: time in milliseconds, -1 unless the status is success."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("milliseconds", c_float),
        ("workspace_bytes", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )


class ForwardPass(Descriptors):
    """The forward pass of a convolution, described to cuDNN by descriptors, which the end of a `with` block destroys.

    `dtype`: "float16" or "float32", of x, w and y; sums are float32. `tensor_cores`: False asks for fused
    multiply-adds, so that float32 stays float32.
    """

    def __init__(self, conv: Convolution, layout: str, dtype: str, *, tensor_cores: bool = True) -> None:
        check_layout(layout)
        super().__init__()
        self._workspace: Any = None
        self._x = self.tensor(conv.x_shape(), layout, dtype)
        self._w, self._convolution = self.create("Filter"), self.create("Convolution")
        set_numbers("cudnnSetFilter4dDescriptor", self._w, TYPES[dtype], FORMATS[layout], *conv.w_shape())
        window = (*conv.padding, *conv.stride, *conv.dilation)
        set_numbers("cudnnSetConvolution2dDescriptor", self._convolution, *window, CROSS_CORRELATION, FLOAT)
        set_numbers("cudnnSetConvolutionGroupCount", self._convolution, conv.groups)
        set_numbers("cudnnSetConvolutionMathType", self._convolution, math_type(dtype, tensor_cores))
        self.y_shape = self._output_shape()
        self._y = self.tensor(self.y_shape, layout, dtype)

    def find(self, x: Any, w: Any, y: Any) -> list[dict[str, Any]]:
        """Return what the library measures of each algorithm, the fastest first; y is overwritten.

        Rows: `algorithm`, a name in ALGORITHMS; `seconds`, None unless the status is "ok"; `workspace_bytes`; `status`;
        `deterministic`; `math`, the kind of arithmetic, a name in MATH.
        """
        results, count = (_Performance * RETURNED)(), c_int()
        workspace = self._room(MOST_WORKSPACE)
        library.call(
            "cudnnFindConvolutionForwardAlgorithmEx",
            library.raw_handle(),
            self._x,
            library.pointer(x),
            self._w,
            library.pointer(w),
            self._convolution,
            self._y,
            library.pointer(y),
            c_int(RETURNED),
            byref(count),
            results,
            library.pointer(workspace),
            c_size_t(MOST_WORKSPACE),
        )
        return [_row(results[i]) for i in range(count.value)]

    def workspace_bytes(self, algorithm: str) -> int:
        """Return device memory that an algorithm needs. `CudnnError` where it does not support this convolution."""
        size = c_size_t()
        library.call(
            "cudnnGetConvolutionForwardWorkspaceSize",
            library.raw_handle(),
            self._x,
            self._w,
            self._convolution,
            self._y,
            c_int(ALGORITHMS.index(algorithm)),
            byref(size),
        )
        return size.value

    def run(self, algorithm: str, x: Any, w: Any, y: Any) -> None:
        """Queue y = x * w by one algorithm on CuPy's current stream."""
        size = self.workspace_bytes(algorithm)
        one, zero = c_float(1), c_float(0)
        library.call(
            "cudnnConvolutionForward",
            library.raw_handle(),
            byref(one),
            self._x,
            library.pointer(x),
            self._w,
            library.pointer(w),
            self._convolution,
            c_int(ALGORITHMS.index(algorithm)),
            library.pointer(self._room(size)),
            c_size_t(size),
            byref(zero),
            self._y,
            library.pointer(y),
        )

    def _output_shape(self) -> tuple[int, ...]:
        sizes = [c_int() for _ in range(4)]
        outputs = map(byref, sizes)
        library.call("cudnnGetConvolution2dForwardOutputDim", self._convolution, self._x, self._w, *outputs)
        return tuple(size.value for size in sizes)

    def _room(self, size: int) -> Any:
        """Return a workspace of `size` bytes or more; None for none."""
        import cupy

        if size and (self._workspace is None or self._workspace.nbytes < size):
            self._workspace = cupy.empty(size, cupy.uint8)
        return self._workspace if size else None


def _row(result: _Performance) -> dict[str, Any]:
    ok = result.status == 0
    return {
        "algorithm": ALGORITHMS[result.algorithm],
        "seconds": result.milliseconds / 1e3 if ok else None,
        "workspace_bytes": result.workspace_bytes if ok else None,
        "status": OK if ok else library.status_name(result.status),
        "deterministic": bool(result.determinism),
        "math": MATH[result.math],
    }
