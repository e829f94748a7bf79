"""From ONNX to a graph: the operators of onnx_operators.IMPORTED, and the settings of them that the graph has.

The first axis of every tensor is the batch, fixed or free; all that comes behind it is known. Weights are constants in
float32, or computed from constants, which ONNX's own evaluator does here. An operator that is not in IMPORTED, and that
ONNX defines as a function of others, is replaced by these. Everything else is refused by the operator's and the node's
name. Source of defaults: ONNX operator schemas. Where QuantizeLinear gives its least step, -128, there is -127 here,
since the lab's INT8 is symmetric: the one result that differs by more than rounding.
"""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.inliner import inline_local_functions, inline_selected_functions
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes

from kernels.fusion.exchange.onnx_operators import IMPORTED, SEVERAL_RESULTS, UnsupportedOperator
from kernels.fusion.graph import Graph
from kernels.fusion.graph.build import Builder
from kernels.fusion.graph.int8 import rounded_filters
from kernels.fusion.graph.operators import MOST_AXES, OPERATORS, Shape

__all__ = ["IMPORTED", "UnsupportedOperator", "import_onnx"]

# Stand for a free batch in what the model computes of shapes: a prime, so that nothing else is one, and the batch that
# models ask for, by which one sees what depends on it.
ANY_BATCH, OTHER_BATCH = 7919, 1
# Settings that are yes or no; what others mean, ONNX Runtime and ONNX's evaluator do not agree on.
CHOICES = ("allowzero", "ceil_mode", "count_include_pad", "keepdims", "noop_with_empty_axes", "transA", "transB")
MOST_COMPUTED = 2**28  # elements of a constant: a file of 100 bytes may ask for terabytes


def import_onnx(model: str | Path | onnx.ModelProto) -> Graph:
    """Return the graph of an ONNX model or file.

    A node keeps its name, but one that makes an output of the graph gets the output's. UnsupportedOperator names what
    cannot be imported; onnx.checker.ValidationError says that the model is no ONNX.
    """
    try:
        proto = model if isinstance(model, onnx.ModelProto) else onnx.load(str(model))
        onnx.checker.check_model(proto)
        proto = _inlined(proto)
        importer = Importer(proto.graph, _versions(proto))
    except (OSError, onnx.checker.ValidationError, UnsupportedOperator):
        raise
    except Exception as error:  # of protobuf, JSON, data elsewhere, a constant's bytes
        name = "the model" if isinstance(model, onnx.ModelProto) else model
        raise onnx.checker.ValidationError(f"{name} is no ONNX, or damaged ({error}): copy it again") from None
    for node in proto.graph.node:
        importer.node(node)
    return importer.finish()


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without calls of functions, its own and those of ONNX that are not imported as they are."""
    if model.functions:
        model = inline_local_functions(model)
    kept = {*IMPORTED, "Range"}  # a range is made of constants, and as a function a loop
    for _ in range(4):  # functions of functions
        version = _versions(model).get("", 1)
        unknown = {node.op_type for node in model.graph.node if node.domain in ("", "ai.onnx")} - kept
        calls = [name for name in sorted(unknown) if _is_function(name, version)]
        if not calls:
            return model
        model = infer_shapes(model)  # functions may depend on their inputs' types, those of constants, too
        model.graph.value_info.extend(
            onnx.helper.make_tensor_value_info(one.name, one.data_type, one.dims) for one in model.graph.initializer
        )
        for name in calls:
            try:
                model = inline_selected_functions(model, [("", name)], inline_schema_functions=True)
            except RuntimeError:  # a type that it does not find; the operator is refused by its name
                kept.add(name)
    return model


def _versions(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version of each set of operators; ONNX's own, which may be called ai.onnx, as ""."""
    return {one.domain if one.domain != "ai.onnx" else "": one.version for one in model.opset_import}


def _is_function(name: str, version: int) -> bool:
    if not onnx.defs.has(name):
        return False
    schema = onnx.defs.get_schema(name, version)
    return bool(schema.has_function or schema.has_context_dependent_function)


class Importer:
    """Walks through a model's nodes, which its operators' functions add to the graph."""

    def __init__(self, proto: onnx.GraphProto, opsets: dict[str, int]) -> None:
        self.builder, self.opset = Builder(proto.name or "onnx"), opsets.get("", 1)
        self._proto, self._opsets = proto, opsets
        for sparse in proto.sparse_initializer:
            raise UnsupportedOperator(f"constant {sparse.values.name!r} is sparse; possible: one with all its elements")
        self._arrays = {one.name: onnx.numpy_helper.to_array(one) for one in proto.initializer}
        self._elsewhere: dict[str, np.ndarray] = {}  # those of them that OTHER_BATCH changes, as they are with it
        self._names: dict[str, str] = {}  # from ONNX's names of tensors to the graph's
        self._scales: dict[str, tuple[np.ndarray, int]] = {}  # of weights that come in steps, with their axis
        self.steps: dict[str, tuple[str, float]] = {}  # tensors of INT8: of what in the graph, and the scale
        self._taken: set[str] = set()
        self._read = {name for node in proto.node for name in node.input if name} | {one.name for one in proto.output}
        inputs = [one for one in proto.input if one.name not in self._arrays]
        batches = {one.type.tensor_type.shape.dim[0].dim_value for one in inputs if one.type.tensor_type.shape.dim}
        self.batch = max(batches, default=0) or ANY_BATCH
        self.other_batch = OTHER_BATCH if self.batch == ANY_BATCH else self.batch
        for one in inputs:
            self._names[one.name] = self.builder.input(self._unique(one.name), self._input_shape(one))

    def node(self, node: onnx.NodeProto) -> None:
        """Import one operator; one whose inputs are all known is computed."""
        used = [name for name in node.output if name in self._read]
        if not used:
            return
        given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        known = all(name in self._arrays for name in node.input if name)
        if node.op_type == "DequantizeLinear" and known:
            axis = int(given.get("axis", 1)) if not given.get("block_size") else -1
            self._scales[node.output[0]] = self._arrays[node.input[1]], axis
        if known and not any(isinstance(value, onnx.GraphProto) for value in given.values()) and _always_same(node):
            self._evaluate(node)
            return
        if node.domain not in ("", "ai.onnx") or node.op_type not in IMPORTED:
            raise UnsupportedOperator(
                f"node {self._label(node)!r} is a {node.op_type}, which cannot be imported; "
                f"possible are {', '.join(sorted(IMPORTED))}, and what ONNX makes of these"
            )
        if used != list(node.output[:1]) and node.op_type not in SEVERAL_RESULTS:
            raise self.refused(node, "more results than its first are read; possible: the first alone")
        if odd := [name for name in CHOICES if given.get(name, 0) not in (0, 1)]:
            raise self.refused(node, f"{odd[0]} is {given[odd[0]]}; possible: 0 or 1")
        try:
            IMPORTED[node.op_type](self, node, given)
        except UnsupportedOperator:
            raise
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            # a GraphError, shapes that NumPy cannot join, settings that the operator does not have
            raise self.refused(node, str(error)) from None

    def finish(self) -> Graph:
        """Return the graph with ONNX's outputs."""
        outputs = [self._output(one.name) for one in self._proto.output]
        return self.builder.graph(*outputs)

    # -- what operators ask and do -------------------------------------------------------------------------

    def add(
        self,
        node: onnx.NodeProto,
        op: str,
        inputs: list[str],
        weights: dict[str, np.ndarray] | None = None,
        **attributes: Any,
    ) -> None:
        """Add a node of the graph for a node of ONNX. `inputs`: names in ONNX."""
        self.chain(node, [self.tensor(node, name) for name in inputs], (op, weights or {}, attributes))

    def chain(self, node: onnx.NodeProto, inputs: list[str], *steps: tuple, output: int = 0) -> None:
        """Add several nodes of the graph for one of ONNX, each of which reads what the one before it made.

        `inputs`: names in the graph, for the first. `steps`: (operator, weights, attributes), and perhaps names in the
        graph of what else it reads. Those that would change nothing are left out.
        """
        kept, shapes = [], [self.builder.shape(name) for name in inputs]
        for step in steps:
            if not _does_nothing(step, shapes[0]):
                op, weights, attributes, *others = step
                rule = OPERATORS[op]
                shapes = [*shapes, *map(self.builder.shape, others)]
                shapes = [rule.shape(shapes, {**rule.attributes, **attributes}, weights)]
                kept.append(step)
        label = self._label(node) if output == 0 else node.output[output]
        for i, (op, weights, attributes, *others) in enumerate(kept or [("identity", {}, {})], 1):
            name = self._unique(label if i >= len(kept) else f"{label}/{op}")
            inputs = [self.builder.add(op, name, [*inputs, *others], weights, **attributes)]
        self._names[node.output[output]] = inputs[0]

    def made(self, node: onnx.NodeProto, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of the graph on the way to a node's result, unless it would change nothing; return what it makes.

        `inputs`: names in the graph.
        """
        if _does_nothing((op, {}, attributes), self.builder.shape(inputs[0])):
            return inputs[0]
        return self.builder.add(op, self._unique(f"{self._label(node)}/{op}"), inputs, **attributes)

    def constant(self, node: onnx.NodeProto, value: np.ndarray) -> str:
        """Add a constant of one sample's shape; return its name in the graph."""
        return self.builder.add("constant", self._unique(f"{self._label(node)}/constant"), [], {"value": value})

    def know(self, name: str, value: np.ndarray, elsewhere: np.ndarray) -> None:
        """Note a tensor of ONNX that is known now. `elsewhere`: what it is with OTHER_BATCH for a free batch."""
        self._arrays[name] = value
        if elsewhere is not value and not np.array_equal(value, elsewhere):
            self._elsewhere[name] = elsewhere

    def depends_on_batch(self, node: onnx.NodeProto, index: int, first: int = 0) -> bool:
        """Return whether a free batch decides what a known input holds from element `first` on."""
        other = self._elsewhere.get(node.input[index])
        return other is not None and not np.array_equal(
            other.ravel()[first:], self._arrays[node.input[index]].ravel()[first:]
        )

    def is_constant(self, name: str) -> bool:
        """Return whether a tensor of ONNX is known."""
        return name in self._arrays

    def array(self, node: onnx.NodeProto, index: int) -> np.ndarray:
        """Return a weight: the input of that index, which must be a constant in float32."""
        value = self.number(node, index)
        if value.dtype != np.float32:
            raise self.refused(node, f"{node.input[index]!r} is {value.dtype}; possible: float32")
        return value

    def number(self, node: onnx.NodeProto, index: int) -> np.ndarray:
        """Return an input that must be a constant, of any type."""
        if node.input[index] not in self._arrays:
            raise self.refused(node, f"{node.input[index]!r} is computed; it must be a constant")
        if node.input[index] in self._elsewhere and node.op_type not in ("Reshape", "Expand", "Slice"):
            why = f"{node.input[index]!r} depends on the batch, which is free; possible: a model of a fixed batch"
            raise self.refused(node, why)
        return self._arrays[node.input[index]]

    def filter_scales(self, node: onnx.NodeProto, index: int, axis: int) -> dict[str, np.ndarray]:
        """Return the scale of each filter of a weight that was quantised, as a weight; none for others. `axis`: of its
        filters."""
        scale, along = self._scales.get(node.input[index], (np.zeros(0), 0))
        weight = np.moveaxis(self._arrays[node.input[index]], axis, 0)
        fits = scale.size == 1 or (scale.shape == weight.shape[:1] and along % weight.ndim == axis)
        if not fits or not (scale > 0).all():
            return {}
        scales = np.broadcast_to(scale.reshape(-1), weight.shape[:1])
        # Those of other types, or with a zero point, may lie on none of our steps.
        return {"filter_scales": scales} if np.array_equal(rounded_filters(weight, scales), weight) else {}

    def setting(self, node: onnx.NodeProto, given: dict, name: str, index: int) -> Any:
        """Return what older opsets have as an attribute and newer ones as a constant input, as lists; None if it is
        not there."""
        if name in given:
            return given[name]
        return self.number(node, index).reshape(-1).tolist() if self.has(node, index) else None

    def has(self, node: onnx.NodeProto, index: int) -> bool:
        """Return whether an optional input is there."""
        return len(node.input) > index and bool(node.input[index])

    def shape(self, node: onnx.NodeProto, index: int = 0) -> Shape:
        """Return the shape of an input, of one sample."""
        return self.builder.shape(self.tensor(node, node.input[index]))

    def axis(self, node: onnx.NodeProto, axis: int, axes: int) -> int:
        """Return an axis of ONNX among so many of one sample."""
        found = axis + 1 + axes if axis < 0 else axis
        if not 1 <= found <= axes:
            raise self.refused(node, f"axis is {axis}; possible: 1 to {axes}, since the batch's is left alone")
        return found - 1

    def tensor(self, node: onnx.NodeProto, name: str) -> str:
        """Return the graph's name of a tensor of ONNX."""
        if name in self._arrays and name not in self._names:
            value = self._arrays[name]
            if name in self._elsewhere:
                raise self.refused(node, f"{name!r} depends on the batch, which is free; possible: a fixed one")
            if value.dtype != np.float32 or not 2 <= value.ndim <= 1 + MOST_AXES or len(value) != 1 or not value.size:
                raise self.refused(
                    node,
                    f"constant {name!r} is {value.dtype} of {value.shape}; possible: float32, one sample of a batch, "
                    "(1, ...)",
                )
            self._names[name] = self.builder.add("constant", self._unique(name), [], {"value": value[0]})
        if name in self.steps:
            raise self.refused(node, f"it reads {name!r}, which is INT8; possible: a DequantizeLinear between")
        if name not in self._names:
            raise self.refused(node, f"it reads {name!r}, which nothing before it makes")
        return self._names[name]

    def refused(self, node: onnx.NodeProto, why: str) -> UnsupportedOperator:
        """Return the error for a node of a supported operator."""
        return UnsupportedOperator(f"node {self._label(node)!r} ({node.op_type}) cannot be imported: {why}")

    # -- inside --------------------------------------------------------------------------------------------

    def _evaluate(self, node: onnx.NodeProto) -> None:
        """Compute a node whose inputs are known, by ONNX's reference evaluator; of a free batch, for two."""
        inputs = {name: self._arrays[name] for name in node.input if name}
        others = {name: self._elsewhere[name] for name in inputs if name in self._elsewhere}
        values = self._computed(node, inputs)
        elsewhere = self._computed(node, inputs | others) if others else values
        for name, value in values.items():
            self.know(name, value, elsewhere[name])

    def _computed(self, node: onnx.NodeProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        types = {name: onnx.helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()}
        known = [onnx.helper.make_tensor_value_info(name, types[name], value.shape) for name, value in inputs.items()]
        names = [name for name in node.output if name]
        graph = onnx.helper.make_graph([node], "constants", known, [onnx.ValueInfoProto(name=name) for name in names])
        # The evaluator has it from 19 on, where it gained types and means what it did before.
        opsets = {**self._opsets, "": max(self.opset, 19 if node.op_type == "DequantizeLinear" else 1)}
        try:
            if (elements := _elements(graph, inputs, self._opsets)) > MOST_COMPUTED:
                raise ValueError(f"{elements:,} elements are more than {MOST_COMPUTED:,}")
            values = ReferenceEvaluator(graph, opsets=opsets).run(None, inputs)
        except Exception as error:  # whatever NumPy and the evaluator raise
            why = f"its inputs are constants, and ONNX's evaluator cannot compute it ({error})"
            raise self.refused(node, f"{why}; possible: a model in which its result is a constant") from None
        return dict(zip(names, map(np.asarray, values), strict=True))

    def _input_shape(self, one: onnx.ValueInfoProto) -> Shape:
        kind = one.type.tensor_type
        sizes = tuple(size.dim_value if size.HasField("dim_value") else None for size in kind.shape.dim)
        fits = 2 <= len(sizes) <= 1 + MOST_AXES and sizes[0] in (None, self.batch)
        fits = fits and all(size is not None and size > 0 for size in (self.batch, *sizes[1:]))
        if kind.elem_type != onnx.TensorProto.FLOAT or not fits:
            text = f"of {' × '.join('?' if size is None else str(size) for size in sizes)}" if sizes else "without axes"
            raise UnsupportedOperator(
                f"input {one.name!r} is {onnx.TensorProto.DataType.Name(kind.elem_type)} {text}; possible: FLOAT, "
                f"batch × 1 to {MOST_AXES} axes, all but the batch known, and one batch for all inputs"
            )
        return sizes[1:]

    def _output(self, name: str) -> str:
        if name not in self._names:
            why = "INT8" if name in self.steps else "a constant, or nothing makes it"
            raise UnsupportedOperator(f"output {name!r} is {why}; possible: a node's result in FLOAT")
        return self._names[name]

    def _label(self, node: onnx.NodeProto) -> str:
        outputs = {one.name for one in self._proto.output}
        return node.output[0] if {node.output[0], node.name} & outputs or not node.name else node.name

    def _unique(self, name: str) -> str:
        found = next(
            n for n in itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2))) if n not in self._taken
        )
        self._taken.add(found)
        return found


def _elements(graph: onnx.GraphProto, inputs: dict[str, np.ndarray], opsets: dict[str, int]) -> int:
    """Return how many elements the first result of a graph's one node has, as far as one can tell beforehand."""
    sized = onnx.GraphProto()
    sized.CopyFrom(graph)  # with what may be sizes
    sized.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in inputs.items() if a.size <= MOST_AXES + 1)
    imports = [onnx.helper.make_opsetid(*each) for each in opsets.items()]
    (result, *_) = infer_shapes(onnx.helper.make_model(sized, opset_imports=imports)).graph.output
    return math.prod(size.dim_value for size in result.type.tensor_type.shape.dim)


def _always_same(node: onnx.NodeProto) -> bool:
    """Return whether a node gives the same result whenever it runs."""
    return not node.op_type.startswith("Random") and node.op_type not in ("Bernoulli", "Multinomial", "Dropout")


def _does_nothing(step: tuple, shape: Shape) -> bool:
    """Return whether the first step of a chain leaves a tensor of `shape` as it is."""
    op, _, attributes, *_ = step
    if op == "transpose":
        return attributes["order"] == tuple(range(len(attributes["order"])))
    return op in ("reshape", "expand") and attributes["shape"] == shape
