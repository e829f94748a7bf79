"""An LSTM layer by cuDNN's own functions: all time steps in one call, by one of the library's algorithms.

    with Lstm(steps=50, batch=32, inputs=512, hidden=512, algorithm="PERSIST_STATIC") as lstm:
        lstm.set_weights(w, u, bias_w, bias_u)
        lstm.forward(x, y)

The graph API has no recurrent layers; these functions (cudnnRNNForward and others) are cuDNN 9's. Source: cuDNN's
documentation, "cudnn_adv library", and its header cudnn_adv.h of version 9.19.
"""

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_uint32, c_ulonglong, c_void_p
from typing import Any

import numpy as np

from kernels.convolution.cudnn import library
from kernels.convolution.cudnn.descriptors import FLOAT, TYPES, Descriptors, math_type

ALGORITHMS = ("STANDARD", "PERSIST_STATIC", "PERSIST_DYNAMIC", "PERSIST_STATIC_SMALL_H")  # cudnnRNNAlgo_t, in order
GATES = 4  # input, forget, cell, output: cuDNN's order of the four blocks of rows in w, u and the biases
LSTM, DOUBLE_BIAS, UNIDIRECTIONAL, LINEAR_INPUT = 2, 2, 0, 0  # cell, bias, direction and input mode
SEQUENCE_MAJOR_PACKED = 1  # cudnnRNNDataLayout_t: (steps, batch, vector), no gaps
INFERENCE, TRAINING = 0, 1  # cudnnForwardMode_t
GRADIENT_ADD = 0  # cudnnWgradMode_t


class Lstm(Descriptors):
    """One layer, one direction, two biases, states of zero at the start; the end of a `with` block frees it.

    `dtype`: "float32" or "float16", of all arrays; sums are float32. `tensor_cores`: False asks for fused
    multiply-adds, so that float32 stays float32. `training`: whether the forward pass keeps what `backward` needs.
    `CudnnError` where an algorithm does not support these sizes.
    """

    def __init__(
        self,
        steps: int,
        batch: int,
        inputs: int,
        hidden: int,
        *,
        algorithm: str = "STANDARD",
        dtype: str = "float32",
        tensor_cores: bool = True,
        training: bool = False,
    ) -> None:
        import cupy

        self.steps, self.batch, self.inputs, self.hidden = steps, batch, inputs, hidden
        self.dtype, self._mode = np.dtype(dtype), TRAINING if training else INFERENCE
        self._gradients: Any = None
        super().__init__()
        try:
            self._dropout = self.create("Dropout")
            _call("cudnnSetDropoutDescriptor", self._dropout, _handle(), c_float(0), None, c_size_t(0), c_ulonglong(0))
            self._rnn = self._describe(algorithm, tensor_cores)
            if algorithm == "PERSIST_DYNAMIC":
                _call("cudnnBuildRNNDynamic", _handle(), self._rnn, c_int(batch))
            self._x, self._y = (self._sequence(size) for size in (inputs, hidden))
            self._state = self.create("Tensor")
            sizes, strides = (c_int * 3)(1, batch, hidden), (c_int * 3)(batch * hidden, hidden, 1)
            _call("cudnnSetTensorNdDescriptor", self._state, c_int(TYPES[dtype]), c_int(3), sizes, strides)
            self._weights = cupy.zeros(self._weight_bytes(), cupy.uint8)
            self.workspace_bytes, self.reserve_bytes = self._temporary_bytes()
            self._workspace = cupy.empty(self.workspace_bytes, cupy.uint8) if self.workspace_bytes else None
            self._reserve = cupy.empty(self.reserve_bytes, cupy.uint8) if self.reserve_bytes else None
        except BaseException:
            self.close()
            raise

    def set_weights(self, w: Any, u: Any, bias_w: Any, bias_u: Any) -> None:
        """Copy the weights to where cuDNN wants them.

        CuPy arrays of the layer's type: `w`, of shape (4 · hidden, inputs), meets x; `u`, (4 · hidden, hidden), meets
        the last output; `bias_w`, `bias_u`, (4 · hidden,). Blocks of rows: input, forget, cell, output gate.
        """
        for side, (matrix, bias) in enumerate(((w, bias_w), (u, bias_u))):
            for gate in range(GATES):
                rows = slice(gate * self.hidden, (gate + 1) * self.hidden)
                of_matrix, of_bias = self._parameters(side * GATES + gate, matrix.shape[1])
                of_matrix[...] = matrix[rows]
                of_bias[...] = bias[rows]

    def forward(self, x: Any, y: Any) -> None:
        """Queue all steps: y, (steps, batch, hidden), from x, (steps, batch, inputs)."""
        _call(
            "cudnnRNNForward",
            _handle(),
            self._rnn,
            c_int(self._mode),
            None,  # lengths of sequences: on the device no longer wanted, they are in the descriptors
            *(self._x, library.pointer(x), self._y, library.pointer(y)),
            *(self._state, None, None),  # h: zeros before, not wanted after
            *(self._state, None, None),  # c
            *self._weight_space(),
            *self._temporary(),
        )

    def backward(self, x: Any, y: Any, dy: Any, dx: Any) -> None:
        """Queue the gradients of x and of the weights, given that of y; after `forward` of a layer for training."""
        if self._gradients is None:
            import cupy

            self._gradients = cupy.empty_like(self._weights)
        self._gradients.fill(0)
        _call(
            "cudnnRNNBackwardData_v8",
            *(_handle(), self._rnn, None),
            *(self._y, library.pointer(y), library.pointer(dy), self._x, library.pointer(dx)),
            *(self._state, None, None, None),
            *(self._state, None, None, None),
            *self._weight_space(),
            *self._temporary(),
        )
        _call(
            "cudnnRNNBackwardWeights_v8",
            *(_handle(), self._rnn, c_int(GRADIENT_ADD), None),
            *(self._x, library.pointer(x), self._state, None, self._y, library.pointer(y)),
            *(c_size_t(self._gradients.nbytes), library.pointer(self._gradients)),
            *self._temporary(),
        )

    def _describe(self, algorithm: str, tensor_cores: bool) -> c_void_p:
        descriptor = self.create("RNN")
        modes = ALGORITHMS.index(algorithm), LSTM, DOUBLE_BIAS, UNIDIRECTIONAL, LINEAR_INPUT
        sizes = self.inputs, self.hidden, self.hidden, 1  # no projection, one layer
        numbers = *modes, TYPES[self.dtype.name], FLOAT, math_type(self.dtype.name, tensor_cores), *sizes
        _call("cudnnSetRNNDescriptor_v8", descriptor, *map(c_int, numbers), self._dropout, c_uint32(0))
        return descriptor

    def _sequence(self, size: int) -> c_void_p:
        descriptor = self.create("RNNData")
        lengths = (c_int * self.batch)(*[self.steps] * self.batch)
        numbers = TYPES[self.dtype.name], SEQUENCE_MAJOR_PACKED, self.steps, self.batch, size
        _call("cudnnSetRNNDataDescriptor", descriptor, *map(c_int, numbers), lengths, None)
        return descriptor

    def _weight_bytes(self) -> int:
        size = c_size_t()
        _call("cudnnGetRNNWeightSpaceSize", _handle(), self._rnn, byref(size))
        return size.value

    def _temporary_bytes(self) -> tuple[int, int]:
        work, reserve = c_size_t(), c_size_t()
        mode = c_int(self._mode)
        _call("cudnnGetRNNTempSpaceSizes", _handle(), self._rnn, mode, self._x, byref(work), byref(reserve))
        return work.value, reserve.value

    def _parameters(self, layer: int, columns: int) -> tuple[Any, Any]:
        """Return the matrix and the bias of a linear layer within the weight space, as CuPy arrays."""
        matrix, bias = c_void_p(), c_void_p()
        of_matrix, of_bias = self.create("Tensor"), self.create("Tensor")
        _call(
            "cudnnGetRNNWeightParams",
            *(_handle(), self._rnn, c_int(0), *self._weight_space(), c_int(layer)),
            *(of_matrix, byref(matrix), of_bias, byref(bias)),
        )
        return self._view(matrix, (self.hidden, columns)), self._view(bias, (self.hidden,))

    def _view(self, address: c_void_p, shape: tuple[int, ...]) -> Any:
        count, size = int(np.prod(shape)), self.dtype.itemsize
        start = (address.value or 0) - self._weights.data.ptr
        return self._weights[start : start + count * size].view(self.dtype).reshape(shape)

    def _weight_space(self) -> tuple[c_size_t, c_void_p]:
        return c_size_t(self._weights.nbytes), library.pointer(self._weights)

    def _temporary(self) -> tuple[Any, ...]:
        return (
            *(c_size_t(self.workspace_bytes), library.pointer(self._workspace)),
            *(c_size_t(self.reserve_bytes), library.pointer(self._reserve)),
        )


def _handle() -> ctypes.c_void_p:
    return library.raw_handle()


def _call(name: str, *arguments: Any) -> None:
    library.call(name, *(c_void_p() if argument is None else argument for argument in arguments))
