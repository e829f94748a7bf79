"""ONNX's operators as the graph has them: by name, a function that adds what a node needs.

Most are one operator of the graph, or several in a chain: since reshapes cost nothing, an operator along one axis is
one of rows, or of an image, with a reshape or a transpose around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from kernels.fusion.graph.build import same_padding
from kernels.fusion.graph.functions import MOST, UNARY
from kernels.fusion.graph.operators import MOST_AXES, Shape, channel_axis

if TYPE_CHECKING:
    from kernels.fusion.exchange.onnx_import import Importer

Import = Callable[["Importer", onnx.NodeProto, dict], None]
Step = tuple[str, dict, dict]
MOST_SIDE = 2**12  # of windows, strides and padding, as in a plan's file


class UnsupportedOperator(ValueError):
    """An operator, or a setting of one, that cannot be imported: the message names the operator and the node."""


def _only(importer: Importer, node: onnx.NodeProto, given: dict, **only: Any) -> None:
    """Refuse attributes that have another value than the only one possible."""
    for name, value in only.items():
        found = given.get(name, value)
        found = found.decode() if isinstance(found, bytes) else list(found) if isinstance(value, list) else found
        if found != value:
            raise importer.refused(node, f"{name} is {found!r}; possible: {value!r}")


def _reshape(shape: Iterable[int]) -> Step:
    return "reshape", {}, {"shape": tuple(shape)}


def _transpose(order: Iterable[int]) -> Step:
    return "transpose", {}, {"order": tuple(order)}


def _run(importer: Importer, node: onnx.NodeProto, *steps: tuple, output: int = 0) -> None:
    """Add a chain that begins with the node's first input."""
    importer.chain(node, [importer.tensor(node, node.input[0])], *steps, output=output)


# -- of elements ------------------------------------------------------------------------------------------------------


def _unary(op: str) -> Import:
    names = {"alpha": "alpha", "beta": "beta", "gamma": "beta"}  # ONNX's and the graph's

    def imported(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
        numbers = {names[name]: float(value) for name, value in given.items() if name in names}
        importer.add(node, op, [node.input[0]], **numbers if op in UNARY else {})

    return imported


def _clip(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    least, most = (importer.setting(node, given, name, 1 + i) for i, name in enumerate(("min", "max")))
    bounds = [float(np.ravel(other if bound is None else bound)[0]) for bound, other in ((least, -MOST), (most, MOST))]
    if np.isfinite(bounds).all():
        importer.add(node, "clip", [node.input[0]], alpha=bounds[0], beta=bounds[1])
        return
    # One that is infinite lets infinity pass; one that is missing is the largest number.
    shape = (1,) * len(importer.shape(node))
    finite = [
        (op, np.full(shape, bound)) for op, bound in zip(("max", "min"), bounds, strict=True) if abs(bound) <= MOST
    ]
    _run(importer, node, *((op, {}, {}, importer.constant(node, bound)) for op, bound in finite))


def _gelu(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    importer.add(node, "gelu_tanh" if given.get("approximate", b"none") == b"tanh" else "gelu", [node.input[0]])


def _dropout(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    _only(importer, node, given, is_test=1)
    if importer.has(node, 2) and np.any(importer.number(node, 2)):
        raise importer.refused(node, "training_mode is true; possible: false, as in inference")
    importer.add(node, "dropout", [node.input[0]])


def _cast(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    if given["to"] != onnx.TensorProto.FLOAT:
        name = onnx.TensorProto.DataType.Name(given["to"])
        raise importer.refused(node, f"to is {name}; possible: FLOAT, since all that is computed is float32")
    importer.add(node, "identity", [node.input[0]])


def _quantised(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    scale, zero = importer.array(node, 1), importer.number(node, 2) if importer.has(node, 2) else np.zeros(())
    kind = zero.dtype if importer.has(node, 2) else given.get("output_dtype", onnx.TensorProto.UINT8)
    if scale.size != 1 or not scale > 0 or np.any(zero) or kind not in (np.dtype(np.int8), onnx.TensorProto.INT8):
        why = f"{scale.size} scales from {scale.min()} on, zero points of {np.unique(zero).tolist()}, {kind}"
        raise importer.refused(node, f"it has {why}; possible: one scale above 0, a zero point of 0, int8")
    importer.steps[node.output[0]] = importer.tensor(node, node.input[0]), float(scale.item())


def _dequantised(importer: Importer, node: onnx.NodeProto, _given: dict) -> None:
    if node.input[0] not in importer.steps:
        raise importer.refused(
            node, f"{node.input[0]!r} is computed; possible: a QuantizeLinear's result, or a constant"
        )
    tensor, scale = importer.steps[node.input[0]]
    zero = importer.number(node, 2) if importer.has(node, 2) else np.zeros(())
    if importer.array(node, 1).ravel().tolist() != [scale] or np.any(zero):
        raise importer.refused(node, "its scale or zero point is another than its QuantizeLinear's; possible: the same")
    importer.chain(node, [tensor], ("fake_quantise", {}, {"alpha": scale}))


def _constant_like(importer: Importer, node: onnx.NodeProto, index: int, shape: Shape) -> np.ndarray:
    """Return a constant that is joined to a tensor of `shape` with all its axes; one number, for each channel."""
    value = importer.array(node, index)
    if value.size == 1 and value.ndim <= 1 + len(shape):
        ones = [1] * len(shape)
        ones[channel_axis(shape)] = shape[channel_axis(shape)] if len(shape) <= 3 else 1
        return np.full(ones, value.item(), np.float32)
    full = value.reshape((1,) * (1 + len(shape) - value.ndim) + value.shape)
    if full.ndim != 1 + len(shape) or len(full) != 1:
        name = node.input[index]
        raise importer.refused(node, f"{name!r} is {value.shape}; possible: what fits each sample of {shape}")
    return full[0]


def _binary(op: str) -> Import:
    """One of two elements, or of more in a row. What is a constant is subtracted or divided by as it is added or
    multiplied by: passes know these."""
    inverse = {"sub": ("add", np.negative), "div": ("mul", np.reciprocal)}

    def imported(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
        _only(importer, node, given, broadcast=0, fmod=0)
        constants = [i for i, name in enumerate(node.input) if importer.is_constant(name)]
        shapes = [importer.shape(node, i) for i in range(len(node.input)) if i not in constants]
        shape = max(shapes, key=lambda one: (len(one), math.prod(one)))
        if any(len(one) != len(shape) for one in shapes):
            raise importer.refused(
                node, f"it joins samples of {' and '.join(map(str, shapes))}; possible: as many axes"
            )
        used, names = op, []
        for i, name in enumerate(node.input):
            if i not in constants:
                names.append(importer.tensor(node, name))
                continue
            value = _constant_like(importer, node, i, shape)
            if i == 1 and op in inverse and (op == "sub" or _has_reciprocals(value)):
                used, inverted = inverse[op]
                value = inverted(value)
            names.append(importer.constant(node, value))
        first, *others = names
        importer.chain(node, [first], *((used, {}, {}, other) for other in others))

    return imported


def _has_reciprocals(value: np.ndarray) -> bool:
    """Return whether each number and its reciprocal can be told from 0 on a GPU, where subnormal numbers are 0."""
    least = float(np.finfo(np.float32).tiny)
    return bool(((abs(value) >= least) & (abs(value) <= 1 / least)).all())


def _where(importer: Importer, node: onnx.NodeProto, _given: dict) -> None:
    condition = importer.number(node, 0)
    if condition.any() != condition.all():
        raise importer.refused(node, "its condition differs from element to element; possible: one for all")
    chosen, other = node.input[1:] if condition.all() else node.input[2:0:-1]
    tensor = importer.tensor(node, chosen)
    shapes = [
        condition.shape,
        *[importer.array(node, list(node.input).index(other)).shape] * importer.is_constant(other),
    ]
    full = 1, *importer.builder.shape(tensor)
    if np.broadcast_shapes(full, *shapes) != full or not importer.is_constant(other):
        raise importer.refused(
            node, "what it does not take is computed, or larger; possible: a constant as large, or less"
        )
    importer.chain(node, [tensor], ("identity", {}, {}))


# -- of images --------------------------------------------------------------------------------------------------------


def _of_image(importer: Importer, node: onnx.NodeProto) -> tuple[Shape, bool]:
    """Return the first input's shape as an image, and whether it was a line of pixels, (channels, length)."""
    shape = importer.shape(node)
    if len(shape) not in (2, 3):
        raise importer.refused(node, f"a sample is {shape}; possible: an image, or a line of pixels with channels")
    return (shape[0], 1, shape[1]) if len(shape) == 2 else shape, len(shape) == 2


def _windows(importer: Importer, node: onnx.NodeProto, given: dict, window: Sequence[int]) -> dict[str, Any]:
    """Return window, padding, stride and dilation, of images; `auto_pad` and `ceil_mode` are worked out."""
    image, line = _of_image(importer, node)
    if len(window) != 2 - line:
        raise importer.refused(node, f"its windows have {len(window)} axes; possible: {2 - line}")
    window, stride, dilation = (
        (1, *given.get(name, default)) if line else tuple(given.get(name, default))
        for name, default in (("", window), ("strides", [1] * len(window)), ("dilations", [1] * len(window)))
    )
    pads, kind = given.get("pads", [0] * 2 * len(window[line:])), given.get("auto_pad", b"NOTSET").decode()
    sides, edges = (*window, *stride, *dilation), 4 - 2 * line
    if len(sides) != 6 or len(pads) != edges or min(sides) < 1 or min(pads) < 0 or max(*sides, *pads) > MOST_SIDE:
        why = f"window, stride and dilation are {window}, {stride} and {dilation}, pads are {list(pads)}"
        raise importer.refused(node, f"{why}; possible: {edges} pads of 0 or more, all others above, up to {MOST_SIDE}")
    if kind not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise importer.refused(node, f"auto_pad is {kind!r}; possible: NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    padding = (0, pads[0], 0, pads[1]) if line else tuple(pads)
    if kind == "VALID":
        padding = (0, 0, 0, 0)
    elif kind in ("SAME_UPPER", "SAME_LOWER"):
        less, more = same_padding(image[1:], window, stride, dilation)
        padding = (*less, *more) if kind == "SAME_UPPER" else (*more, *less)
    if given.get("ceil_mode", 0):
        more = [_missing(image[1 + i], *(a[i] for a in (window, stride, dilation)), padding[i::2]) for i in range(2)]
        if any(more) and given.get("count_include_pad", 0):
            raise importer.refused(node, "ceil_mode and count_include_pad are 1; possible: one of them")
        padding = *padding[:2], padding[2] + more[0], padding[3] + more[1]
    return {"window": window, "padding": padding, "stride": stride, "dilation": dilation}


def _missing(size: int, window: int, stride: int, dilation: int, padding: tuple[int, ...]) -> int:
    """Return pixels that the last window lacks where ceil_mode has it begin within the image."""
    extent, padded = dilation * (window - 1) + 1, size + sum(padding)
    count = -(-(padded - extent) // stride) + 1
    if (count - 1) * stride >= size + padding[0]:
        count -= 1
    return max((count - 1) * stride + extent - padded, 0)


def _image_step(importer: Importer, node: onnx.NodeProto, op: str, weights: dict, attributes: dict) -> None:
    """Add a convolution or pool, of a line of pixels as of an image of one row."""
    image, line = _of_image(importer, node)
    step = op, weights, attributes
    if not line:
        _run(importer, node, step)
        return
    (_, left, _, right), across = attributes["padding"], attributes["stride"][1]
    window = attributes["window"] if "window" in attributes else weights["filters"].shape[2:]
    extent = attributes.get("dilation", (1, 1))[1] * (window[1] - 1) + 1
    columns = (image[2] + left + right - extent) // across + 1
    channels = len(weights["filters"]) if weights else image[0]
    _run(importer, node, _reshape(image), step, _reshape((channels, columns)))


def _conv(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    filters = importer.array(node, 1)
    about = _windows(importer, node, given, filters.shape[2:])
    about.pop("window")
    image, _ = _of_image(importer, node)
    if image[0] != filters.shape[1] * given.get("group", 1):
        groups = given.get("group", 1)
        raise importer.refused(node, f"{image[0]} channels in {groups} groups meet filters of {filters.shape[1]}")
    weights = {"filters": filters.reshape(*filters.shape[:2], *(1,) * (4 - filters.ndim), *filters.shape[2:])}
    weights |= importer.filter_scales(node, 1, 0)
    if importer.has(node, 2):
        weights["bias"] = importer.array(node, 2)
    _image_step(importer, node, "conv", weights, about)


def _pool(op: str) -> Import:
    def imported(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
        _only(importer, node, given, storage_order=0)
        about = _windows(importer, node, given, given["kernel_shape"])
        if any(step != 1 for step in about.pop("dilation")):
            raise importer.refused(node, f"dilations are {given['dilations']}; possible: 1")
        if op == "average_pool":
            about["count_padding"] = bool(given.get("count_include_pad", 0))
            shape, padding = importer.shape(node), about["padding"]
            uncounted = not (any(padding) and about["count_padding"])
            if len(shape) == 3 and uncounted and all(map(_sees_all, shape[1:], *_by_side(about))):
                importer.add(node, "global_average_pool", [node.input[0]], keep_axes=True)
                return
        _image_step(importer, node, op, {}, about)

    return imported


def _by_side(about: dict[str, Any]) -> tuple[Sequence[int], ...]:
    return about["padding"][:2], about["padding"][2:], about["window"], about["stride"]


def _sees_all(side: int, before: int, after: int, window: int, step: int) -> bool:
    """Return whether there is one window along an axis, with all pixels in it."""
    return side + before <= window and before + side + after - window < step


def _global_pool(op: str) -> Import:
    def imported(importer: Importer, node: onnx.NodeProto, _given: dict) -> None:
        shape = importer.shape(node)
        if op == "reduce_mean" and len(shape) == 3:
            importer.add(node, "global_average_pool", [node.input[0]], keep_axes=True)
        else:
            ones = (shape[0], *[1] * (len(shape) - 1))
            _run(importer, node, _reshape((shape[0], math.prod(shape[1:]))), (op, {}, {}), _reshape(ones))

    return imported


def _batch_norm(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    _only(importer, node, given, training_mode=0, spatial=1, is_test=1)
    weights = {name: importer.array(node, 1 + i) for i, name in enumerate(("gamma", "beta", "mean", "variance"))}
    step = "batch_norm", weights, {"epsilon": float(given.get("epsilon", 1e-5))}
    shape = importer.shape(node)
    image = shape if len(shape) == 1 else (shape[0], math.prod(shape[1:-1]), shape[-1])
    _run(importer, node, _reshape(image), step, _reshape(shape))


def _instance_norm(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shape = importer.shape(node)
    rows = shape[0], math.prod(shape[1:])
    ones = {"gamma": np.ones(rows[1]), "beta": np.zeros(rows[1])}
    gamma, beta = (importer.constant(node, importer.array(node, 1 + i)[:, None]) for i in range(2))
    norm = "layer_norm", ones, {"epsilon": float(given.get("epsilon", 1e-5))}
    steps = norm, ("mul", {}, {}, gamma), ("add", {}, {}, beta)
    _run(importer, node, _reshape(rows), *steps, _reshape(shape))


def _lrn(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shape = importer.shape(node)
    numbers = {name: float(given[name]) for name in ("alpha", "beta", "bias") if name in given}
    image = shape[0], math.prod(shape[1:-1]), shape[-1]
    _run(importer, node, _reshape(image), ("lrn", {}, {"size": given["size"], **numbers}), _reshape(shape))


# -- of rows ----------------------------------------------------------------------------------------------------------


def _last(shape: Shape, axes: Sequence[int]) -> tuple[list[Step], list[Step]]:
    """Return what brings these axes to the end, as one, and what brings the result, of the same shape, back."""
    others = [axis for axis in range(len(shape)) if axis not in axes]
    order = [*others, *sorted(axes)]
    turned = [shape[axis] for axis in order]
    rows = *(shape[axis] for axis in others), math.prod(shape[axis] for axis in axes)
    back = [order.index(axis) for axis in range(len(shape))]
    return [_transpose(order), _reshape(rows)], [_reshape(turned), _transpose(back)]


def _softmax_rows(importer: Importer, node: onnx.NodeProto, given: dict) -> tuple[list[Step], list[Step]]:
    """Return what makes rows of the axis, or axes, of a softmax, and what brings the result back."""
    shape = importer.shape(node)
    axis = importer.axis(node, given.get("axis", 1 if importer.opset < 13 else -1), len(shape))
    return _last(shape, [axis] if importer.opset >= 13 else range(axis, len(shape)))


def _softmax(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    before, after = _softmax_rows(importer, node, given)
    _run(importer, node, *before, ("softmax", {}, {}), *after)


def _log_softmax(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    """Less the largest, less log Σ exp of that: a probability may be 0 where its logarithm is a number."""
    before, after = _softmax_rows(importer, node, given)
    rows = importer.tensor(node, node.input[0])
    for op, _, attributes in before:
        rows = importer.made(node, op, rows, **attributes)
    rows = importer.made(node, "sub", rows, importer.made(node, "reduce_max", rows))
    total = importer.made(node, "reduce_sum", importer.made(node, "exp", rows))
    importer.chain(node, [rows], ("sub", {}, {}, importer.made(node, "log", total)), *after)


def _layer_norm(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shape = importer.shape(node)
    axis = importer.axis(node, given.get("axis", -1), len(shape))
    rows = *shape[:axis], math.prod(shape[axis:])
    gamma = np.broadcast_to(importer.array(node, 1), shape[axis:]).reshape(-1)
    beta = np.broadcast_to(importer.array(node, 2), shape[axis:]).reshape(-1) if importer.has(node, 2) else 0 * gamma
    norm = "layer_norm", {"gamma": gamma, "beta": beta}, {"epsilon": float(given.get("epsilon", 1e-5))}
    _run(importer, node, _reshape(rows), norm, _reshape(shape))


def _reduce(op: str) -> Import:
    def imported(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
        shape = importer.shape(node)
        axes = importer.setting(node, given, "axes", 1)
        if not axes and given.get("noop_with_empty_axes", 0):
            importer.add(node, "identity", [node.input[0]])
            return
        found = sorted(importer.axis(node, axis, len(shape)) for axis in (axes or range(1 + len(shape))))
        keep = bool(given.get("keepdims", 1))
        result = [1 if axis in found else size for axis, size in enumerate(shape) if keep or axis not in found]
        if not result:
            raise importer.refused(node, "nothing but the batch is left; possible: keepdims of 1")
        if op == "reduce_mean" and len(shape) == 3 and found == [1, 2]:
            importer.add(node, "global_average_pool", [node.input[0]], keep_axes=keep)
            return
        before, _ = _last(shape, found)
        _run(importer, node, *before, (op, {}, {}), _reshape(result))

    return imported


def _dense(importer: Importer, node: onnx.NodeProto, matrix: np.ndarray, bias: dict[str, np.ndarray]) -> None:
    """Add a dense layer of the last axis. `matrix`: (features, outputs)."""
    shape = importer.shape(node)
    rows = shape if len(shape) <= 2 else (math.prod(shape[:-1]), shape[-1])
    step = "dense", {"matrix": matrix.T, **bias}, {}
    _run(importer, node, _reshape(rows), step, _reshape((*shape[:-1], matrix.shape[1])))


def _gemm(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    _only(importer, node, given, transA=0)
    matrix = importer.array(node, 1).T if given.get("transB", 0) else importer.array(node, 1)
    weights = importer.filter_scales(node, 1, 0 if given.get("transB", 0) else 1)
    if given.get("alpha", 1.0) != 1:
        weights = {}
    if importer.has(node, 2):
        bias = importer.array(node, 2)
        if bias.ndim == 2 and len(bias) != 1:
            raise importer.refused(node, f"C is {bias.shape}, a number for each sample; possible: one for each output")
        weights["bias"] = given.get("beta", 1.0) * np.broadcast_to(bias.reshape(-1), matrix.shape[1])
    _dense(importer, node, given.get("alpha", 1.0) * matrix, weights)


def _matmul(importer: Importer, node: onnx.NodeProto, _given: dict) -> None:
    if importer.is_constant(node.input[0]):
        raise importer.refused(node, "its first input is a constant; possible: the second")
    if importer.is_constant(node.input[1]):
        matrix = importer.array(node, 1)
        if 2 < matrix.ndim <= 1 + len(importer.shape(node)) and math.prod(matrix.shape[:-2]) == 1:
            matrix = matrix.reshape(matrix.shape[-2:])
        if matrix.ndim != 2:
            raise importer.refused(node, f"its second input is {matrix.shape}; possible: one matrix")
        _dense(importer, node, matrix, importer.filter_scales(node, 1, 1) if importer.number(node, 1).ndim == 2 else {})
        return
    shapes = [importer.shape(node, i) for i in range(2)]
    if min(map(len, shapes)) < 2:
        raise importer.refused(node, "it adds up along the batch; possible: matrices of each sample")
    importer.add(node, "matmul", list(node.input))


# -- of shapes --------------------------------------------------------------------------------------------------------


def _to_shape(importer: Importer, node: onnx.NodeProto, full: Sequence[int]) -> None:
    """Add a reshape. `full`: with the batch, and perhaps with one -1."""
    shape = importer.shape(node)
    elements, known = importer.batch * math.prod(shape), math.prod(size for size in full if size != -1)
    sizes = [elements // known if size == -1 and known else int(size) for size in full]
    if len(sizes) < 2 or sizes[0] != importer.batch or math.prod(sizes) != elements:
        raise importer.refused(
            node, f"it makes {tuple(full)} of a batch of {shape}; possible: what leaves samples whole"
        )
    if len(sizes) > 1 + MOST_AXES:
        raise importer.refused(node, f"its result has {len(sizes)} axes; possible: up to {1 + MOST_AXES}")
    _run(importer, node, _reshape(sizes[1:]))


def _reshaped(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    full = [importer.batch, *importer.shape(node)]
    wanted = importer.setting(node, given, "shape", 1)
    if importer.has(node, 1) and importer.depends_on_batch(node, 1, 1):
        raise importer.refused(node, "another axis than the batch's depends on the batch; possible: a fixed one")
    copied = not given.get("allowzero", 0)
    _to_shape(
        importer, node, [full[i] if size == 0 and copied and i < len(full) else size for i, size in enumerate(wanted)]
    )


def _flatten(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shape = importer.shape(node)
    if importer.axis(node, given.get("axis", 1), len(shape)) != 0:
        raise importer.refused(node, f"axis is {given['axis']}; possible: 1")
    importer.add(node, "flatten", [node.input[0]])


def _squeeze(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shape, axes = importer.shape(node), importer.setting(node, given, "axes", 1)
    if axes is None and importer.batch == 1:
        raise importer.refused(node, "it names no axes, and so takes the batch's away; possible: others named")
    gone = [i for i, n in enumerate(shape) if n == 1] if axes is None else []
    gone += [importer.axis(node, axis, len(shape)) for axis in axes or []]
    _to_shape(importer, node, [importer.batch, *(n for i, n in enumerate(shape) if i not in gone)])


def _unsqueeze(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shape, axes = importer.shape(node), importer.setting(node, given, "axes", 1)
    places = {importer.axis(node, axis, len(shape) + len(axes)) for axis in axes}
    rest = iter(shape)
    _to_shape(
        importer, node, [importer.batch, *(1 if i in places else next(rest) for i in range(len(shape) + len(axes)))]
    )


def _transposed(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    axes = len(importer.shape(node))
    order = given.get("perm", list(range(axes, -1, -1)))
    if order[0] != 0:
        raise importer.refused(node, f"perm is {list(order)}; possible: 0 first, the batch's axis")
    _run(importer, node, _transpose(axis - 1 for axis in order[1:]))


def _shape(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    full = [importer.batch, *importer.shape(node)]
    part = slice(given.get("start", 0), given.get("end", len(full)))
    other = [importer.other_batch, *full[1:]]
    importer.know(node.output[0], *(np.array(sizes[part], np.int64) for sizes in (full, other)))


def _concat(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shapes = [importer.shape(node, i) for i in range(len(node.input))]
    shape = shapes[0]
    axis = importer.axis(node, given["axis"], len(shape))
    if any((*one[:axis], *one[axis + 1 :]) != (*shape[:axis], *shape[axis + 1 :]) for one in shapes):
        raise importer.refused(node, f"samples of {' and '.join(map(str, shapes))} differ in more than axis {axis + 1}")
    names = [importer.tensor(node, name) for name in node.input]
    if len(shape) <= 3 and axis == channel_axis(shape):
        importer.chain(node, names, ("concat", {}, {}))
        return
    above, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    rows = [
        importer.made(node, "reshape", name, shape=(above, one[axis] * inner))
        for name, one in zip(names, shapes, strict=True)
    ]
    whole = *shape[:axis], sum(one[axis] for one in shapes), *shape[axis + 1 :]
    importer.chain(node, rows, ("concat", {}, {}), _reshape(whole))


def _part(shape: Shape, axis: int, start: int, step: int, count: int) -> Step:
    """Return a slice along one axis."""
    starts, steps, counts = [0] * len(shape), [1] * len(shape), list(shape)
    starts[axis], steps[axis], counts[axis] = start, step, count
    return "slice", {}, {"starts": tuple(starts), "steps": tuple(steps), "shape": tuple(counts)}


def _split(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shape = importer.shape(node)
    axis = importer.axis(node, given.get("axis", 0), len(shape))
    count, each = len(node.output), -(-shape[axis] // len(node.output))
    sizes = importer.setting(node, given, "split", 1) or [*[each] * (count - 1), shape[axis] - each * (count - 1)]
    if sum(sizes) != shape[axis] or len(sizes) != count or min(sizes) < 0:
        raise importer.refused(node, f"its parts are {sizes}; possible: {count} of {shape[axis]} in all")
    for i, size in enumerate(sizes):
        if size:
            _run(importer, node, _part(shape, axis, sum(sizes[:i]), 1, size), output=i)


def _sliced(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    shape = importer.shape(node)
    starts, ends = (importer.setting(node, given, name, 1 + i) for i, name in enumerate(("starts", "ends")))
    axes = importer.setting(node, given, "axes", 3) or range(len(starts))
    steps = importer.setting(node, given, "steps", 4) or [1] * len(starts)
    done = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if axis in (0, -1 - len(shape)) and start == 0 and end >= importer.batch and step == 1:
            continue
        axis = importer.axis(node, axis, len(shape))
        rows = range(*slice(start, end, step).indices(shape[axis]))
        if not rows:
            raise importer.refused(node, f"nothing is left of axis {axis + 1}; possible: one element or more")
        done.append(_part(shape, axis, rows[0], step, len(rows)))
        shape = done[-1][2]["shape"]
    if done and any(importer.depends_on_batch(node, i) for i in range(1, len(node.input))):
        raise importer.refused(node, "what it leaves depends on the batch, which is free; possible: a fixed one")
    _run(importer, node, *done)


def _gather(importer: Importer, node: onnx.NodeProto, given: dict) -> None:
    if importer.is_constant(node.input[0]):
        raise importer.refused(node, "it looks up a constant; possible: constant indices into what is computed")
    shape, indices = importer.shape(node), importer.number(node, 1)
    axis = importer.axis(node, given.get("axis", 0), len(shape))
    if indices.dtype.kind not in "iu" or (abs(indices + 0.5) > shape[axis]).any():
        raise importer.refused(node, f"indices are {indices.tolist()}; possible: what axis {axis + 1} has")
    rows = [int(i) % shape[axis] for i in indices.reshape(-1)]
    step = rows[1] - rows[0] if len(rows) > 1 else 1
    if not rows or rows != [rows[0] + step * i for i in range(len(rows))]:
        raise importer.refused(node, f"indices are {rows}; possible: one, or several at equal steps")
    result = *shape[:axis], *indices.shape, *shape[axis + 1 :]
    if not result:
        raise importer.refused(node, "nothing but the batch is left; possible: indices with an axis")
    _run(importer, node, _part(shape, axis, rows[0], step, len(rows)), _reshape(result))


def _expand(importer: Importer, node: onnx.NodeProto, _given: dict) -> None:
    shape, wanted = importer.shape(node), importer.number(node, 1).tolist()
    full = [importer.batch, *shape]
    if len(wanted) > len(full):
        raise importer.refused(node, f"it gives {full} more axes, {wanted}; possible: as many")
    if importer.depends_on_batch(node, 1, int(len(wanted) == len(full))):
        raise importer.refused(node, "another axis than the batch's depends on the batch; possible: a fixed one")
    wanted = [1] * (len(full) - len(wanted)) + wanted
    if wanted[0] not in (1, importer.batch):
        raise importer.refused(node, f"it repeats samples; possible: axis 0 of 1 or {importer.batch}")
    _run(importer, node, ("expand", {}, {"shape": tuple(map(max, shape, wanted[1:]))}))


IMPORTED: dict[str, Import] = {
    "Conv": _conv,
    "BatchNormalization": _batch_norm,
    "Relu": _unary("relu"),
    "Add": _binary("add"),
    "Concat": _concat,
    "MaxPool": _pool("max_pool"),
    "AveragePool": _pool("average_pool"),
    "GlobalAveragePool": _global_pool("reduce_mean"),
    "GlobalMaxPool": _global_pool("reduce_max"),
    "Flatten": _flatten,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "Identity": _unary("identity"),
    "Dropout": _dropout,
    "Cast": _cast,
    "Clip": _clip,
    "Gelu": _gelu,
    "LayerNormalization": _layer_norm,
    "InstanceNormalization": _instance_norm,
    "LRN": _lrn,
    **{name: _reduce(f"reduce_{name[6:].lower()}") for name in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")},
    "ReduceProd": _reduce("reduce_prod"),
    "Sum": _binary("add"),
    **{name: _binary(name.lower()) for name in ("Sub", "Mul", "Div", "Pow", "Min", "Max")},
    "PRelu": _binary("prelu"),
    **{
        name: _unary(name.lower())
        for name in ("Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Round", "Selu")
    },
    **{name: _unary(name.lower()) for name in ("Sigmoid", "Sign", "Sin", "Softplus", "Sqrt", "Swish", "Tanh")},
    "HardSigmoid": _unary("hard_sigmoid"),
    "HardSwish": _unary("hard_swish"),
    "LeakyRelu": _unary("leaky_relu"),
    "ThresholdedRelu": _unary("thresholded_relu"),
    "Reshape": _reshaped,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transposed,
    "Shape": _shape,
    "Split": _split,
    "Slice": _sliced,
    "Gather": _gather,
    "Expand": _expand,
    "Where": _where,
    "QuantizeLinear": _quantised,
    "DequantizeLinear": _dequantised,
}
SEVERAL_RESULTS = ("Split",)
