"""The tasks: what fifteen problems of KernelBench's level 1 ask, with a reference in NumPy, kernels and launches.

A size's names are the constants of the problem's file, smaller than there (`length`: of its `input_shape`). Inputs are
normal numbers where KernelBench draws from [0, 1), on which ReLU is the identity and a softmax needs no maximum. The
right answer to a problem is answers/NUMBER.cu or .py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from warplab.judging.task import Launch, Task

F = np.float32


@dataclass(frozen=True)
class Problem:
    """`file`: of KernelBench's level1/. `tensors`: inputs of its forward, in order. `parameters`: inputs that are
    parameters of its model, by name there. `result`: what forward returns."""

    file: str
    tensors: tuple[str, ...]
    result: str
    task: Task
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> str:
        """As KernelBench counts."""
        return self.file.partition("_")[0]


def _sizes(names: str, *rows: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    return tuple(dict(zip(names.split(), row, strict=True)) for row in rows)


def _normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * rng.standard_normal(shape)).astype(F)


def _wide(*arrays: np.ndarray) -> list[np.ndarray]:
    return [array.astype(np.float64) for array in arrays]


def _int(*numbers: int) -> tuple[np.int32, ...]:
    return tuple(map(np.int32, numbers))


def _over(count: int, block: int = 256) -> int:
    return -(-count // block)


def _softmax(x: np.ndarray) -> np.ndarray:
    grown = np.exp(x - x.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def _layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    x, weight, bias = _wide(x, weight, bias)
    over = (1, 2, 3)
    return (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + 1e-5) * weight + bias


def _pooled(length: int, kernel_size: int, stride: int, padding: int, dilation: int = 1) -> int:
    return (length + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1


def _windows(x: np.ndarray, kernel_size: int, stride: int, padding: int, dilation: int, fill: float) -> np.ndarray:
    """Return what each output of a window of the last two axes reads, with a first axis for the window's elements."""
    padded = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2), constant_values=fill)
    high, wide = (_pooled(n, kernel_size, stride, padding, dilation) for n in x.shape[2:])
    return np.stack(
        [
            padded[:, :, dilation * i :: stride, dilation * j :: stride][:, :, :high, :wide]
            for i, j in product(range(kernel_size), repeat=2)
        ]
    )


def _max_pool(x: np.ndarray, kernel_size: int, stride: int, padding: int, dilation: int) -> np.ndarray:
    return _windows(x, kernel_size, stride, padding, dilation, -np.inf).max(0)


def _depthwise(x: np.ndarray, weight: np.ndarray, kernel_size: int, stride: int, padding: int) -> np.ndarray:
    seen, weight = _wide(_windows(x, kernel_size, stride, padding, 1, 0.0), weight)
    return np.einsum("wbchv,cw->bchv", seen, weight.reshape(weight.shape[0], -1))


def _losses(predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
    (x,) = _wide(predictions)
    top = x.max(1)
    return top + np.log(np.exp(x - top[:, None]).sum(1)) - x[np.arange(len(x)), targets]


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q, k, v = _wide(q, k, v)
    return _softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def _rows(kernel: str, scale: float = 1.0):
    """Return inputs, outputs and launches of a function of rows, one block of 128 threads for each."""
    return {
        "inputs": lambda rng, **size: {"x": _normal(rng, *size.values(), scale=scale)},
        "outputs": lambda **size: {"y": (tuple(size.values()), F)},
        "launches": lambda batch_size, **row: [Launch(kernel, batch_size, 128, ("x", "y", *_int(*row.values())))],
    }


def _elements(kernel: str):
    """Return inputs, outputs and launches of a function of elements; blocks of 32 × 8 threads, x along rows."""
    return {
        **_rows(kernel),
        "launches": lambda batch_size, dim: [
            Launch(kernel, (_over(dim, 32), _over(batch_size, 8)), (32, 8), ("x", "y", *_int(batch_size, dim)))
        ],
    }


_ROWS = _sizes("batch_size dim", (1, 1), (3, 33), (5, 1000))
_MIDDLE = _sizes("batch_size dim1 dim2", (1, 1, 1), (2, 33, 31), (3, 40, 300))

PROBLEMS = (
    Problem(
        "1_Square_matrix_multiplication_.py",
        ("A", "B"),
        "C",
        Task(
            sizes=_sizes("N", (1,), (33,), (80,)),
            inputs=lambda rng, N: {"A": _normal(rng, N, N), "B": _normal(rng, N, N)},
            outputs=lambda N: {"C": ((N, N), F)},
            reference=lambda A, B, N: {"C": np.matmul(*_wide(A, B))},
            launches=lambda N: [Launch("matmul", (_over(N, 16),) * 2, (16, 16), ("A", "B", "C", *_int(N)))],
            atol=1e-5,
        ),
    ),
    Problem(
        "4_Matrix_vector_multiplication_.py",
        ("A", "B"),
        "C",
        Task(
            sizes=_sizes("M K", (1, 1), (3, 100), (20, 1030)),
            inputs=lambda rng, M, K: {"A": _normal(rng, M, K), "B": _normal(rng, K, 1)},
            outputs=lambda M, K: {"C": ((M, 1), F)},
            reference=lambda A, B, M, K: {"C": np.matmul(*_wide(A, B))},
            launches=lambda M, K: [Launch("matvec", M, 128, ("A", "B", "C", *_int(K)))],
            limits={"sectors_per_request__le": 5},
            atol=1e-4,
        ),
    ),
    Problem(
        "14_Matmul_for_upper_triangular_matrices.py",
        ("A", "B"),
        "C",
        Task(
            sizes=_sizes("N", (1,), (33,), (64,)),
            inputs=lambda rng, N: {"A": np.triu(_normal(rng, N, N)), "B": np.triu(_normal(rng, N, N))},
            outputs=lambda N: {"C": ((N, N), F)},
            reference=lambda A, B, N: {"C": np.triu(np.matmul(*_wide(A, B)))},
            launches=lambda N: [Launch("triu_matmul", (_over(N, 16),) * 2, (16, 16), ("A", "B", "C", *_int(N)))],
            limits={"thread_instructions__le": 600 * 64 * 64},
            atol=1e-5,
        ),
    ),
    Problem(
        "19_ReLU.py",
        ("x",),
        "y",
        Task(
            sizes=_ROWS,
            reference=lambda x, **_: {"y": np.maximum(x, 0)},
            limits={"sectors_per_request__le": 4.5},
            **_elements("relu"),
        ),
    ),
    Problem(
        "23_Softmax.py",
        ("x",),
        "y",
        Task(sizes=_ROWS, reference=lambda x, **_: {"y": _softmax(*_wide(x))}, **_rows("softmax", 50.0)),
    ),
    Problem(
        "26_GELU_.py",
        ("x",),
        "y",
        Task(sizes=_ROWS, reference=lambda x, **_: {"y": _gelu(*_wide(x))}, **_elements("gelu")),
    ),
    Problem(
        "36_RMSNorm_.py",
        ("x",),
        "y",
        Task(
            sizes=_sizes("batch_size features dim1 dim2", (1, 1, 1, 1), (2, 5, 3, 11), (2, 64, 16, 20)),
            inputs=lambda rng, batch_size, features, dim1, dim2: {
                "x": _normal(rng, batch_size, features, dim1, dim2, scale=0.01)
            },
            outputs=lambda batch_size, features, dim1, dim2: {"y": ((batch_size, features, dim1, dim2), F)},
            reference=lambda x, **_: {"y": x / np.sqrt((_wide(x)[0] ** 2).mean(1, keepdims=True) + 1e-5)},
            launches=lambda batch_size, features, dim1, dim2: [
                Launch("rms_norm", (_over(dim1 * dim2), batch_size), 256, ("x", "y", *_int(features, dim1 * dim2)))
            ],
        ),
    ),
    Problem(
        "40_LayerNorm.py",
        ("x",),
        "y",
        Task(
            sizes=_sizes("batch_size features dim1 dim2", (1, 1, 1, 2), (2, 3, 5, 7), (3, 8, 12, 20)),
            inputs=lambda rng, batch_size, features, dim1, dim2: {
                "x": 100 + _normal(rng, batch_size, features, dim1, dim2),
                "weight": _normal(rng, features, dim1, dim2),
                "bias": _normal(rng, features, dim1, dim2),
            },
            outputs=lambda batch_size, features, dim1, dim2: {"y": ((batch_size, features, dim1, dim2), F)},
            reference=lambda x, weight, bias, **_: {"y": _layer_norm(x, weight, bias)},
            launches=lambda batch_size, features, dim1, dim2: [
                Launch("layer_norm", batch_size, 128, ("x", "weight", "bias", "y", *_int(features * dim1 * dim2)))
            ],
            rtol=1e-4,
            atol=1e-4,
        ),
        {"weight": "ln.weight", "bias": "ln.bias"},
    ),
    Problem(
        "42_Max_Pooling_2D.py",
        ("x",),
        "y",
        Task(
            sizes=_sizes(
                "batch_size channels height width kernel_size stride padding dilation",
                (1, 1, 1, 1, 1, 1, 0, 1),
                (2, 3, 13, 9, 3, 2, 1, 2),
                (2, 3, 20, 37, 4, 1, 1, 1),
            ),
            inputs=lambda rng, batch_size, channels, height, width, **_: {
                "x": _normal(rng, batch_size, channels, height, width) - 5
            },
            outputs=lambda batch_size, channels, height, width, **window: {
                "y": ((batch_size, channels, _pooled(height, **window), _pooled(width, **window)), F)
            },
            reference=lambda x, batch_size, channels, height, width, **window: {"y": _max_pool(x, **window)},
            launches=lambda batch_size, channels, height, width, **window: [
                Launch(
                    "max_pool",
                    (_over(_pooled(height, **window) * _pooled(width, **window)), batch_size * channels),
                    256,
                    ("x", "y", *_int(height, width, _pooled(height, **window), _pooled(width, **window)))
                    + _int(*window.values()),
                )
            ],
        ),
    ),
    Problem(
        "47_Sum_reduction_over_a_dimension.py",
        ("x",),
        "y",
        Task(
            sizes=_MIDDLE,
            inputs=lambda rng, batch_size, dim1, dim2: {"x": _normal(rng, batch_size, dim1, dim2)},
            outputs=lambda batch_size, dim1, dim2: {"y": ((batch_size, 1, dim2), F)},
            reference=lambda x, **_: {"y": _wide(x)[0].sum(1, keepdims=True)},
            launches=lambda batch_size, dim1, dim2: [
                Launch("sum_middle", (_over(dim2), batch_size), 256, ("x", "y", *_int(dim1, dim2)))
            ],
            atol=1e-5,
        ),
    ),
    Problem(
        "51_Argmax_over_a_dimension.py",
        ("x",),
        "y",
        Task(
            sizes=_MIDDLE,
            inputs=lambda rng, batch_size, dim1, dim2: {"x": _normal(rng, batch_size, dim1, dim2) - 5},
            outputs=lambda batch_size, dim1, dim2: {"y": ((batch_size, dim2), np.int64)},
            reference=lambda x, **_: {"y": x.argmax(1)},
            launches=lambda batch_size, dim1, dim2: [
                Launch("argmax_middle", (_over(dim2), batch_size), 256, ("x", "y", *_int(dim1, dim2)))
            ],
        ),
    ),
    Problem(
        "82_conv_depthwise_2D_square_input_square_kernel.py",
        ("x",),
        "y",
        Task(
            sizes=_sizes(
                "batch_size in_channels height width kernel_size stride padding",
                (1, 1, 1, 1, 1, 1, 0),
                (2, 3, 13, 9, 3, 2, 1),
                (2, 4, 20, 37, 3, 1, 0),
            ),
            inputs=lambda rng, batch_size, in_channels, height, width, kernel_size, **_: {
                "x": _normal(rng, batch_size, in_channels, height, width),
                "weight": _normal(rng, in_channels, 1, kernel_size, kernel_size),
            },
            outputs=lambda batch_size, in_channels, height, width, **window: {
                "y": ((batch_size, in_channels, _pooled(height, **window), _pooled(width, **window)), F)
            },
            reference=lambda x, weight, batch_size, in_channels, height, width, **window: {
                "y": _depthwise(x, weight, **window)
            },
            launches=lambda batch_size, in_channels, height, width, **window: [
                Launch(
                    "depthwise",
                    (_over(_pooled(height, **window) * _pooled(width, **window)), in_channels, batch_size),
                    256,
                    ("x", "weight", "y", *_int(height, width, _pooled(height, **window), _pooled(width, **window)))
                    + _int(*window.values()),
                )
            ],
            atol=1e-5,
        ),
        {"weight": "conv2d.weight"},
    ),
    Problem(
        "89_cumsum.py",
        ("x",),
        "y",
        Task(
            sizes=_sizes("batch_size length", (1, 1), (3, 33), (5, 1000)),
            reference=lambda x, **_: {"y": _wide(x)[0].cumsum(1)},
            atol=1e-4,
            **_rows("cumsum"),
        ),
    ),
    Problem(
        "95_CrossEntropyLoss.py",
        ("predictions", "targets"),
        "loss",
        Task(
            sizes=_sizes("batch_size num_classes", (1, 1), (3, 33), (40, 300)),
            inputs=lambda rng, batch_size, num_classes: {
                "predictions": _normal(rng, batch_size, num_classes, scale=50.0),
                "targets": rng.integers(0, num_classes, batch_size),
            },
            outputs=lambda batch_size, num_classes: {"losses": ((batch_size,), F), "loss": ((), F)},
            reference=lambda predictions, targets, **_: {
                "losses": _losses(predictions, targets),
                "loss": _losses(predictions, targets).mean(),
            },
            launches=lambda batch_size, num_classes: [
                Launch("losses", batch_size, 128, ("predictions", "targets", "losses", *_int(num_classes))),
                Launch("mean", 1, 128, ("losses", "loss", *_int(batch_size))),
            ],
            atol=1e-4,
        ),
    ),
    Problem(
        "97_ScaledDotProductAttention.py",
        ("Q", "K", "V"),
        "out",
        Task(
            sizes=_sizes(
                "batch_size num_heads sequence_length embedding_dimension", (1, 1, 1, 1), (1, 2, 5, 33), (1, 2, 40, 64)
            ),
            inputs=lambda rng, **size: {name: _normal(rng, *size.values(), scale=3.0) for name in "QKV"},
            outputs=lambda **size: {"out": (tuple(size.values()), F)},
            reference=lambda Q, K, V, **_: {"out": _attention(Q, K, V)},
            launches=lambda batch_size, num_heads, sequence_length, embedding_dimension: [
                Launch(
                    "attention",
                    (sequence_length, batch_size * num_heads),
                    128,
                    ("Q", "K", "V", "out", *_int(sequence_length, embedding_dimension)),
                    shared_bytes=4 * sequence_length,
                )
            ],
            rtol=1e-4,
            atol=1e-4,
        ),
    ),
)
