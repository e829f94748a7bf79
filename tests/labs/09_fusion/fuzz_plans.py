"""Damages plan files in many ways and loads them: `python -m tests.labs.09_fusion.fuzz_plans --files 10000 --seed N`.

Two families. Damage that leaves the checksum as it was (bits, bytes, cuts, blocks, headers, foreign files) must always
be refused. Tampering that computes the checksum anew may be refused, or leave another plan that is valid in all its
parts: some of those are run, where the simulator finds any access out of bounds, and the result must be the
interpreter's for the graph that the file describes. Anything but a PlanError is a failure, and ends with exit code 1,
its seed and its number.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.fusion import tactics
from kernels.fusion.graph import Graph, Node, Slice, Tensor, int8, interpret
from kernels.fusion.graph.build import Builder
from kernels.fusion.plan import Plan, PlanError, build, plan_file
from kernels.fusion.plan.engine import Engine
from kernels.fusion.tactics import cbr_tactics, element_tactics, other_tactics

FILES, SEED = 10_000, 9
ANOTHER = "another graph"
TACTICS = (*cbr_tactics.TACTICS, *other_tactics.TACTICS, *element_tactics.TACTICS)
HOSTILE = (
    *(0, -1, 1, 2, 3, 7, 255, 256, 2**20, 2**31 - 1, 2**31, 2**63, -(2**63), 10**400, 0.0, -0.5, 1.5, 1e-300, 1e300),
    *(True, False, None, "", "x", "float32", "float16", "int8", "NHWC", "NCHW", "y" * 1000, "\x00", "../plan", "🙂"),
    *([], {}, [[]], {"": 0}, [1, 2, 3, 4, 5], [[[[[[]]]]]], "cbr", "conv", "constant", "f32_16x16_in_2", "__import__"),
)


@dataclass
class Outcome:
    """What loading the damaged files came to. `failures`: kind, number and what happened, of those that went wrong."""

    refused: Counter[str] = field(default_factory=Counter)
    loaded: Counter[str] = field(default_factory=Counter)
    ran: int = 0
    failures: list[str] = field(default_factory=list)


def fuzz(files: int = FILES, seed: int = SEED, run_every: int = 5) -> Outcome:
    """Load so many damaged files. `run_every`: of tampered plans that load each such one is run, too, and all that
    describe another graph or name other tactics."""
    outcome = Outcome()
    originals = [plan_file.to_bytes(each()) for each in (example, shapes)]
    kinds = [*DAMAGE, *TAMPERING]
    for number in range(files):
        rng = np.random.default_rng((seed, number))
        kind, original = kinds[number % len(kinds)], originals[number // len(kinds) % len(originals)]
        try:
            data = original
            while data == original:  # which two values exchanged may leave
                data = (DAMAGE | TAMPERING)[kind](original, rng)
            plan = load(data)
        except PlanError:
            outcome.refused[kind] += 1
            continue
        except Exception as error:
            outcome.failures.append(f"{kind}, file {number}: {type(error).__name__}: {error}")
            continue
        outcome.loaded[kind] += 1
        if kind in DAMAGE:
            outcome.failures.append(f"{kind}, file {number}: a damaged file was loaded")
        elif (kind == ANOTHER or sum(outcome.loaded.values()) % run_every == 1) and plan.memory.nbytes < 2**20:
            try:
                run(plan, rng)
                outcome.ran += 1
            except Exception as error:
                outcome.failures.append(f"{kind}, file {number}, run: {type(error).__name__}: {error}")
    return outcome


def run(plan: Plan, rng: np.random.Generator) -> None:
    """Run a plan on random numbers. AssertionError for a result that the interpreter does not have."""
    graph = plan.graph
    given = [rng.uniform(-2, 2, (1, *graph.tensors[name].shape)).astype(np.float32) for name in graph.inputs]
    with np.errstate(all="ignore"):  # other numbers may overflow, and must do so in both
        expected = interpret.run(graph, *given)
    found = Engine(plan).run(*given)
    for name, values in expected.items():
        result = found[name] if len(expected) > 1 else found
        np.testing.assert_allclose(result, values, rtol=1e-4, atol=1e-4, err_msg="another result")


def load(data: bytes) -> Plan:
    """As plan_file.load, from memory, without the warning that a plan is for another device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plan_file.from_bytes(data)


def example() -> Plan:
    """A plan that holds a bit of everything: INT8, FP16 and FP32, slices, a residual, pools, a constant, a vector."""
    rng = np.random.default_rng(0)

    def cbr(name: str, x: tuple[str, ...], outputs: tuple[Slice, ...], shape: tuple, precision: str) -> Node:
        filters = rng.standard_normal(shape).astype(np.float32)
        weights = {"filters": filters, "bias": rng.standard_normal(shape[0])}
        if precision == "int8":
            weights["filter_scales"] = int8.filter_scales(filters)
        pad = shape[2] // 2
        attributes = {"padding": (pad,) * 4, "relu": True, "precision": precision}
        return Node(name, "cbr", x, outputs, attributes, weights)

    tensors = [
        Tensor("x", (4, 6, 6)),
        Tensor("q", (4, 6, 6), "int8", "NHWC", 0.02),
        Tensor("wide", (16, 6, 6), "int8", "NHWC", 0.05),
        Tensor("side", (8, 6, 6), "float32", "NHWC"),
        Tensor("half", (8, 6, 6), "float16", "NHWC"),
        Tensor("more", (8, 6, 6), "float16", "NHWC"),
        Tensor("small", (16, 3, 3), "int8", "NHWC", 0.05),
        Tensor("mean", (16,)),
        Tensor("means", (8,)),
        Tensor("bias", (16,)),
        Tensor("both", (16,)),
        Tensor("all", (24,)),
        Tensor("logits", (5,)),
        Tensor("y", (5,)),
    ]
    whole = {t.name: (Slice(t.name, 0, t.channels),) for t in tensors}
    nodes = [
        Node("quantise", "convert", ("x",), whole["q"]),
        cbr("first", ("q",), (Slice("wide", 0, 8), Slice("side", 0, 8)), (16, 4, 3, 3), "int8"),
        Node("cast", "convert", ("side",), whole["half"]),
        cbr("second", ("half", "half"), whole["more"], (8, 8, 1, 1), "float16"),
        cbr("third", ("q",), (Slice("wide", 8, 8),), (8, 4, 1, 1), "int8"),
        Node("pool", "max_pool", ("wide",), whole["small"], {"window": (2, 2), "stride": (2, 2)}),
        Node("average", "global_average_pool", ("small",), whole["mean"]),
        Node("averages", "global_average_pool", ("more",), whole["means"]),
        Node("constant", "constant", (), whole["bias"], {}, {"value": rng.standard_normal(16)}),
        Node("add", "add", ("mean", "bias"), whole["both"]),
        Node("join", "concat", ("both", "means"), whole["all"]),
        cbr("classes", ("all",), whole["logits"], (5, 24, 1, 1), "float32"),
        Node("softmax", "softmax", ("logits",), whole["y"]),
    ]
    return build(Graph("example", tuple(nodes), {t.name: t for t in tensors}, ("x",), ("y",)))


def shapes() -> Plan:
    """A plan of what has other shapes and attributes: rows, transposes, slices, an attention, functions, groups."""
    rng = np.random.default_rng(0)
    builder = Builder("shapes")
    x = builder.input("x", (4, 5, 6))
    x = builder.add("conv", "depthwise", [x], {"filters": rng.standard_normal((4, 1, 3, 3))}, padding=(1, 1, 1, 1))
    x = builder.add("lrn", "lrn", [builder.add("elu", "elu", [x], alpha=0.5)], size=3)
    sliced = {"starts": (0, 4, 1), "steps": (1, -1, 2), "shape": (2, 5, 2)}
    rows = builder.add("reshape", "rows", [builder.add("slice", "part", [x], **sliced)], shape=(10, 2))
    ones = {"gamma": np.ones(2), "beta": np.zeros(2)}
    wide = builder.add("dense", "wide", [builder.add("layer_norm", "norm", [rows], ones)], {"matrix": np.ones((6, 2))})
    heads = builder.add("reshape", "heads", [wide], shape=(10, 2, 3))
    q = builder.add("transpose", "turned", [heads], order=(1, 0, 2))
    keys = builder.add("transpose", "keys", [q], order=(0, 2, 1))
    mixed = builder.add("attention", "mixed", [q, q, q, builder.add("matmul", "scores", [q, keys])], scale=0.5)
    means = builder.add("expand", "expanded", [builder.add("reduce_mean", "means", [mixed])], shape=(2, 10, 3))
    return build(builder.graph(builder.add("mul", "y", [mixed, means])))


# -- damage: the checksum stays --------------------------------------------------------------------------------------


def _flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    made = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        made[int(rng.integers(len(made)))] ^= 1 << int(rng.integers(8))
    return bytes(made)


def _overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(len(data)))
    return data[:start] + rng.bytes(int(rng.integers(1, 200))) + data[start + 1 :]


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def _append(data: bytes, rng: np.random.Generator) -> bytes:
    return data + rng.bytes(int(rng.integers(1, 1000)))


def _swap_blocks(data: bytes, rng: np.random.Generator) -> bytes:
    a, b, c = sorted(int(i) for i in rng.integers(len(data), size=3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _header(data: bytes, rng: np.random.Generator) -> bytes:
    made = bytearray(data)
    made[int(rng.integers(8 + int.from_bytes(data[:8], "little")))] ^= int(rng.integers(1, 256))
    return bytes(made)


def _as_text(data: bytes, rng: np.random.Generator) -> bytes:
    return data.replace(b"\r\n", b"\n") if rng.integers(2) else data.decode("latin-1").encode("utf-8")


class _Harmful:
    def __reduce__(self) -> tuple:
        return sys.exit, ("a plan ran code",)


def _foreign(_data: bytes, rng: np.random.Generator) -> bytes:
    others = (b"", pickle.dumps(_Harmful()), b"PK\x03\x04" + rng.bytes(500), b"ftrt" + rng.bytes(500), rng.bytes(5000))
    return others[int(rng.integers(len(others)))]


# -- tampering: the checksum is computed anew ------------------------------------------------------------------------


def _tampered(change: Callable[[Any, np.random.Generator], None]) -> Callable[[bytes, np.random.Generator], bytes]:
    def tamper(data: bytes, rng: np.random.Generator) -> bytes:
        text, weights = plan_file.parts(data)
        value = json.loads(text)
        for _ in range(int(rng.integers(1, 4))):
            change(value, rng)
        return plan_file.joined(json.dumps(value), weights)

    return tamper


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    found = [(value, key) for key in keys]
    for key in keys:
        found += _places(value[key])
    return found


def _place(value: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    places = _places(value)
    return places[int(rng.integers(len(places)))] if places else ({0: 0}, 0)


def _hostile(value: Any, rng: np.random.Generator) -> None:
    container, key = _place(value, rng)
    container[key] = HOSTILE[int(rng.integers(len(HOSTILE)))]


def _off_by_a_few(value: Any, rng: np.random.Generator) -> None:
    numbers = [(c, k) for c, k in _places(value) if isinstance(c[k], int) and not isinstance(c[k], bool)]
    if numbers:
        container, key = numbers[int(rng.integers(len(numbers)))]
        container[key] += int(rng.choice([-256, -16, -4, -1, 1, 4, 16, 256]))


def _another(value: Any, rng: np.random.Generator) -> None:
    """Change what a plan may well survive: a real number, a boolean, a tactic for one of the same operators."""
    places = [(c, k) for c, k in _places(value) if isinstance(c[k], bool | float) or (k == "tactic" and c[k])]
    container, key = places[int(rng.integers(len(places)))]
    old = container[key]
    if isinstance(old, bool):
        container[key] = not old
    elif isinstance(old, float):
        container[key] = old * float(rng.choice([-1, 0.5, 1.5, 100])) + float(rng.choice([0, 0.3]))
    else:
        names = [tactic.name for tactic in TACTICS if set(tactic.ops) & set(tactics.find(old).ops)]
        container[key] = str(rng.choice(names))


def _remove(value: Any, rng: np.random.Generator) -> None:
    container, key = _place(value, rng)
    del container[key]


def _repeat(value: Any, rng: np.random.Generator) -> None:
    lists = [c for c, _ in _places(value) if isinstance(c, list)]
    if lists:
        chosen = lists[int(rng.integers(len(lists)))]
        chosen.insert(int(rng.integers(len(chosen) + 1)), chosen[int(rng.integers(len(chosen)))])


def _exchange(value: Any, rng: np.random.Generator) -> None:
    (one, i), (other, j) = _place(value, rng), _place(value, rng)
    if not _contains(one[i], other) and not _contains(other[j], one):
        one[i], other[j] = other[j], one[i]


def _contains(value: Any, container: Any) -> bool:
    """Whether `container` lies in `value`: exchanging both would close a ring."""
    return value is container or any(c[k] is container for c, k in _places(value))


def _resealed_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage to the text, or to any byte of the file: safetensors' header and the arrays."""
    kinds = (_flip_bits, _overwrite, _cut, _append)
    damage = kinds[int(rng.integers(len(kinds)))]
    if rng.integers(2):
        text, weights = plan_file.parts(data)
        return plan_file.joined(damage(text.encode(), rng).decode(errors="replace"), weights)
    start = 8 if rng.integers(2) else 8 + int.from_bytes(data[:8], "little")
    return plan_file.sealed(data[:start] + damage(data[start:], rng))


def _arrays(data: bytes, rng: np.random.Generator) -> bytes:
    """Weights of other names, shapes and types; some lost, some too many."""
    text, weights = plan_file.parts(data)
    name = list(weights)[int(rng.integers(len(weights)))]
    array, types = weights.pop(name), (np.float64, np.float32, np.float16, np.int8, np.int64, np.uint8, np.bool_)
    changed = {
        "lost": {},
        "renamed": {("", "/", "x", name + "x", "../" + name, "é" * 500)[int(rng.integers(6))]: array},
        "one more": {name: array, name + "/bias": array},
        "of another type": {name: array.astype(types[int(rng.integers(len(types)))])},
        "of another shape": {name: array.reshape(-1)[: int(rng.integers(array.size + 1))]},
        "in another order": {name: array.T.copy()},
        "not finite": {name: np.full_like(array, np.nan) if array.dtype.kind == "f" else array + 1},
    }
    return plan_file.joined(text, weights | changed[list(changed)[int(rng.integers(len(changed)))]])


def _deep(data: bytes, rng: np.random.Generator) -> bytes:
    depth = int(rng.integers(1000, 200_000))
    return plan_file.joined("[" * depth + "]" * depth, {})


Damage = Callable[[bytes, np.random.Generator], bytes]
DAMAGE: dict[str, Damage] = {
    "bits flipped": _flip_bits,
    "bytes overwritten": _overwrite,
    "cut short": _cut,
    "bytes appended": _append,
    "blocks exchanged": _swap_blocks,
    "header changed": _header,
    "sent as text": _as_text,
    "another kind of file": _foreign,
}
TAMPERING: dict[str, Damage] = {
    "a value replaced": _tampered(_hostile),
    "a number changed": _tampered(_off_by_a_few),
    ANOTHER: _tampered(_another),
    "a value removed": _tampered(_remove),
    "an item repeated": _tampered(_repeat),
    "values exchanged": _tampered(_exchange),
    "bytes, sealed again": _resealed_bytes,
    "arrays changed": _arrays,
    "deep nesting": _deep,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what came of each kind; return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.labs.09_fusion.fuzz_plans", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args(arguments)
    outcome = fuzz(given.files, given.seed)
    for kind in (*DAMAGE, *TAMPERING):
        print(f"{kind:<22} {outcome.refused[kind]:>6} refused {outcome.loaded[kind]:>6} loaded")
    for failure in outcome.failures:
        print(f"FAILED (seed {given.seed}): {failure}", file=sys.stderr)
    refused, loaded = sum(outcome.refused.values()), sum(outcome.loaded.values())
    print(
        f"{given.files} files, seed {given.seed}: {refused} refused, {loaded} tampered plans valid in all their parts, "
        f"{outcome.ran} of those run; {len(outcome.failures)} failures"
    )
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
