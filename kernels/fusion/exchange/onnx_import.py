"""From ONNX to a graph, one node per operator; the operators of IMPORTED, and the settings of them that the graph has.

Images are N × C × H × W, the batch may be fixed or free, and weights must be constants in float32. Everything else is
refused by the operator's and the node's name. Source of defaults: ONNX operator schemas, opsets 9 to 22.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from kernels.fusion.graph import Graph, GraphError
from kernels.fusion.graph.build import Builder, same_padding
from kernels.fusion.graph.operators import Shape


class UnsupportedOperator(ValueError):
    """An operator, or a setting of one, that cannot be imported: the message names the operator and the node."""


def import_onnx(model: str | Path | onnx.ModelProto) -> Graph:
    """Return the graph of an ONNX model or file.

    A node keeps its name, but one that makes an output of the graph gets the output's. UnsupportedOperator names what
    cannot be imported; onnx.checker.ValidationError says that the model is no ONNX.
    """
    proto = model if isinstance(model, onnx.ModelProto) else onnx.load(str(model))
    onnx.checker.check_model(proto)
    importer = _Importer(proto.graph)
    for node in proto.graph.node:
        importer.node(node)
    return importer.finish()


class _Importer:
    def __init__(self, proto: onnx.GraphProto) -> None:
        self.builder = Builder(proto.name or "onnx")
        self._proto = proto
        self._arrays = {one.name: onnx.numpy_helper.to_array(one) for one in proto.initializer}
        self._names: dict[str, str] = {}  # from ONNX's names of tensors to the graph's
        self._taken: set[str] = set()
        self._read = {name for node in proto.node for name in node.input} | {one.name for one in proto.output}
        for one in proto.input:
            if one.name not in self._arrays:
                self._names[one.name] = self.builder.input(self._unique(one.name), _input_shape(one))

    def node(self, node: onnx.NodeProto) -> None:
        """Import one operator."""
        if node.domain not in ("", "ai.onnx") or node.op_type not in IMPORTED:
            raise UnsupportedOperator(
                f"node {self._label(node)!r} is a {node.op_type}, which cannot be imported; "
                f"possible are {', '.join(IMPORTED)}"
            )
        used = [name for name in node.output if name in self._read]
        if used != list(node.output[:1]) and used:
            raise self.refused(node, "more results than its first are read")
        given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        IMPORTED[node.op_type](self, node, given)

    def finish(self) -> Graph:
        """Return the graph with ONNX's outputs."""
        outputs = [self._output(one.name) for one in self._proto.output]
        return self.builder.graph(*outputs)

    def add(
        self, node: onnx.NodeProto, op: str, inputs: list[str], weights: dict | None = None, **attributes: Any
    ) -> None:
        """Add a node of the graph for a node of ONNX. `inputs`: names in ONNX."""
        name = self._unique(self._label(node))
        names = [self.tensor(node, given) for given in inputs]
        self._names[node.output[0]] = self.builder.add(op, name, names, weights, **attributes)

    def constant(self, name: str, value: np.ndarray) -> None:
        """Note a tensor of ONNX that is known now."""
        self._arrays[name] = value

    def is_constant(self, name: str) -> bool:
        return name in self._arrays

    def array(self, node: onnx.NodeProto, index: int) -> np.ndarray:
        """Return a weight: the input of that index, which must be a constant in float32."""
        if node.input[index] not in self._arrays:
            raise self.refused(node, f"{node.input[index]!r} is computed; it must be a constant")
        return self._float32(node, node.input[index])

    def has(self, node: onnx.NodeProto, index: int) -> bool:
        """Return whether an optional input is there."""
        return len(node.input) > index and bool(node.input[index])

    def shape(self, node: onnx.NodeProto, index: int = 0) -> Shape:
        """Return the shape of an input, of one sample."""
        return self.builder.shape(self.tensor(node, node.input[index]))

    def tensor(self, node: onnx.NodeProto, name: str) -> str:
        """Return the graph's name of a tensor of ONNX."""
        if name in self._arrays and name not in self._names:
            value = self._float32(node, name)
            if value.ndim not in (2, 4) or len(value) != 1:
                raise self.refused(node, f"constant {name!r} is {value.shape}; possible: one image or vector, (1, ...)")
            self._names[name] = self.builder.add("constant", self._unique(name), [], {"value": value[0]})
        if name not in self._names:
            raise GraphError(f"node {self._label(node)!r} reads {name!r}, which nothing before it makes")
        return self._names[name]

    def widen(self, node: onnx.NodeProto, index: int, shape: Shape) -> None:
        """Give a constant that is added to a tensor of `shape` the axes that ONNX lets one leave out."""
        name, value = node.input[index], self.array(node, index)
        full = value.reshape((1,) * (1 + len(shape) - value.ndim) + value.shape)
        if full.ndim == 1 + len(shape) and full.shape[1:] == (1,) * len(shape):
            full = np.repeat(full, shape[0], axis=1)
        if full.ndim != 1 + len(shape) or len(full) != 1:
            raise self.refused(node, f"{name!r} is {value.shape}; possible: one number per channel or per element")
        self._arrays[name] = full

    def _float32(self, node: onnx.NodeProto, name: str) -> np.ndarray:
        value = self._arrays[name]
        if value.dtype != np.float32:
            raise self.refused(node, f"{name!r} is {value.dtype}; possible: float32")
        return value

    def refused(self, node: onnx.NodeProto, why: str) -> UnsupportedOperator:
        """Return the error for a node of a supported operator."""
        return UnsupportedOperator(f"node {self._label(node)!r} ({node.op_type}) cannot be imported: {why}")

    def _output(self, name: str) -> str:
        if name not in self._names:
            raise UnsupportedOperator(f"output {name!r} is a constant, or nothing makes it; possible: a node's result")
        return self._names[name]

    def _label(self, node: onnx.NodeProto) -> str:
        outputs = {one.name for one in self._proto.output}
        return node.output[0] if node.output[0] in outputs or not node.name else node.name

    def _unique(self, name: str) -> str:
        found = next(
            n for n in itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2))) if n not in self._taken
        )
        self._taken.add(found)
        return found


def _input_shape(one: onnx.ValueInfoProto) -> Shape:
    kind = one.type.tensor_type
    sizes = tuple(size.dim_value if size.HasField("dim_value") else None for size in kind.shape.dim)
    if kind.elem_type != onnx.TensorProto.FLOAT or len(sizes) not in (2, 4) or not all(sizes[1:]):
        text = " × ".join(str(size or "?") for size in sizes)
        raise UnsupportedOperator(
            f"input {one.name!r} is {onnx.TensorProto.DataType.Name(kind.elem_type)} of {text}; "
            "possible: FLOAT, batch × channels × height × width or batch × features, all but the batch known"
        )
    return sizes[1:]


def _refuse_others(importer: _Importer, node: onnx.NodeProto, given: dict, **only: Any) -> None:
    """Refuse attributes that have another value than the only one possible."""
    for name, value in only.items():
        found = given.get(name, value)
        found = found.decode() if isinstance(found, bytes) else list(found) if isinstance(value, list) else found
        if found != value:
            raise importer.refused(node, f"{name} is {found!r}; possible: {value!r}")


def _steps(importer: _Importer, node: onnx.NodeProto, given: dict, window: list[int]) -> dict[str, Any]:
    """Return padding and stride of windows; `auto_pad` is worked out."""
    stride = tuple(given.get("strides", (1, 1)))
    dilation = tuple(given.get("dilations", (1, 1)))
    if len(window) != 2:
        raise importer.refused(node, f"its windows have {len(window)} axes; possible: 2")
    padding, kind = tuple(given.get("pads", (0, 0, 0, 0))), given.get("auto_pad", b"NOTSET").decode()
    if kind == "VALID":
        padding = (0, 0, 0, 0)
    elif kind in ("SAME_UPPER", "SAME_LOWER"):
        less, more = same_padding(importer.shape(node)[1:], tuple(window), stride, dilation)
        padding = (*less, *more) if kind == "SAME_UPPER" else (*more, *less)
    return {"padding": padding, "stride": stride}


def _conv(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    _refuse_others(importer, node, given, group=1)
    weights = {"filters": importer.array(node, 1)}
    if importer.has(node, 2):
        weights["bias"] = importer.array(node, 2)
    steps = _steps(importer, node, given, list(weights["filters"].shape[2:]))
    importer.add(node, "conv", [node.input[0]], weights, **steps, dilation=tuple(given.get("dilations", (1, 1))))


def _batch_norm(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    _refuse_others(importer, node, given, training_mode=0, spatial=1)
    weights = {name: importer.array(node, 1 + i) for i, name in enumerate(("gamma", "beta", "mean", "variance"))}
    importer.add(node, "batch_norm", [node.input[0]], weights, epsilon=float(given.get("epsilon", 1e-5)))


def _add(importer: _Importer, node: onnx.NodeProto, _given: dict) -> None:
    constants = [i for i in range(2) if importer.is_constant(node.input[i])]
    if len(constants) == 1:
        importer.widen(node, constants[0], importer.shape(node, 1 - constants[0]))
    importer.add(node, "add", list(node.input))


def _concat(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    axes = len(importer.shape(node)) + 1
    if given["axis"] % axes != 1:
        raise importer.refused(node, f"axis is {given['axis']}; possible: the channels, 1")
    importer.add(node, "concat", list(node.input))


def _max_pool(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    _refuse_others(importer, node, given, ceil_mode=0, storage_order=0, dilations=[1, 1])
    window = tuple(given["kernel_shape"])
    importer.add(node, "max_pool", [node.input[0]], window=window, **_steps(importer, node, given, list(window)))


def _average_pool(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    _refuse_others(importer, node, given, ceil_mode=0, dilations=[1, 1])
    window = tuple(given["kernel_shape"])
    counted = bool(given.get("count_include_pad", 0))
    steps = _steps(importer, node, given, list(window))
    importer.add(node, "average_pool", [node.input[0]], window=window, count_padding=counted, **steps)


def _flatten(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    _refuse_others(importer, node, given, axis=1)
    importer.add(node, "flatten", [node.input[0]])


def _gemm(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    _refuse_others(importer, node, given, transA=0)
    matrix = importer.array(node, 1) if given.get("transB", 0) else importer.array(node, 1).T
    weights = {"matrix": given.get("alpha", 1.0) * matrix}
    if importer.has(node, 2):
        bias = given.get("beta", 1.0) * importer.array(node, 2)
        weights["bias"] = np.broadcast_to(bias.reshape(-1) if bias.size > 1 else bias.reshape(()), len(matrix))
    importer.add(node, "dense", [node.input[0]], weights)


def _matmul(importer: _Importer, node: onnx.NodeProto, _given: dict) -> None:
    if importer.is_constant(node.input[0]):
        raise importer.refused(node, "its first input is a constant; possible: the second")
    importer.add(node, "dense", [node.input[0]], {"matrix": importer.array(node, 1).T})


def _softmax(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    if given.get("axis", -1) not in (-1, 1):
        raise importer.refused(node, f"axis is {given['axis']}; possible: 1")
    importer.add(node, "softmax", [node.input[0]])


def _constant(importer: _Importer, node: onnx.NodeProto, given: dict) -> None:
    if "value" in given:
        importer.constant(node.output[0], onnx.numpy_helper.to_array(given["value"]))
    elif given.keys() & {"value_float", "value_floats"}:
        importer.constant(node.output[0], np.float32(next(iter(given.values()))))
    else:
        raise importer.refused(node, f"it holds {', '.join(given)}; possible: value, value_float, value_floats")


def _same(op: str) -> Callable[[_Importer, onnx.NodeProto, dict], None]:
    return lambda importer, node, _given: importer.add(node, op, [node.input[0]])


IMPORTED: dict[str, Callable[[_Importer, onnx.NodeProto, dict], None]] = {
    "Conv": _conv,
    "BatchNormalization": _batch_norm,
    "Relu": _same("relu"),
    "Add": _add,
    "Concat": _concat,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda importer, node, _: importer.add(
        node, "global_average_pool", [node.input[0]], keep_axes=True
    ),
    "Flatten": _flatten,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Softmax": _softmax,
    "Identity": _same("identity"),
    "Dropout": _same("dropout"),
    "Constant": _constant,
}
