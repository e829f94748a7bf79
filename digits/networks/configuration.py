"""A Keras model as plain data, and back: names of built-in layers, and settings that are numbers, words and lists.

    {"layers": [{"name": "conv", "kind": "Conv2D", "inputs": ["image"], "settings": {"filters": 8, ...}}, ...]}

The first layer is the input, the last one the output, and each reads layers before it. `check` believes nothing: it
lets through what the tables below name, and no more. There is no class, function, module or file that a setting could
name, and `build` calls constructors of `keras.layers` and does not deserialise. (Keras' own loader has been tricked
before: CVE-2025-1550 by modules, CVE-2025-8747 by functions, CVE-2025-12058 by a layer that reads a file.)

This module stands alone, as it is also copied into the sandbox.
"""

import math
import re
from collections.abc import Callable
from typing import Any

MOST_LAYERS = 500
MOST_INPUTS = 64  # of a layer
MOST_PARAMETERS = 100_000_000  # of a network
MOST_VALUES = 2**26  # that a layer puts out for one image
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,63}")

ACTIVATIONS = (
    "linear", "relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "softplus", "softsign", "sigmoid",
    "hard_sigmoid", "tanh", "mish", "softmax",
)  # fmt: skip
INITIALIZERS: dict[str, tuple[str, ...]] = {
    "Zeros": (), "Ones": (), "GlorotUniform": (), "GlorotNormal": (), "HeUniform": (), "HeNormal": (),
    "LecunUniform": (), "LecunNormal": (), "Constant": ("value",), "RandomNormal": ("mean", "stddev"),
    "TruncatedNormal": ("mean", "stddev"), "RandomUniform": ("minval", "maxval"), "Orthogonal": ("gain",),
}  # fmt: skip
REGULARIZERS = {"L1": ("l1",), "L2": ("l2",), "L1L2": ("l1", "l2")}
CONSTRAINTS = {"NonNeg": (), "UnitNorm": ("axis",), "MaxNorm": ("max_value", "axis")}
# By how the names of settings end; also the names of Keras' modules, but for an s.
_OBJECTS = {"initializer": INITIALIZERS, "regularizer": REGULARIZERS, "constraint": CONSTRAINTS}

_CONVOLUTION = "strides padding dilation_rate activation use_bias activity_regularizer"
_BIAS = "bias_initializer bias_regularizer bias_constraint"
_KERNEL = "kernel_initializer kernel_regularizer kernel_constraint"
_DEPTHWISE = "depthwise_initializer depthwise_regularizer depthwise_constraint"
_POINTWISE = "pointwise_initializer pointwise_regularizer pointwise_constraint"
_POOL = "pool_size strides padding"
_GAMMA = (
    "axis epsilon center scale beta_initializer gamma_initializer beta_regularizer gamma_regularizer beta_constraint "
    "gamma_constraint"
)
INPUT = "InputLayer"
LAYERS: dict[str, frozenset[str]] = {
    kind: frozenset(settings.split())
    for kind, settings in {
        INPUT: "shape",
        "Conv2D": f"filters kernel_size groups {_CONVOLUTION} {_KERNEL} {_BIAS}",
        "DepthwiseConv2D": f"kernel_size depth_multiplier {_CONVOLUTION} {_DEPTHWISE} {_BIAS}",
        "SeparableConv2D": f"filters kernel_size depth_multiplier {_CONVOLUTION} {_DEPTHWISE} {_POINTWISE} {_BIAS}",
        "Conv2DTranspose": f"filters kernel_size {_CONVOLUTION} {_KERNEL} {_BIAS}",
        "Dense": f"units activation use_bias {_KERNEL} {_BIAS}",
        "Activation": "activation",
        "ReLU": "max_value negative_slope threshold",
        "LeakyReLU": "negative_slope",
        "PReLU": "alpha_initializer alpha_regularizer alpha_constraint shared_axes",
        "ELU": "alpha",
        "Softmax": "axis",
        "BatchNormalization": f"{_GAMMA} momentum moving_mean_initializer moving_variance_initializer",
        "LayerNormalization": _GAMMA,
        "GroupNormalization": f"{_GAMMA} groups",
        "Dropout": "rate",
        "SpatialDropout2D": "rate",
        "AlphaDropout": "rate",
        "GaussianDropout": "rate",
        "GaussianNoise": "stddev",
        "MaxPooling2D": _POOL,
        "AveragePooling2D": _POOL,
        "GlobalAveragePooling2D": "keepdims",
        "GlobalMaxPooling2D": "keepdims",
        "Add": "", "Subtract": "", "Multiply": "", "Average": "", "Maximum": "", "Minimum": "",
        "Concatenate": "axis",
        "Flatten": "", "Identity": "",
        "Reshape": "target_shape",
        "Permute": "dims",
        "UpSampling2D": "size interpolation",
        "ZeroPadding2D": "padding",
        "Cropping2D": "cropping",
        "Rescaling": "rescale offset",
    }.items()
}  # fmt: skip
# Names of Keras' constructors that differ from ours.
_RENAMED = {("Rescaling", "rescale"): "scale"}
_MERGING = frozenset({"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"})


class ConfigurationError(ValueError):
    """What is wrong with a configuration or a model, and what to do, in a sentence."""


# -- checking ----------------------------------------------------------------------------------------------------------


def check(given: Any, image: tuple[int, ...], classes: int) -> dict[str, Any]:
    """Return a copy of a configuration that holds what the tables allow, for images (height, width, channels).

    Raises ConfigurationError for anything else: another input, several outputs, an output that is no softmax over
    `classes`, a layer or a setting that is not in the tables.
    """
    layers = given.get("layers") if isinstance(given, dict) and set(given) == {"layers"} else None
    if not isinstance(layers, list) or not 2 <= len(layers) <= MOST_LAYERS:
        raise ConfigurationError(f"The network must have 2 to {MOST_LAYERS} layers.")
    checked: list[dict[str, Any]] = []
    names: set[str] = set()
    for place, layer in enumerate(layers):
        checked.append(_layer(layer, place, names))
        names.add(checked[-1]["name"])
    if tuple(checked[0]["settings"]["shape"]) != tuple(image):
        raise ConfigurationError(
            f"The network takes images of {checked[0]['settings']['shape']}, and those of the dataset are "
            f"{list(image)} (height, width, channels). Begin with keras.Input(image)."
        )
    unread = names - {given for layer in checked for given in layer["inputs"]} - {checked[-1]["name"]}
    if unread:
        raise ConfigurationError(f"No layer reads {_some(sorted(unread))}. Return a model of one output.")
    _check_end(checked[-1], classes)
    return {"layers": checked}


def _check_end(last: dict[str, Any], classes: int) -> None:
    settings = last["settings"]
    softmax = last["kind"] == "Softmax" or settings.get("activation") == "softmax"
    if not softmax or (last["kind"] == "Dense" and settings["units"] != classes):
        raise ConfigurationError(
            f"The network ends with {last['name']!r} ({last['kind']}). It must end with one probability for each "
            'class: put keras.layers.Dense(classes, activation="softmax") last.'
        )


def _layer(given: Any, place: int, names: set[str]) -> dict[str, Any]:
    where = f"Layer {place + 1}"
    if not isinstance(given, dict) or set(given) != {"name", "kind", "inputs", "settings"}:
        raise ConfigurationError(f"{where} is not described by its name, kind, inputs and settings.")
    name, kind, inputs, settings = given["name"], given["kind"], given["inputs"], given["settings"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(f"{where} has an odd name. Use at most 64 of the characters A-Z a-z 0-9 _ . / -")
    if name in names:
        raise ConfigurationError(f"Two layers are named {name!r}. Give each a name of its own.")
    if not isinstance(kind, str) or kind not in LAYERS:
        raise ConfigurationError(f"{_unknown_layer(name, str(kind)[:40])}")
    if (kind == INPUT) != (place == 0):
        raise ConfigurationError(f"{name!r}: the input is the first layer, and there is one.")
    if not isinstance(inputs, list) or any(not isinstance(one, str) or one not in names for one in inputs):
        raise ConfigurationError(f"{name!r} reads something that is no layer before it.")
    fewest, most = (0, 0) if kind == INPUT else (2, MOST_INPUTS) if kind in _MERGING else (1, 1)
    if not fewest <= len(inputs) <= most:
        raise ConfigurationError(f"{name!r} ({kind}) reads {len(inputs)} layers; it can read {fewest} to {most}.")
    if not isinstance(settings, dict) or set(settings) != LAYERS[kind]:
        raise ConfigurationError(
            f"{name!r} ({kind}) must have the settings {', '.join(sorted(LAYERS[kind])) or 'none'}."
        )
    return {
        "name": name,
        "kind": kind,
        "inputs": list(inputs),
        "settings": {key: _setting(key, value, f"{name!r} ({kind}): {key}") for key, value in settings.items()},
    }


def _unknown_layer(name: str, kind: str) -> str:
    return (
        f"Layer {name!r} is a {kind}, which cannot be used here. Possible are built-in layers of Keras without code or "
        f"files: {', '.join(kind for kind in LAYERS if kind != INPUT)}."
    )


def _setting(key: str, value: Any, where: str) -> Any:
    table = _OBJECTS.get(key.rpartition("_")[2])
    return _RULES[key](value, where) if table is None else _object(value, table, where)


def _object(value: Any, table: dict[str, tuple[str, ...]], where: str) -> dict[str, Any] | None:
    """Return an initializer, a regularizer or a constraint: {"kind": ..., its numbers}."""
    if value is None:
        return None
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in table or set(value) != {"kind", *table[kind]}:
        raise ConfigurationError(f"{where} cannot be this one; possible are {', '.join(table)}.")
    return {"kind": kind, **{key: _number(value[key], f"{where}'s {key}") for key in table[kind]}}


def _bounded(least: int, most: int) -> Callable[[Any, str], int]:
    def rule(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ConfigurationError(f"{where} is {_short(value)}; it must be a whole number from {least} to {most}.")
        return value

    return rule


def _number(value: Any, where: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e6 or math.isnan(value):
        raise ConfigurationError(f"{where} is {_short(value)}; it must be a number, at most a million.")
    return value


def _one_of(*words: str) -> Callable[[Any, str], str]:
    def rule(value: Any, where: str) -> str:
        if not isinstance(value, str) or value not in words:
            raise ConfigurationError(f"{where} is {_short(value)}; possible are {', '.join(words)}.")
        return value

    return rule


def _whether(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{where} is {_short(value)}; it must be true or false.")
    return value


def _share(value: Any, where: str) -> int | float:
    if not 0 <= _number(value, where) < 1:
        raise ConfigurationError(f"{where} is {_short(value)}; it must be at least 0 and less than 1.")
    return value


def _list_of(rule: Callable[[Any, str], Any], most: int = 4) -> Callable[[Any, str], Any]:
    """Return a rule of single values, or of lists of them, as for the padding of each side; or one value alone."""

    def check_list(value: Any, where: str, depth: int = 0) -> Any:
        if not isinstance(value, list):
            return rule(value, where)
        if not 1 <= len(value) <= most or depth > 1:
            raise ConfigurationError(f"{where} must be a list of 1 to {most} numbers.")
        return [check_list(one, where, depth + 1) for one in value]

    return check_list


def _or_none(rule: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, where: None if value is None else rule(value, where)


def _padding(value: Any, where: str) -> Any:
    rule = _one_of("same", "valid") if isinstance(value, str) else _list_of(_bounded(0, 1024))
    return rule(value, where)


def _pair(value: Any, where: str) -> list[int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ConfigurationError(f"{where} is {_short(value)}; it must be two whole numbers.")
    return [_bounded(1, 64)(one, where) for one in value]


_AXES = _list_of(_bounded(-4, 4))
_RULES: dict[str, Callable[[Any, str], Any]] = {
    "shape": _list_of(_bounded(1, 4096)),
    "filters": _bounded(1, 4096), "units": _bounded(1, 65536), "groups": _bounded(1, 4096),
    "depth_multiplier": _bounded(1, 64),
    "kernel_size": _pair, "strides": _pair, "pool_size": _pair, "dilation_rate": _pair, "size": _pair,
    "padding": _padding, "cropping": _list_of(_bounded(0, 1024)),
    "activation": _one_of(*ACTIVATIONS), "interpolation": _one_of("nearest", "bilinear"),
    "use_bias": _whether, "center": _whether, "scale": _whether, "keepdims": _whether,
    "axis": _AXES, "shared_axes": _or_none(_AXES), "dims": _AXES, "target_shape": _list_of(_bounded(-1, 2**24)),
    "rate": _share, "momentum": _number, "epsilon": _number, "alpha": _number, "negative_slope": _number,
    "threshold": _number, "stddev": _number, "offset": _number, "rescale": _number, "max_value": _or_none(_number),
}  # fmt: skip


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:4])) + (" and others" if len(names) > 4 else "")


# -- with Keras --------------------------------------------------------------------------------------------------------


def build(configuration: dict[str, Any], name: str = "custom") -> Any:
    """Return the Keras model of a configuration that `check` returned, with new weights.

    Probabilities are computed in float32 in mixed precision, too. Raises ConfigurationError before a layer is made that
    would have too many parameters, or put out too much.
    """
    import keras

    first, last = configuration["layers"][0], configuration["layers"][-1]
    tensors: dict[str, Any] = {}
    parameters = 0
    for layer in configuration["layers"]:
        if layer["kind"] == INPUT:
            tensors[layer["name"]] = keras.Input(tuple(layer["settings"]["shape"]), name=layer["name"])
            continue
        dtype = {"dtype": "float32"} if layer is last else {}
        made = getattr(keras.layers, layer["kind"])(name=layer["name"], **_arguments(layer), **dtype)
        read = [tensors[one] for one in layer["inputs"]]
        parameters += _parameters(layer, tuple(read[0].shape[1:]))
        if parameters > MOST_PARAMETERS:
            raise ConfigurationError(
                f"Up to layer {layer['name']!r} the network has {parameters:,} parameters; at most {MOST_PARAMETERS:,} "
                "are possible. Make it smaller."
            )
        tensors[layer["name"]] = made(read if layer["kind"] in _MERGING else read[0])
        values = math.prod(tensors[layer["name"]].shape[1:])
        if values > MOST_VALUES:
            raise ConfigurationError(
                f"Layer {layer['name']!r} puts out {values:,} values for an image; at most {MOST_VALUES:,} are "
                "possible. Make it smaller."
            )
    return keras.Model(tensors[first["name"]], tensors[last["name"]], name=name)


def _parameters(layer: dict[str, Any], read: tuple[int, ...]) -> int:
    """Count the parameters of a layer that reads images or vectors of this shape, without biases."""
    settings, channels = layer["settings"], read[-1]
    window = math.prod(settings["kernel_size"]) if "kernel_size" in settings else 1
    between = channels * settings.get("depth_multiplier", 1)
    match layer["kind"]:
        case "Conv2D" | "Conv2DTranspose":
            return window * channels * settings["filters"] // settings.get("groups", 1)
        case "DepthwiseConv2D":
            return window * between
        case "SeparableConv2D":
            return window * between + between * settings["filters"]
        case "Dense":
            return channels * settings["units"]
        case "PReLU":
            return math.prod(read)
        case _:
            return 4 * _normalised(settings["axis"], read) if "gamma_initializer" in settings else 0


def _normalised(axis: int | list[int], read: tuple[int, ...]) -> int:
    """Return how many means a normalising layer has: along its axes, counted with the batch as axis 0."""
    axes = [one - 1 if one > 0 else one % len(read) for one in (axis if isinstance(axis, list) else [axis])]
    return math.prod(read[one] for one in axes if one < len(read))  # an axis named twice counts twice in Keras, too


def _arguments(layer: dict[str, Any]) -> dict[str, Any]:
    import keras

    found = {}
    for key, value in layer["settings"].items():
        if isinstance(value, dict):
            room = getattr(keras, f"{key.rpartition('_')[2]}s")
            value = getattr(room, value["kind"])(**{k: v for k, v in value.items() if k != "kind"})
        elif isinstance(value, list):
            value = _tuples(value)
        found[_RENAMED.get((layer["kind"], key), key)] = value
    return found


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def describe(model: Any) -> dict[str, Any]:
    """Return the configuration of a Keras model. Raises ConfigurationError, naming layer and setting, without one."""
    import keras

    if not isinstance(model, keras.Model) or not getattr(model, "inputs", None):
        raise ConfigurationError(
            f"network(image, classes) returned a {type(model).__name__}. Return keras.Model(inputs, outputs), or a "
            "keras.Sequential that begins with keras.Input(image)."
        )
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise ConfigurationError(
            f"The model has {len(model.inputs)} inputs and {len(model.outputs)} outputs. Give it one of each."
        )
    layers: list[dict[str, Any]] = []
    done: dict[int, str] = {}
    pending = [model.outputs[0]]
    while pending:  # a stack, since networks are deeper than Python's recursion
        tensor = pending[-1]
        layer, inputs = _origin(tensor)
        missing = [one for one in inputs if id(one) not in done]
        if id(tensor) in done or not missing:
            pending.pop()
            if id(tensor) not in done:
                layers.append(_described(layer, [done[id(one)] for one in inputs]))
                done[id(tensor)] = layer.name
            continue
        pending += reversed(missing)
        if len(pending) > 100_000:
            raise ConfigurationError(f"The network has too many layers; at most {MOST_LAYERS} are possible.")
    return {"layers": layers}


def _origin(tensor: Any) -> tuple[Any, list[Any]]:
    """Return the layer that made a tensor, and the tensors that it read."""
    history = tensor._keras_history
    layer = history.operation
    if len(layer._inbound_nodes) > 1:
        raise ConfigurationError(f"Layer {layer.name!r} is used twice. Make a layer of its own for each place.")
    return layer, list(layer._inbound_nodes[history.node_index].input_tensors)


def _described(layer: Any, inputs: list[str]) -> dict[str, Any]:
    kind = type(layer).__name__
    if kind not in LAYERS or not type(layer).__module__.startswith("keras.src.layers."):
        advice = (
            " For sums and products of tensors take keras.layers.Add() and Multiply()."
            if "ops" in str(type(layer).__module__)
            else ""
        )
        raise ConfigurationError(_unknown_layer(layer.name, kind) + advice)
    config = layer.get_config()
    if kind == INPUT:
        settings = {"shape": list(config["batch_shape"][1:])}
    else:
        ours = {_RENAMED.get((kind, key), key): key for key in LAYERS[kind]}
        settings = {ours[key]: _plain(value) for key, value in config.items() if key in ours}
    return {"name": layer.name, "kind": kind, "inputs": inputs, "settings": settings}


def _plain(value: Any) -> Any:
    """Return a setting as Keras' configuration has it, as ours has it."""
    if isinstance(value, dict):
        kind, numbers = value.get("class_name"), value.get("config")
        table = {**INITIALIZERS, **REGULARIZERS, **CONSTRAINTS}
        kept = table.get(kind, ()) if isinstance(kind, str) else ()
        return {"kind": kind, **{key: _plain(numbers[key]) for key in kept if key in numbers}}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value


def lost(model: Any, rebuilt: Any) -> list[str]:
    """Return settings of a model's layers that its configuration does not hold, as "layer 'x': setting"."""
    ignored = {"dtype", "name", "seed", "batch_shape"}
    found = []
    twins = {layer.name: layer.get_config() for layer in rebuilt.layers}
    for layer in model.layers:
        before, after = _seedless(layer.get_config()), _seedless(twins.get(layer.name, {}))
        keys = [key for key in before if key not in ignored and before[key] != after.get(key)]
        found += [f"layer {layer.name!r}: {key}" for key in keys]
    return found


def _seedless(value: Any) -> Any:
    """Return a configuration without seeds, which are the run's and not the network's."""
    if isinstance(value, dict):
        return {key: _seedless(one) for key, one in value.items() if key not in ("seed", "registered_name")}
    return [_seedless(one) for one in value] if isinstance(value, list | tuple) else value
