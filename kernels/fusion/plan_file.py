"""A plan in a file: loaded without optimising, tuning or calibrating again. No pickle, and nothing in it is run.

    magic           16 bytes, with bytes that a transfer as text would change
    version         uint32, little-endian as all numbers here
    text, weights   uint64 each: bytes of the two parts
    checksum        32 bytes: SHA-256 of all other bytes
    text            JSON: graph, tactics by name, memory plan, batch, device
    weights         raw arrays one after the other, at multiples of 16 bytes

A checksum finds damage, and no tampering: whoever changes a plan can compute it anew. So the loader believes nothing.
The text may only hold what this module writes, every number is held against its bounds, the graph and the memory plan
check themselves, and tactics are looked up by name: a file can choose among this program's kernels, and bring none.
Filters of an INT8 or FP16 layer are kept in its precision, all other weights in float32.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernels.fusion.graph import Graph, GraphError, Node, Slice, Tensor
from kernels.fusion.int8 import quantised
from kernels.fusion.memory_plan import MemoryPlan, Placed
from kernels.fusion.memory_plan import plan as memory_plan_of
from kernels.fusion.plan import Plan, PlanError, check
from kernels.fusion.tune import device

MAGIC = b"\x89WARPLAB-PLAN\r\n\x1a"
VERSION = 1
_HEADER = struct.Struct("<16sIQQ")
_CHECKSUM = 32
_ALIGNMENT = 16
_DTYPES = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "int8": np.dtype("i1")}
_MOST = 2**20  # of channels, pixels, images: far more than a layer can have, and no overflow
_NAME = 200  # characters of a name, at most
_NODES = 100_000
_AGAIN = "build and save the plan again"


class PlanFileError(PlanError):
    """A file that is no plan of this format, or not one that can be trusted: the message says why."""


def save(plan: Plan, path: str | Path) -> None:
    """Write a plan. The file is replaced as a whole, so that it is never half written."""
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    unfinished.write_bytes(to_bytes(plan))
    os.replace(unfinished, path)


def load(path: str | Path) -> Plan:
    """The plan in a file; a warning if it was built for another device. PlanFileError or PlanError if it cannot run.

    FileNotFoundError where there is no such file.
    """
    return from_bytes(Path(path).read_bytes(), str(path))


def to_bytes(plan: Plan) -> bytes:
    """A plan as `save` writes it."""
    weights = bytearray()
    text = json.dumps(_written(plan, weights), separators=(",", ":"), ensure_ascii=False).encode()
    return sealed(text, bytes(weights))


def sealed(text: bytes, weights: bytes) -> bytes:
    """A file of these parts, with its header and checksum."""
    header = _HEADER.pack(MAGIC, VERSION, len(text), len(weights))
    return header + hashlib.sha256(header + text + weights).digest() + text + weights


def parts(data: bytes, name: str = "the file") -> tuple[bytes, bytes]:
    """(text, weights) of a file whose header and checksum are right; PlanFileError for all others."""
    if data[: len(MAGIC)] != MAGIC:
        raise PlanFileError(f"{name} is no plan: it does not begin as one. Give a file that plan_file.save wrote")
    if len(data) < _HEADER.size + _CHECKSUM:
        raise PlanFileError(f"{name} is cut short after {len(data)} bytes: copy it again")
    _, version, text_bytes, weights_bytes = _HEADER.unpack_from(data)
    if version != VERSION:
        raise PlanFileError(f"{name} has version {version}, and this program reads {VERSION}: {_AGAIN}")
    start = _HEADER.size + _CHECKSUM
    if len(data) != start + text_bytes + weights_bytes:
        raise PlanFileError(
            f"{name} has {len(data)} bytes, and its header says {start + text_bytes + weights_bytes}: copy it again"
        )
    found = hashlib.sha256(data[: _HEADER.size] + data[start:]).digest()
    if found != data[_HEADER.size : start]:
        raise PlanFileError(f"{name} is damaged: its checksum is not that of its contents. Copy it again, or {_AGAIN}")
    return data[start : start + text_bytes], data[start + text_bytes :]


def from_bytes(data: bytes, name: str = "the file") -> Plan:
    """The plan that `to_bytes` wrote; raise as `load` does."""
    text, weights = parts(data, name)
    try:
        plan = _read(_json(text), weights)
        check(plan)
    except PlanFileError as error:
        raise PlanFileError(f"{name} holds no plan that can run: {error}. Do not trust it; {_AGAIN}") from None
    except GraphError as error:
        raise PlanFileError(f"{name} holds no graph that can run: {error}. Do not trust it; {_AGAIN}") from None
    if plan.device != device():
        warnings.warn(
            f"{name} was built for {plan.device} and runs on {device()}: its tactics may not be the fastest; "
            "build it again here",
            stacklevel=3,
        )
    return plan


# -- writing ----------------------------------------------------------------------------------------------------------


def _written(plan: Plan, weights: bytearray) -> dict[str, Any]:
    graph = plan.graph
    return {
        "name": graph.name,
        "device": plan.device,
        "batch": plan.batch,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "tensors": [
            {"name": t.name, "shape": list(t.shape), "dtype": t.dtype, "layout": t.layout, "scale": t.scale}
            for t in graph.tensors.values()
        ],
        "nodes": [_written_node(node, plan.choices.get(node.name), weights) for node in graph.nodes],
        "memory": [
            {"tensor": p.tensor, "first": p.first, "last": p.last, "offset": p.offset, "nbytes": p.nbytes}
            for p in plan.memory.placed
        ],
    }


def _written_node(node: Node, tactic: str | None, weights: bytearray) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": node.op,
        "inputs": list(node.inputs),
        "outputs": [{"tensor": p.tensor, "start": p.start, "channels": p.channels} for p in node.outputs],
        "attributes": {k: list(v) if isinstance(v, tuple) else v for k, v in node.attributes.items()},
        "weights": [_written_array(name, array, node, weights) for name, array in node.weights.items()],
        "tactic": tactic,
    }


def _written_array(name: str, array: np.ndarray, node: Node, weights: bytearray) -> dict[str, Any]:
    kept = "float32"
    if name == "filters":
        kept = node.attributes.get("precision", "float32")
        if kept == "int8":
            array = quantised(array, _per_filter(node.weights["filter_scales"], array.ndim))
    offset = len(weights)
    weights += np.ascontiguousarray(array, _DTYPES[kept]).tobytes()
    weights += bytes(-len(weights) % _ALIGNMENT)
    return {"name": name, "dtype": kept, "shape": list(array.shape), "offset": offset}


def _per_filter(scales: np.ndarray, rank: int) -> np.ndarray:
    return scales.reshape(-1, *(1,) * (rank - 1))


# -- reading ----------------------------------------------------------------------------------------------------------


def _json(text: bytes) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in items}) < len(items):
            raise PlanFileError("its text says something twice")
        return dict(items)

    def constant(value: str) -> None:
        raise PlanFileError(f"its text holds {value}, which is no number")

    try:
        return json.loads(text.decode(), object_pairs_hook=pairs, parse_constant=constant)
    except (UnicodeDecodeError, RecursionError, ValueError) as error:  # JSONDecodeError, and numbers of 5,000 digits
        if isinstance(error, PlanFileError):
            raise
        raise PlanFileError(f"its text is no JSON ({error})") from None


def _read(text: Any, weights: bytes) -> Plan:
    given = _record(text, "the plan", "name device batch inputs outputs tensors nodes memory")
    batch = _whole(given["batch"], "batch", 1, _MOST)
    tensors = [_tensor(value, f"tensor {i}") for i, value in enumerate(_list(given["tensors"], "tensors", _NODES))]
    _different([t.name for t in tensors], "tensors")
    room = _Room(weights)
    nodes, choices = [], {}
    for i, value in enumerate(_list(given["nodes"], "nodes", _NODES)):
        node, tactic = _node(value, f"node {i}", room)
        nodes.append(node)
        if tactic is not None:
            choices[node.name] = tactic
    room.finish()
    inputs, outputs = (
        tuple(_text(name, key) for name in _list(given[key], key, _NODES)) for key in ("inputs", "outputs")
    )
    if not inputs or not outputs:
        raise PlanFileError("its graph has no inputs, or no outputs")
    _different(inputs, "inputs")
    _different(outputs, "outputs")
    graph = Graph(_text(given["name"], "name"), tuple(nodes), {t.name: t for t in tensors}, inputs, outputs)
    placed = tuple(_placed(value, f"memory {i}") for i, value in enumerate(_list(given["memory"], "memory", _NODES)))
    expected = memory_plan_of(graph, batch, reuse=False)
    memory = MemoryPlan(placed, expected.owners, expected.launches)
    return Plan(graph, batch, choices, memory, _text(given["device"], "device"))


class _Room:
    """The weights' bytes, which arrays must fill one after the other."""

    def __init__(self, weights: bytes) -> None:
        self._weights, self._taken = weights, 0

    def array(self, value: Any, where: str) -> tuple[str, np.ndarray]:
        given = _record(value, where, "name dtype shape offset")
        name = _text(given["name"], f"{where}'s name")
        shape = [_whole(n, f"{where}'s shape", 1, _MOST) for n in _list(given["shape"], f"{where}'s shape", 4)]
        dtype = _DTYPES[_one_of(given["dtype"], f"{where}'s dtype", _DTYPES)]
        nbytes = math.prod(shape) * dtype.itemsize
        offset = _whole(given["offset"], f"{where}'s offset", 0, len(self._weights))
        if offset != self._taken or offset + nbytes > len(self._weights):
            raise PlanFileError(f"{where} lies at byte {offset} with {nbytes} bytes, where it cannot")
        self._taken = offset + nbytes + -(offset + nbytes) % _ALIGNMENT
        array = np.frombuffer(self._weights, dtype, math.prod(shape), offset).reshape(shape)
        if not np.isfinite(array.astype(np.float32)).all():
            raise PlanFileError(f"{where} holds numbers that are not finite")
        return name, array

    def finish(self) -> None:
        if self._taken != len(self._weights):
            raise PlanFileError(f"its weights have {len(self._weights)} bytes, of which arrays take {self._taken}")


def _tensor(value: Any, where: str) -> Tensor:
    given = _record(value, where, "name shape dtype layout scale")
    shape = tuple(_whole(n, f"{where}'s shape", 1, _MOST) for n in _list(given["shape"], f"{where}'s shape", 3))
    scale = None if given["scale"] is None else _positive(given["scale"], f"{where}'s scale")
    name, dtype, layout = (_text(given[key], f"{where}'s {key}") for key in ("name", "dtype", "layout"))
    return Tensor(name, shape, dtype, layout, scale)


def _node(value: Any, where: str, room: _Room) -> tuple[Node, str | None]:
    given = _record(value, where, "name op inputs outputs attributes weights tactic")
    name, op = _text(given["name"], f"{where}'s name"), _text(given["op"], f"{where}'s op")
    inputs = tuple(_text(v, f"{where}'s inputs") for v in _list(given["inputs"], f"{where}'s inputs", _NODES))
    slices = tuple(_slice(v, f"{where}'s outputs") for v in _list(given["outputs"], f"{where}'s outputs", _NODES))
    attributes = _attributes(given["attributes"], f"{where}'s attributes")
    arrays = [room.array(v, f"{where}'s weights") for v in _list(given["weights"], f"{where}'s weights", 8)]
    _different([key for key, _ in arrays], f"{where}'s weights")
    weights = _as_float32(dict(arrays), attributes.get("precision", "float32"), where)
    tactic = None if given["tactic"] is None else _text(given["tactic"], f"{where}'s tactic")
    return Node(name, op, inputs, slices, attributes, weights), tactic


def _as_float32(weights: dict[str, np.ndarray], precision: str, where: str) -> dict[str, np.ndarray]:
    """Weights as a graph holds them; those kept in fewer bits come back exactly."""
    for name, array in weights.items():
        if array.dtype != _DTYPES[precision if name == "filters" else "float32"]:
            raise PlanFileError(f"{where}'s {name} are {array.dtype}, which its precision does not have")
    if precision == "int8":
        scales, filters = weights.get("filter_scales"), weights.get("filters")
        if scales is None or filters is None or scales.shape != filters.shape[:1] or not (scales > 0).all():
            raise PlanFileError(f"{where} needs filters, and a scale above 0 for each")
        weights["filters"] = filters * _per_filter(scales, filters.ndim)
    return {name: array.astype(np.float32) for name, array in weights.items()}


def _slice(value: Any, where: str) -> Slice:
    given = _record(value, where, "tensor start channels")
    start, channels = _whole(given["start"], where, 0, _MOST), _whole(given["channels"], where, 1, _MOST)
    return Slice(_text(given["tensor"], where), start, channels)


def _placed(value: Any, where: str) -> Placed:
    given = _record(value, where, "tensor first last offset nbytes")
    first, last = (_whole(given[key], where, 0, _NODES) for key in ("first", "last"))
    offset, nbytes = (_whole(given[key], where, 0, 2**48) for key in ("offset", "nbytes"))
    return Placed(_text(given["tensor"], where), first, last, offset, nbytes)


def _attributes(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PlanFileError(f"{where} are no record")
    found = {}
    for key, item in value.items():
        if key not in _ATTRIBUTES:
            raise PlanFileError(f"{where} name {key!r:.40}, which no operator has")
        found[key] = _ATTRIBUTES[key](item, f"{where}, {key}")
    return found


def _wholes(count: int, least: int) -> Callable[[Any, str], tuple[int, ...]]:
    def read(value: Any, where: str) -> tuple[int, ...]:
        items = _list(value, where, count)
        if len(items) != count:
            raise PlanFileError(f"{where} must be {count} whole numbers")
        return tuple(_whole(item, where, least, 2**12) for item in items)

    return read


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise PlanFileError(f"{where} must be true or false")
    return value


def _positive(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-30 < value < 1e30:
        raise PlanFileError(f"{where} must be a number above 0")
    return float(value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _NAME or not value.isprintable():
        raise PlanFileError(f"{where} must be a text of at most {_NAME} characters")
    return value


_ATTRIBUTES: Mapping[str, Callable[[Any, str], Any]] = {
    "padding": _wholes(4, 0),
    "stride": _wholes(2, 1),
    "dilation": _wholes(2, 1),
    "window": _wholes(2, 1),
    "relu": _boolean,
    "keep_axes": _boolean,
    "count_padding": _boolean,
    "epsilon": _positive,
    "precision": lambda value, where: _one_of(value, where, _DTYPES),
}


def _record(value: Any, where: str, keys: str) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != set(keys.split()):
        raise PlanFileError(f"{where} must be a record of {', '.join(keys.split())}")
    return value


def _list(value: Any, where: str, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise PlanFileError(f"{where} must be a list of at most {most}")
    return value


def _whole(value: Any, where: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise PlanFileError(f"{where} must be a whole number from {least} to {most}")
    return value


def _one_of(value: Any, where: str, choices: Mapping[str, Any]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise PlanFileError(f"{where} must be one of {', '.join(choices)}")
    return value


def _different(names: Any, where: str) -> None:
    if len(set(names)) < len(names):
        raise PlanFileError(f"two of its {where} have one name")
