"""Functions of one element, of two, or of a row: what each operator of that name computes, in NumPy.

Its kernel is the structure of that name in functions.cuh. A function of one element may have two numbers, `alpha` and
`beta`, with their defaults here, as ONNX has them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.fusion.graph.int8 import rounded_values

MOST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Unary:
    """`of(x, alpha, beta)`, element by element."""

    of: Callable[[Any, float, float], Any]
    attributes: Mapping[str, float] = field(default_factory=dict)


def _sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -x))


def _elu(x: Any, alpha: float) -> Any:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


_erf = np.vectorize(math.erf, otypes=[np.float64])
UNARY: Mapping[str, Unary] = {
    "abs": Unary(lambda x, *_: np.abs(x)),
    "ceil": Unary(lambda x, *_: np.ceil(x)),
    "cos": Unary(lambda x, *_: np.cos(x)),
    "erf": Unary(lambda x, *_: _erf(x).astype(x.dtype)),
    "exp": Unary(lambda x, *_: np.exp(x)),
    "floor": Unary(lambda x, *_: np.floor(x)),
    "log": Unary(lambda x, *_: np.log(x)),
    "neg": Unary(lambda x, *_: -x),
    "reciprocal": Unary(lambda x, *_: 1 / x),
    "round": Unary(lambda x, *_: np.rint(x)),
    "sigmoid": Unary(lambda x, *_: _sigmoid(x)),
    "sign": Unary(lambda x, *_: np.sign(x)),
    "sin": Unary(lambda x, *_: np.sin(x)),
    "softplus": Unary(lambda x, *_: np.logaddexp(0, x)),
    "sqrt": Unary(lambda x, *_: np.sqrt(x)),
    "tanh": Unary(lambda x, *_: np.tanh(x)),
    "hard_swish": Unary(lambda x, *_: x * np.clip(x / 6 + 0.5, 0, 1)),
    "gelu": Unary(lambda x, *_: x / 2 * (1 + _erf(x / math.sqrt(2)).astype(x.dtype))),
    "gelu_tanh": Unary(lambda x, *_: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    "swish": Unary(lambda x, alpha, _: x * _sigmoid(alpha * x), {"alpha": 1.0}),
    "elu": Unary(lambda x, alpha, _: _elu(x, alpha), {"alpha": 1.0}),
    "leaky_relu": Unary(lambda x, alpha, _: np.where(x < 0, alpha * x, x), {"alpha": 0.01}),
    "thresholded_relu": Unary(lambda x, alpha, _: np.where(x > alpha, x, 0), {"alpha": 1.0}),
    "selu": Unary(lambda x, alpha, beta: beta * _elu(x, alpha), {"alpha": 1.67326319, "beta": 1.05070102}),
    "hard_sigmoid": Unary(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), {"alpha": 0.2, "beta": 0.5}),
    "fake_quantise": Unary(lambda x, alpha, _: rounded_values(x, alpha), {"alpha": 1.0}),  # to INT8 and back
    "clip": Unary(lambda x, alpha, beta: np.minimum(np.maximum(x, alpha), beta), {"alpha": -MOST, "beta": MOST}),
}

BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "pow": np.power,
    "prelu": lambda x, slope: np.where(x < 0, slope * x, x),
}

# Of the last axis, which is left with one element.
REDUCED: Mapping[str, Callable[..., Any]] = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
}
