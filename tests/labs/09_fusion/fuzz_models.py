"""Damages ONNX models and imports them: `python -m tests.labs.09_fusion.fuzz_models --files 2000 --seed N`.

A damaged model is refused by UnsupportedOperator or ONNX's ValidationError, or computes what ONNX's evaluator makes of
it (ONNX Runtime ends in a segmentation fault at some). Anything else is a failure, and ends with exit code 1, its seed
and its number. What the evaluator cannot run is not compared, and no result that leaves float32 behind, such as a sum
of 1e38.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from kernels.fusion.exchange.onnx_import import IMPORTED, UnsupportedOperator, import_onnx
from kernels.fusion.graph.interpret import run
from kernels.fusion.passes.optimise import fuse

from .real_networks import Network

FILES, SEED = 2000, 30
MOST = 10**6  # elements of a tensor that is computed
HOSTILE = (0, -1, 1, 2, 3, 4, 5, 7, 255, 2**20, 2**31 - 1, 2**31, 2**62, -(2**63), 2**63 - 1)
NUMBERS = (0.0, -1.0, math.nan, math.inf, -math.inf, 1e38, 1e-45)
Damage = Callable[[onnx.ModelProto, np.random.Generator], None]


def convolutions(rng: np.random.Generator) -> onnx.ModelProto:
    """Groups, a stride, a pool of either kind, a gate, a split and a concatenation."""
    net = Network((4, 9, 9), rng)
    x = net.add("Relu", [net.convolution("x", 4, 6, 3, stride=2, group=2)])
    x = net.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    gate = net.add("Sigmoid", [net.add("ReduceMean", [x], np.int64([2, 3]), keepdims=1)])
    x = net.add("AveragePool", [net.add("Mul", [x, gate])], kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    x = net.add("Slice", [x], *(np.int64([n]) for n in (-1, -6, 1, -2)))
    return net.model(x, 4)


def rows(rng: np.random.Generator) -> onnx.ModelProto:
    """What an exporter makes of an encoder: shapes that are computed, reshapes, transposes, norms and a softmax."""
    net = Network((4, 6), rng)
    batch = net.add("Gather", [net.add("Shape", ["x"])], np.array([0]), axis=0)
    shape = net.add("Concat", [batch, net.add("Constant", [], value_ints=[4, 2, -1])], axis=0)
    x = net.add("Transpose", [net.add("Reshape", ["x", shape])], perm=[0, 2, 1, 3])
    x = net.add("Softmax", [net.add("MatMul", [x, net.add("Transpose", [x], perm=[0, 1, 3, 2])])], axis=-1)
    x = net.add("Gather", [x], np.int64([[0, 2]]), axis=3)
    x = net.add("LayerNormalization", [net.add("Flatten", [x])], (16,), (16,))
    return net.model(net.add("Gemm", [x], (3, 16), (3,), transB=1, alpha=0.5), 2)


MODELS = (convolutions, rows)


def _one(rng: np.random.Generator, given: Any) -> Any:
    return given[int(rng.integers(len(given)))]


def _names(model: onnx.ModelProto) -> list[str]:
    made = [name for node in model.graph.node for name in node.output]
    return [*made, *(one.name for one in model.graph.initializer), "x", "", "nowhere"]


def _setting(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    one = _one(rng, [one for node in model.graph.node for one in node.attribute])
    one.i, one.f = _one(rng, HOSTILE), _one(rng, NUMBERS)
    if one.ints and rng.random() < 0.5:
        one.ints[int(rng.integers(len(one.ints)))] = one.i
    elif one.type == one.INTS:
        one.ints[:] = [_one(rng, HOSTILE) for _ in range(int(rng.integers(5)))]


def _weight(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    weight = _one(rng, model.graph.initializer)
    with contextlib.suppress(
        ValueError, IndexError, OverflowError, TypeError
    ):  # where other damage leaves nothing to read
        values = numpy_helper.to_array(weight).copy()
        values.flat[int(rng.integers(values.size))] = _one(rng, NUMBERS if values.dtype.kind == "f" else HOSTILE)
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))


def _weights_kind(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    weight = _one(rng, model.graph.initializer)
    weight.data_type = int(rng.integers(26))


def _weights_shape(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    weight, turned = _one(rng, model.graph.initializer), rng.random() < 0.5
    weight.dims[:] = [*weight.dims][::-1] if turned else [_one(rng, HOSTILE) for _ in range(int(rng.integers(5)))]


def _input(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    node = _one(rng, [node for node in model.graph.node if node.input])
    node.input[int(rng.integers(len(node.input)))] = _one(rng, _names(model))


def _output(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    _one(rng, model.graph.node).output[0] = _one(rng, _names(model))


def _operator(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    _one(rng, model.graph.node).op_type = _one(rng, [*sorted(IMPORTED), "If", "Loop", "Tile", "ConstantOfShape", ""])


def _arity(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    node = _one(rng, model.graph.node)
    node.input[:] = [*node.input[:-1]] if rng.random() < 0.5 else [*node.input, _one(rng, _names(model))]


def _order(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    nodes = [*model.graph.node]
    a, b = rng.integers(len(nodes), size=2)
    nodes[a], nodes[b] = nodes[b], nodes[a]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies[1:] if rng.random() < 0.3 else copies)


def _size(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    _one(rng, model.graph.input[0].type.tensor_type.shape.dim).dim_value = _one(rng, HOSTILE)


def _version(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    model.opset_import[0].version = int(rng.integers(30))


DAMAGE: tuple[Damage, ...] = (
    *(_setting, _setting, _weight, _weights_kind, _weights_shape),
    *(_input, _output, _operator, _arity, _order, _size, _version),
)


def _damaged_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    found, kind = bytearray(data), rng.integers(3)
    place = int(rng.integers(len(found)))
    if kind == 0:
        found[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del found[place:]
    else:
        found[place : place + int(rng.integers(20))] = rng.bytes(int(rng.integers(20)))
    return bytes(found)


def example(number: int, seed: int, folder: Path) -> onnx.ModelProto | Path:
    """The damaged model of a number; each fourth is a file whose bytes are damaged."""
    rng = np.random.default_rng((seed, number))
    model = _one(rng, MODELS)(rng)
    if number % 4:
        for _ in range(int(rng.integers(1, 3))):
            _one(rng, DAMAGE)(model, rng)
        return model
    path = folder / "model.onnx"
    path.write_bytes(_damaged_bytes(model.SerializeToString(), rng))
    return path


def outcome(model: onnx.ModelProto | Path) -> str:
    """Import a model, and compare its results, of its graph as it is and fused, with those of ONNX's evaluator."""
    try:
        graph = import_onnx(model)
    except (UnsupportedOperator, onnx.checker.ValidationError) as error:
        return f"refused: {type(error).__name__}"
    shapes = [tensor.shape for tensor in graph.tensors.values()]
    if max(map(math.prod, shapes)) > MOST:
        return "imported, large"
    model = model if isinstance(model, onnx.ModelProto) else onnx.load(str(model))
    batch = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value or 2
    if batch > 8:
        return "imported, large"
    given = [np.random.default_rng(1).normal(size=(batch, *graph.tensors[n].shape)).astype("f") for n in graph.inputs]
    with np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
        results = [run(each, *given) for each in (graph, fuse(graph))]
    try:
        weights = {one.name for one in model.graph.initializer}
        names = [one.name for one in model.graph.input if one.name not in weights]
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            expected = ReferenceEvaluator(model).run(None, dict(zip(names, given, strict=True)))
    except Exception:  # it says in many ways what it cannot run
        return "imported, not compared"
    for name, exact in zip(graph.outputs, expected, strict=True):
        if not np.isfinite(exact).all() or abs(exact).max(initial=0) > 1e30:
            return "imported, not compared"
        for found in results:
            assert found[name].shape == exact.shape, f"{found[name].shape}, and {exact.shape} by ONNX"
            np.testing.assert_allclose(found[name], exact, rtol=1e-3, atol=1e-3 * max(1, abs(exact).max(initial=0)))
    return "imported, equal"


def fuzz(files: int = FILES, seed: int = SEED) -> tuple[Counter[str], list[str]]:
    """Import so many damaged models; return how often each outcome came, and the failures."""
    counts, failures = Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(files):
            try:
                counts[outcome(example(number, seed, Path(folder)))] += 1
            except Exception as error:
                failures.append(f"model {number} of seed {seed}: {type(error).__name__}: {error}")
    return counts, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=SEED)
    given, before = parser.parse_args(), time.process_time()
    counts, failures = fuzz(given.files, given.seed)
    print(*failures, sep="\n")
    print(f"seed {given.seed}: {dict(counts)}, {len(failures)} failures, {time.process_time() - before:.0f} CPU s")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
