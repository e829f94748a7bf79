"""Scalar instructions and the CUDA math library against results recorded on a GPU (`tests.support.recorded`)."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.support.instruction_cases import Case, bits_of, cases
from tests.support.math_cases import math_cases, math_ptx
from tests.support.ptx_harness import NUMPY, get, ptx_of, put
from tests.support.recorded import RECORDED, load
from warplab import simulator

OPTIONS = simulator.Options(checks=False, counters=False)


@functools.cache
def recorded(name: str) -> dict[str, np.ndarray]:
    return load(RECORDED / f"{name}.npz")


@functools.cache
def device() -> simulator.Device:
    return simulator.Device(256 << 20)


def execute(entry, inputs: list[np.ndarray], dtype: str) -> np.ndarray:
    """Bit patterns of a kernel's results, one per element."""
    n = inputs[0].size
    addresses = [put(device(), values) for values in inputs]
    addresses.append(device().memory.allocate(n * np.dtype(dtype).itemsize))
    params = [*(a.to_bytes(8, "little") for a in addresses), n.to_bytes(4, "little")]
    device().launch(entry, (-(-n // 64),), (64,), params, options=OPTIONS)
    result = get(device(), addresses[-1], n, dtype)
    for address in addresses:
        device().memory.free(address)
    return result


def as_floats(bits: np.ndarray, kind: str) -> np.ndarray:
    if kind.endswith("x2"):
        return as_floats(bits.view(np.uint16), kind[:-2])
    if kind == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(f"f{bits.itemsize}").astype(np.float64)


def ulps_apart(seen: np.ndarray, want: np.ndarray, kind: str) -> np.ndarray:
    """Distance in floats of the kind; NaN is 0 from NaN and infinitely far from numbers."""
    if kind.endswith("x2"):
        seen, want, kind = seen.view(np.uint16), want.view(np.uint16), kind[:-2]
    a, b = as_floats(seen, kind), as_floats(want, kind)
    low_bits = (1 << (bits_of(kind) - 1)) - 1
    seen, want = ((x & x.dtype.type(low_bits)).astype(np.int64) for x in (seen, want))
    distance = np.where(np.signbit(a) == np.signbit(b), np.abs(seen - want), 1.0 * seen + want)
    distance[np.isnan(a) & np.isnan(b)] = 0
    distance[np.isnan(a) != np.isnan(b)] = np.inf
    return distance


def differing(case, seen: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Which results differ by more than the case allows?"""
    if case.output == "f64":  # of two NaN operands' payloads the hardware keeps one or the other
        both = np.isnan(seen.view(np.float64)) & np.isnan(want.view(np.float64))
        seen = np.where(both, want, seen)
    if not case.ulps:
        return seen != want
    bad = ulps_apart(seen, want, case.output) > case.ulps
    with np.errstate(invalid="ignore"):
        bad &= ~(np.abs(as_floats(seen, case.output) - as_floats(want, case.output)) <= case.absolute)
    return bad if bad.size == seen.size else bad.reshape(seen.size, -1).any(axis=1)


def report(case, inputs, seen: np.ndarray, want: np.ndarray) -> str:
    bad = differing(case, seen, want)
    lines = [f"{bad.sum()} of {bad.size} differ"]
    for k in np.flatnonzero(bad)[:8]:
        lines.append(f"{', '.join(f'{int(v[k]):#x}' for v in inputs)} -> {int(seen[k]):#x}, GPU {int(want[k]):#x}")
    return "\n".join(lines)


def run_case(case: Case) -> tuple[np.ndarray, list[np.ndarray]]:
    entry = simulator.load(ptx_of(case.body, case.input_types, case.output_type)).entries["kernel"]
    inputs = case.values()
    return execute(entry, inputs, NUMPY[case.output_type]), inputs


GROUPS: dict[str, list[Case]] = {}
for _case in cases():
    _lead = next(word for word in _case.body.split() if "." in word.rstrip(";") and word[0] != ".")
    GROUPS.setdefault(_lead.split(".")[0], []).append(_case)


@pytest.mark.parametrize("opcode", sorted(GROUPS))
def test_instruction_gives_the_bits_of_the_gpu(opcode):
    problems = []
    for case in GROUPS[opcode]:
        seen, inputs = run_case(case)
        want = recorded("instructions")[case.body]
        if differing(case, seen, want).any():
            problems.append(f"{case.body}\n{report(case, inputs, seen, want)}")
    assert not problems, "\n".join(problems)


@functools.cache
def program(fast: bool) -> simulator.Program:
    return simulator.load(math_ptx(fast))


def test_the_recordings_are_complete():
    assert recorded("instructions").keys() == {case.body for case in cases()}
    for fast in (False, True):
        assert recorded("math_fast" if fast else "math").keys() == {case.name for case in math_cases(fast)}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("inputs", sorted({case.inputs for case in math_cases()}), ids="_".join)
def test_cuda_function_gives_the_bits_of_the_gpu(inputs, fast):
    problems = []
    for case in math_cases(fast):
        if case.inputs == inputs:
            seen = execute(program(fast).entries[case.name], case.values(), case.output_dtype)
            want = recorded("math_fast" if fast else "math")[case.name]
            if differing(case, seen, want).any():
                problems.append(f"{case.expression}\n{report(case, case.values(), seen, want)}")
    assert not problems, "\n".join(problems)
