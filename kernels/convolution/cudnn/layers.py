"""The layers of a CNN beside convolution, by cuDNN: batch norm, ReLU, sum, pooling, softmax; forward and backward.

Each takes CuPy arrays in the layout and type that it was made for and queues one call on CuPy's current stream. They
are there to be timed beside the convolutions. Source: cuDNN's documentation, "cudnn_ops library", and its header
cudnn_ops.h of version 9.19 (most of these functions are deprecated in favour of graphs, and still maintained).
"""

from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_size_t, c_void_p
from typing import Any

from kernels.convolution.cudnn import library
from kernels.convolution.cudnn.descriptors import FLOAT, Descriptors, set_numbers
from kernels.convolution.cudnn.library import pointer

ACTIVATION_RELU, OP_TENSOR_ADD, SOFTMAX_ACCURATE, SOFTMAX_INSTANCE = 1, 0, 1, 0  # of cudnn_graph.h and cudnn_ops.h
POOLING = {"max": 3, "average": 2}  # CUDNN_POOLING_MAX_DETERMINISTIC, ..._AVERAGE_COUNT_EXCLUDE_PADDING
SPATIAL, SPATIAL_PERSISTENT = 1, 2  # cudnnBatchNormMode_t
NORMALISE_ONLY = 0  # cudnnBatchNormOps_t
EPSILON = 1e-5


class CudnnLayer(Descriptors):
    """A layer whose input has the sizes `nchw`. `layout`: "NCHW" or "NHWC"; `dtype`: "float32" or "float16"."""

    def __init__(self, nchw: Sequence[int], layout: str, dtype: str) -> None:
        super().__init__()
        self.nchw, self.layout, self.dtype = tuple(nchw), layout, dtype
        self._one, self._zero = c_float(1), c_float(0)
        self._x = self.tensor(nchw, layout, dtype)

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function whose first argument is the handle."""
        library.call(name, library.raw_handle(), *arguments)


class Relu(CudnnLayer):
    """y = max(x, 0)."""

    def __init__(self, nchw: Sequence[int], layout: str, dtype: str) -> None:
        super().__init__(nchw, layout, dtype)
        self._relu = self.create("Activation")
        library.call("cudnnSetActivationDescriptor", self._relu, c_int(ACTIVATION_RELU), c_int(0), c_double(0.0))

    def forward(self, x: Any, y: Any) -> None:
        """Queue y."""
        arrays = byref(self._one), self._x, pointer(x), byref(self._zero), self._x, pointer(y)
        self._call("cudnnActivationForward", self._relu, *arrays)

    def backward(self, x: Any, y: Any, dy: Any, dx: Any) -> None:
        """Queue dx."""
        given = [argument for array in (y, dy, x) for argument in (self._x, pointer(array))]
        self._call(
            "cudnnActivationBackward", self._relu, byref(self._one), *given, byref(self._zero), self._x, pointer(dx)
        )


class Add(CudnnLayer):
    """c = a + b: a block's result and its shortcut. Backward it only passes on the gradient, which costs nothing."""

    def __init__(self, nchw: Sequence[int], layout: str, dtype: str) -> None:
        super().__init__(nchw, layout, dtype)
        self._add = self.create("OpTensor")
        set_numbers("cudnnSetOpTensorDescriptor", self._add, OP_TENSOR_ADD, FLOAT, 0)

    def forward(self, a: Any, b: Any, c: Any) -> None:
        """Queue c."""
        factors = self._one, self._one, self._zero
        pairs = zip(factors, (a, b, c), strict=True)
        arguments = [item for factor, array in pairs for item in (byref(factor), self._x, pointer(array))]
        self._call("cudnnOpTensor", self._add, *arguments)


class Pooling(CudnnLayer):
    """Windows of `size` × `size`. `kind`: "max" or "average"."""

    def __init__(
        self, nchw: Sequence[int], layout: str, dtype: str, kind: str, size: int, padding: int, stride: int
    ) -> None:
        super().__init__(nchw, layout, dtype)
        self._pooling = self.create("Pooling")
        numbers = POOLING[kind], 0, size, size, padding, padding, stride, stride
        set_numbers("cudnnSetPooling2dDescriptor", self._pooling, *numbers)
        height, width = ((length + 2 * padding - size) // stride + 1 for length in self.nchw[2:])
        self.y_nchw = (*self.nchw[:2], height, width)
        self._y = self.tensor(self.y_nchw, layout, dtype)

    def forward(self, x: Any, y: Any) -> None:
        """Queue y."""
        arrays = byref(self._one), self._x, pointer(x), byref(self._zero), self._y, pointer(y)
        self._call("cudnnPoolingForward", self._pooling, *arrays)

    def backward(self, x: Any, y: Any, dy: Any, dx: Any) -> None:
        """Queue dx."""
        given = self._y, pointer(y), self._y, pointer(dy), self._x, pointer(x)
        self._call(
            "cudnnPoolingBackward", self._pooling, byref(self._one), *given, byref(self._zero), self._x, pointer(dx)
        )


class Softmax(CudnnLayer):
    """Probabilities of each image's classes: nchw is (images, classes, 1, 1)."""

    def forward(self, x: Any, y: Any) -> None:
        """Queue y."""
        arrays = byref(self._one), self._x, pointer(x), byref(self._zero), self._x, pointer(y)
        self._call("cudnnSoftmaxForward", c_int(SOFTMAX_ACCURATE), c_int(SOFTMAX_INSTANCE), *arrays)


class BatchNorm(CudnnLayer):
    """Normalisation by channel, over images and pixels; scale, bias and statistics are float32."""

    def __init__(self, nchw: Sequence[int], layout: str, dtype: str) -> None:
        import cupy

        super().__init__(nchw, layout, dtype)
        channels = self.nchw[1]
        # The persistent kernels want NHWC; frameworks choose so, too.
        self._mode = c_int(SPATIAL_PERSISTENT if layout == "NHWC" else SPATIAL)
        self._parameters = self.tensor((1, channels, 1, 1), layout, "float32")
        self.scale, self.bias, self.mean, self.variance, self.saved_mean, self.saved_deviation = (
            cupy.full(channels, value, "float32") for value in (1, 0, 0, 1, 0, 1)
        )
        self.scale_gradient, self.bias_gradient = cupy.zeros(channels, "float32"), cupy.zeros(channels, "float32")
        self._reserve = self._room("TrainingExReserveSpaceSize", c_void_p(), self._x)
        four, six = (self._x, c_void_p(), self._x), (self._x, c_void_p(), self._x, c_void_p(), self._x)
        self._forward_room = self._room("ForwardTrainingExWorkspaceSize", *four, self._parameters, c_void_p())
        self._backward_room = self._room("BackwardExWorkspaceSize", *six, self._parameters, c_void_p())

    def infer(self, x: Any, y: Any, mode: int = SPATIAL) -> None:
        """Queue y by the statistics of training. `mode`: SPATIAL or SPATIAL_PERSISTENT, whose results are the same."""
        self._call(
            "cudnnBatchNormalizationForwardInference",
            *(c_int(mode), byref(self._one), byref(self._zero), self._x, pointer(x), self._x, pointer(y)),
            *(self._parameters, *map(pointer, (self.scale, self.bias, self.mean, self.variance)), c_double(EPSILON)),
        )

    def forward(self, x: Any, y: Any) -> None:
        """Queue y by x's own statistics, which are kept for `backward`."""
        self._call(
            "cudnnBatchNormalizationForwardTrainingEx",
            *(self._mode, c_int(NORMALISE_ONLY), byref(self._one), byref(self._zero)),
            *(self._x, pointer(x), c_void_p(), c_void_p(), self._x, pointer(y)),
            *(self._parameters, pointer(self.scale), pointer(self.bias)),
            *(c_double(0.1), pointer(self.mean), pointer(self.variance), c_double(EPSILON)),
            *(pointer(self.saved_mean), pointer(self.saved_deviation), c_void_p()),
            *(*_sized(self._forward_room), *_sized(self._reserve)),
        )

    def backward(self, x: Any, dy: Any, dx: Any) -> None:
        """Queue dx and the gradients of scale and bias."""
        factors = self._one, self._zero, self._one, self._zero
        self._call(
            "cudnnBatchNormalizationBackwardEx",
            *(self._mode, c_int(NORMALISE_ONLY), *map(byref, factors)),
            *(self._x, pointer(x), c_void_p(), c_void_p(), self._x, pointer(dy)),
            *(c_void_p(), c_void_p(), self._x, pointer(dx)),
            *(self._parameters, pointer(self.scale), pointer(self.bias)),
            *(pointer(self.scale_gradient), pointer(self.bias_gradient), c_double(EPSILON)),
            *(pointer(self.saved_mean), pointer(self.saved_deviation), c_void_p()),
            *(*_sized(self._backward_room), *_sized(self._reserve)),
        )

    def _room(self, what: str, *descriptors: c_void_p) -> Any:
        import cupy

        size = c_size_t()
        name = f"cudnnGetBatchNormalization{what}"
        self._call(name, self._mode, c_int(NORMALISE_ONLY), *descriptors, byref(size))
        return cupy.empty(size.value, "uint8") if size.value else None


def _sized(room: Any) -> tuple[c_void_p, c_size_t]:
    return pointer(room), c_size_t(0 if room is None else room.nbytes)
