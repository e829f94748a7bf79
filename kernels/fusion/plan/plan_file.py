"""A plan in a file: loaded without optimising, tuning or calibrating again. No pickle, and nothing in it is run.

The file is one of safetensors (github.com/huggingface/safetensors): each weight an array "layer/weight", and in the
metadata one text, named FORMAT:

    checksum    SHA-256 of the file, with zeros in the place of these 64 digits; and a space
    plan        JSON as SCHEMA has it: graph, tactics by name, memory plan, batch, device

A checksum finds damage, and no tampering: whoever changes a plan can compute it anew. So the loader believes nothing.
safetensors holds the arrays against the size of the file, SCHEMA every name and number of the JSON against its bounds,
the graph and the memory plan check themselves, and tactics are looked up by name: a file can choose among this
program's kernels, and bring none. Filters of an INT8 or FP16 layer are kept in its precision, all other weights in
float32.
"""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from kernels.fusion.graph import Graph, GraphError, Node, saved_graph
from kernels.fusion.graph.functions import MOST
from kernels.fusion.graph.int8 import quantised
from kernels.fusion.graph.operators import MOST_AXES
from kernels.fusion.plan.memory_plan import MemoryPlan, Placed
from kernels.fusion.plan.memory_plan import plan as memory_plan_of
from kernels.fusion.plan.plan import Plan, PlanError, check
from kernels.fusion.plan.tuning import device

VERSION = 2
FORMAT = f"warplab plan {VERSION}"
_BEFORE = b"\x89WARPLAB-PLAN\r\n\x1a"  # how files of version 1 begin
_SUM = re.compile(rb'(?<="%s":")[0-9a-f]{64}(?= )' % FORMAT.encode())  # inside a text its quotes would be escaped
_ZEROS = b"0" * 64
_AGAIN = "build and save the plan again"


class PlanFileError(PlanError):
    """A file that is no plan of this format, or not one that can be trusted: the message says why."""


def save(plan: Plan, path: str | Path) -> None:
    """Write a plan. The file is replaced as a whole, so that it is never half written.

    PlanError for a plan that could not be loaded: what is written is read first.
    """
    path, data = Path(path), to_bytes(plan)
    try:
        _plan(*parts(data))
    except (PlanError, GraphError) as error:
        why = f"{path} is not written, since nobody could load it: {error}"
        raise PlanError(f"{why}. Mend the network, and build the plan again") from None
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def load(path: str | Path) -> Plan:
    """Return the plan in a file; warn if it was built for another device. PlanFileError or PlanError if it cannot run.

    FileNotFoundError where there is no such file.
    """
    return from_bytes(Path(path).read_bytes(), str(path))


def to_bytes(plan: Plan) -> bytes:
    """Return a plan as `save` writes it."""
    weights = {
        f"{node.name}/{name}": _kept(name, array, node)
        for node in plan.graph.nodes
        for name, array in node.weights.items()
    }
    return joined(json.dumps(_written(plan), separators=(",", ":"), ensure_ascii=False), weights)


def joined(text: str, weights: Mapping[str, np.ndarray]) -> bytes:
    """Return a file of these parts, with its checksum."""
    return sealed(safetensors.save(dict(weights), {FORMAT: f"{_ZEROS.decode()} {text}"}))


def sealed(data: bytes) -> bytes:
    """Return the bytes of a file with the checksum that is right for them."""
    return _SUM.sub(_checksum(data), data, count=1)


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(_SUM.sub(_ZEROS, data, count=1)).hexdigest().encode()


def parts(data: bytes, name: str = "the file") -> tuple[str, dict[str, np.ndarray]]:
    """Return (text, weights) of a file whose format and checksum are right; PlanFileError for all others."""
    if data.startswith(_BEFORE):
        raise PlanFileError(f"{name} has version 1, and this program reads {VERSION}: {_AGAIN}")
    if data[8:9] != b"{":
        raise PlanFileError(f"{name} is no plan: it does not begin as one. Give a file that plan_file.save wrote")
    try:
        weights = safetensors.load(data)  # and thereby a header that is JSON, with texts as metadata
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, KeyError) as error:  # KeyError: a type of numbers that NumPy lacks
        raise PlanFileError(f"{name} is cut short or damaged ({str(error)[:100]}): copy it again") from None
    told = header.get("__metadata__") or {}
    if FORMAT not in told:
        raise PlanFileError(f"{name} is no plan of version {VERSION}, which this program reads: {_AGAIN}")
    checksum, _, text = told[FORMAT].partition(" ")
    if checksum.encode() != _checksum(data):
        raise PlanFileError(f"{name} is damaged: its checksum is not that of its contents. Copy it again, or {_AGAIN}")
    return text, weights


def from_bytes(data: bytes, name: str = "the file") -> Plan:
    """Return the plan that `to_bytes` wrote; raise as `load` does."""
    text, weights = parts(data, name)
    try:
        plan = _plan(text, weights)
    except PlanFileError as error:
        raise PlanFileError(f"{name} holds no plan that can run: {error}. Do not trust it; {_AGAIN}") from None
    except GraphError as error:
        raise PlanFileError(f"{name} holds no graph that can run: {error}. Do not trust it; {_AGAIN}") from None
    except PlanError as error:
        raise PlanError(f"{name} cannot run here: {error}") from None
    if plan.device != device():
        warnings.warn(
            f"{name} was built for {plan.device} and runs on {device()}: its tactics may not be the fastest; "
            "build it again here",
            stacklevel=3,
        )
    return plan


def _plan(text: str, weights: Mapping[str, np.ndarray]) -> Plan:
    plan = _read(_json(text), weights)
    check(plan)
    return plan


# -- what the text may hold -------------------------------------------------------------------------------------------

_MOST = 2**20  # of channels, pixels, images: far more than a layer can have, and no overflow
_NODES = 100_000
_LONG = 500  # characters of a name
_DTYPES = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "int8": np.dtype("i1")}


def _record(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _list(items: Any, least: int = 0, most: int = _NODES) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _whole(least: int, most: int = _MOST) -> dict[str, Any]:
    return {"type": "whole number", "minimum": least, "maximum": most}


_NAME, _BOOLEAN = {"type": "name"}, {"type": "boolean"}
_ABOVE_0 = {"exclusiveMinimum": 1e-30, "exclusiveMaximum": 1e30}
_SCALE = {"type": ["number", "null"], **_ABOVE_0}
_SIDES = _list(_whole(1, 2**12), 2, 2)
_SHAPE = _list(_whole(1), 1, MOST_AXES)
_ANY = {"type": "number", "minimum": -MOST, "maximum": MOST}
SCHEMA = _record(
    name=_NAME,
    device=_NAME,
    batch=_whole(1),
    inputs=_list(_NAME, 1) | {"uniqueItems": True},
    outputs=_list(_NAME, 1) | {"uniqueItems": True},
    tensors=_list(_record(name=_NAME, shape=_SHAPE, dtype=_NAME, layout=_NAME, scale=_SCALE)),
    nodes=_list(
        _record(
            name=_NAME,
            op=_NAME,
            inputs=_list(_NAME),
            outputs=_list(_record(tensor=_NAME, start=_whole(0), channels=_whole(1))),
            attributes={
                "type": "object",
                "properties": {
                    "padding": _list(_whole(0, 2**12), 4, 4),
                    **dict.fromkeys(("stride", "dilation", "window"), _SIDES),
                    **dict.fromkeys(("relu", "swish", "keep_axes", "count_padding"), _BOOLEAN),
                    "epsilon": {"type": "number", **_ABOVE_0},
                    "shape": _SHAPE,
                    **dict.fromkeys(("order", "starts"), _list(_whole(0), 1, MOST_AXES)),
                    "steps": _list(_whole(-_MOST), 1, MOST_AXES),
                    **dict.fromkeys(("alpha", "beta", "bias", "scale", "most"), _ANY),
                    "size": _whole(1, 2**12),
                    "precision": {"enum": list(_DTYPES)},
                },
                "additionalProperties": False,
            },
            tactic={"type": ["name", "null"]},
        )
    ),
    memory=_list(
        _record(
            tensor=_NAME,
            **dict.fromkeys(("first", "last"), _whole(0, _NODES)),
            **dict.fromkeys(("offset", "nbytes"), _whole(0, 2**48)),
        )
    ),
)
_TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
    {
        "whole number": lambda _, value: isinstance(value, int) and not isinstance(value, bool),  # and not 1.0
        "name": lambda _, value: isinstance(value, str) and 0 < len(value) <= _LONG and value.isprintable(),
    }
)
_VALIDATOR = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=_TYPES)(SCHEMA)


# -- writing ----------------------------------------------------------------------------------------------------------


def _written(plan: Plan) -> dict[str, Any]:
    graph = saved_graph.structure_of(plan.graph)
    for record in graph["nodes"]:
        record["tactic"] = plan.choices.get(record["name"])
    memory = [asdict(placed) for placed in plan.memory.placed]
    return {"name": graph["name"], "device": plan.device, "batch": plan.batch, **graph, "memory": memory}


def _kept(name: str, array: np.ndarray, node: Node) -> np.ndarray:
    """Return a weight in the type that the file has it in."""
    kept = node.attributes.get("precision", "float32") if name == "filters" else "float32"
    if kept == "int8":
        array = quantised(array, _per_filter(node.weights["filter_scales"], array.ndim))
    return np.ascontiguousarray(array, _DTYPES[kept])


def _per_filter(scales: np.ndarray, rank: int) -> np.ndarray:
    return scales.reshape(-1, *(1,) * (rank - 1))


# -- reading ----------------------------------------------------------------------------------------------------------


def _json(text: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in items}) < len(items):
            raise PlanFileError("its text says something twice")
        return dict(items)

    def constant(value: str) -> None:
        raise PlanFileError(f"its text holds {value}, which is no number")

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (RecursionError, ValueError) as error:  # JSONDecodeError, and numbers of 5,000 digits
        if isinstance(error, PlanFileError):
            raise
        raise PlanFileError(f"its text is no JSON ({error})") from None


def _read(given: Any, weights: Mapping[str, np.ndarray]) -> Plan:
    for wrong in _VALIDATOR.iter_errors(given):
        where = "".join(f" {step}" for step in wrong.absolute_path)
        told = wrong.message if len(wrong.message) <= 200 else f"{wrong.message[:100]} … {wrong.message[-60:]}"
        name = f" (1 to {_LONG} printable characters)" if wrong.validator_value == "name" else ""
        raise PlanFileError(f"in its plan{where[:100]}: {told}{name}")
    tensors = {tensor["name"]: saved_graph.tensor_of(tensor) for tensor in given["tensors"]}
    if len(tensors) < len(given["tensors"]):
        raise PlanFileError("two of its tensors have one name")
    of_node: dict[str, dict[str, np.ndarray]] = {}
    for name, array in weights.items():
        node, _, weight = name.rpartition("/")
        of_node.setdefault(node, {})[weight] = array
    nodes = [saved_graph.node_of(node, _as_float32(of_node.pop(node["name"], {}), node)) for node in given["nodes"]]
    if of_node:
        raise PlanFileError(f"it has weights of {next(iter(of_node))!r:.100}, and no such layer")
    graph = Graph(given["name"], tuple(nodes), tensors, tuple(given["inputs"]), tuple(given["outputs"]))
    expected = memory_plan_of(graph, given["batch"], reuse=False)
    memory = MemoryPlan(tuple(Placed(**p) for p in given["memory"]), expected.owners, expected.launches)
    choices = {node["name"]: node["tactic"] for node in given["nodes"] if node["tactic"] is not None}
    return Plan(graph, given["batch"], choices, memory, given["device"])


def _as_float32(weights: dict[str, np.ndarray], node: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return weights as a graph holds them; those kept in fewer bits come back exactly."""
    precision, where = node["attributes"].get("precision", "float32"), f"layer {node['name']!r}"
    for name, array in weights.items():
        if array.dtype != _DTYPES[precision if name == "filters" else "float32"]:
            raise PlanFileError(f"{where}: its {name[:100]!r} are {array.dtype}, which its precision does not have")
        masks = node["op"] == "constant"  # which may hold infinity
        if not array.size or not (np.isfinite(array) | (masks & np.isinf(array))).all():
            raise PlanFileError(f"{where}: its {name[:100]!r} hold numbers that are not finite, or none")
    if precision == "int8":
        scales, filters = weights.get("filter_scales"), weights.get("filters")
        if scales is None or filters is None or scales.shape != filters.shape[:1] or not (scales > 0).all():
            raise PlanFileError(f"{where} needs filters, and a scale above 0 for each")
        weights["filters"] = filters * _per_filter(scales, filters.ndim)
    return {name: array.astype(np.float32) for name, array in weights.items()}
