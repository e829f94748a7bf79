"""The flow that the sources of 2017 show, on today's library: descriptors, find an algorithm, run it.

    with ForwardPass(conv, "NCHW", "float32") as forward:
        table = forward.find(x, w, y)              # per algorithm: name, seconds, workspace_bytes, status
        forward.run(table[0]["algorithm"], x, w, y)

cuDNN 9 still has these functions ("legacy API", deprecated); the lab runs them only to show the table. Source: cuDNN's
documentation, "cudnn_cnn library", and its headers cudnn_cnn.h, cudnn_ops.h and cudnn_graph.h of version 9.19.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_void_p
from typing import Any

from kernels.convolution import cudnn_library
from kernels.convolution.geometry import Convolution, check_layout
from kernels.convolution.plan_table import OK

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
FLOAT, HALF = 0, 2  # cudnnDataType_t
FORMATS = {"NCHW": 0, "NHWC": 1}  # cudnnTensorFormat_t
CROSS_CORRELATION = 1  # cudnnConvolutionMode_t
MATH = ("DEFAULT", "TENSOR_OP", "TENSOR_OP_ALLOW_CONVERSION", "FMA")  # cudnnMathType_t, in order
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


class ForwardPass:
    """The forward pass of a convolution, described to cuDNN by descriptors. A context manager, which destroys them.

    `dtype`: "float16" or "float32", of x, w and y; sums are float32. `tensor_cores`: False asks for fused
    multiply-adds, so that float32 stays float32.
    """

    def __init__(self, conv: Convolution, layout: str, dtype: str, *, tensor_cores: bool = True) -> None:
        check_layout(layout)
        self.conv, self.layout = conv, layout
        kind, order = {"float16": HALF, "float32": FLOAT}[dtype], FORMATS[layout]
        self._workspace: Any = None
        self._descriptors: list[tuple[str, c_void_p]] = []
        self._x, self._y = self._created("Tensor"), self._created("Tensor")
        self._w, self._convolution = self._created("Filter"), self._created("Convolution")
        _call("cudnnSetTensor4dDescriptor", self._x, order, kind, *conv.x_shape())
        _call("cudnnSetFilter4dDescriptor", self._w, kind, order, *conv.w_shape())
        window = (*conv.padding, *conv.stride, *conv.dilation)
        _call("cudnnSetConvolution2dDescriptor", self._convolution, *window, CROSS_CORRELATION, FLOAT)
        _call("cudnnSetConvolutionGroupCount", self._convolution, conv.groups)
        math = ("TENSOR_OP" if kind == HALF else "DEFAULT") if tensor_cores else "FMA"
        _call("cudnnSetConvolutionMathType", self._convolution, MATH.index(math))
        self.y_shape = self._output_shape()
        _call("cudnnSetTensor4dDescriptor", self._y, order, kind, *self.y_shape)

    def __enter__(self) -> ForwardPass:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Destroy the descriptors."""
        while self._descriptors:
            kind, descriptor = self._descriptors.pop()
            cudnn_library.call(f"cudnnDestroy{kind}Descriptor", descriptor)

    def find(self, x: Any, w: Any, y: Any) -> list[dict[str, Any]]:
        """What the library measures of each algorithm, the fastest first; y is overwritten.

        Rows: `algorithm`, a name in ALGORITHMS; `seconds`, None unless the status is "ok"; `workspace_bytes`; `status`;
        `deterministic`; `math`, the kind of arithmetic, a name in MATH.
        """
        results, count = (_Performance * RETURNED)(), c_int()
        workspace = self._room(MOST_WORKSPACE)
        cudnn_library.call(
            "cudnnFindConvolutionForwardAlgorithmEx",
            cudnn_library.raw_handle(),
            self._x,
            cudnn_library.pointer(x),
            self._w,
            cudnn_library.pointer(w),
            self._convolution,
            self._y,
            cudnn_library.pointer(y),
            c_int(RETURNED),
            byref(count),
            results,
            cudnn_library.pointer(workspace),
            c_size_t(MOST_WORKSPACE),
        )
        return [_row(results[i]) for i in range(count.value)]

    def workspace_bytes(self, algorithm: str) -> int:
        """Device memory that an algorithm needs. `CudnnError` where it does not support this convolution."""
        size = c_size_t()
        cudnn_library.call(
            "cudnnGetConvolutionForwardWorkspaceSize",
            cudnn_library.raw_handle(),
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
        cudnn_library.call(
            "cudnnConvolutionForward",
            cudnn_library.raw_handle(),
            byref(one),
            self._x,
            cudnn_library.pointer(x),
            self._w,
            cudnn_library.pointer(w),
            self._convolution,
            c_int(ALGORITHMS.index(algorithm)),
            cudnn_library.pointer(self._room(size)),
            c_size_t(size),
            byref(zero),
            self._y,
            cudnn_library.pointer(y),
        )

    def _output_shape(self) -> tuple[int, ...]:
        sizes = [c_int() for _ in range(4)]
        outputs = map(byref, sizes)
        cudnn_library.call("cudnnGetConvolution2dForwardOutputDim", self._convolution, self._x, self._w, *outputs)
        return tuple(size.value for size in sizes)

    def _created(self, kind: str) -> c_void_p:
        descriptor = c_void_p()
        cudnn_library.call(f"cudnnCreate{kind}Descriptor", byref(descriptor))
        self._descriptors.append((kind, descriptor))
        return descriptor

    def _room(self, size: int) -> Any:
        """Workspace of `size` bytes or more; None for none."""
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
        "status": OK if ok else cudnn_library.status_name(result.status),
        "deterministic": bool(result.determinism),
        "math": MATH[result.math],
    }


def _call(name: str, descriptor: c_void_p, *numbers: int) -> None:
    cudnn_library.call(name, descriptor, *map(c_int, numbers))
