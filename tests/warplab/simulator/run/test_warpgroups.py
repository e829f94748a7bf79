"""wgmma: where its operands and sums lie, its arithmetic, its groups, and what the simulator objects to.

The layouts are those of the PTX ISA, the arithmetic is that of MMA-Sim's model of an H100; an H100 gives the same bits.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.ptx_harness import get, put
from tests.support.random_inputs import generator
from tests.support.warpgroup_cases import (
    Case,
    Launch,
    bits_of,
    cases,
    launch_of,
    one_sum,
    recordings,
    results_of,
    small_numbers,
    value_of,
)
from warplab import simulator
from warplab.simulator.translate import aligned_sums

KIND = {"f16": np.float16, "f32": np.float32, "s32": np.int32}


def run(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray, add: bool, **options) -> tuple[np.ndarray, object]:
    """D of each block and warpgroup, (blocks, groups, 64, n), bits, and the profile; the rest as in `launch_of`."""
    launch = launch_of(case, a, b, c, add)
    found, profile = registers_of(launch, **options)
    return results_of(case, found, launch.blocks), profile


def registers_of(launch: Launch, **options) -> tuple[np.ndarray, object]:
    """What the threads of a launch return, uint8, and the profile."""
    device = simulator.Device(64 << 20)
    pointers = [put(device, data) for data in (*launch.inputs, np.zeros(launch.size, np.uint8))]
    params = [address.to_bytes(8, "little") for address in pointers] + [number.tobytes() for number in launch.numbers]
    entry = simulator.load(launch.ptx).entries["wgmma"]
    options = simulator.Options(**options)
    profile = device.launch(entry, (launch.blocks,), (launch.threads,), params, options=options)
    return get(device, pointers[-1], launch.size, "u1"), profile


RECORDED = Path(__file__).parent / "recorded" / "wgmma_h100.npz"


@pytest.mark.parametrize("times", [aligned_sums.TIMES, 0], ids=["numpy", "machine-code"])
def test_the_bits_of_an_h100(times, monkeypatch):
    monkeypatch.setattr(aligned_sums, "TIMES", times)
    monkeypatch.setattr(aligned_sums, "_spent", Counter())
    with np.load(RECORDED) as recorded:
        for name, launch in recordings().items():
            ours, _ = registers_of(launch)
            np.testing.assert_array_equal(ours.view("u4"), recorded[name].view("u4"), err_msg=name)


def test_what_would_be_recorded_runs():
    """Any bits, too: NaN and infinities come out as such, and nothing stops."""
    for name, launch in recordings().items():
        if "n8_" in name:
            assert registers_of(launch)[0].any()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_products_of_small_integers(case):
    """Exact in every type, so that each element tells where its factors and its sum lie."""
    random = generator()
    blocks, groups = (3, 1) if case.n > 128 else (2, 2)
    a, left = small_numbers(case.kinds[1], (blocks, groups, 64, case.k), random)
    b, right = small_numbers(case.kinds[2], (blocks, case.n, case.k), random)
    c, added = small_numbers(case.kinds[0], (blocks, groups, 64, case.n), random)
    for add in (False, True):
        d, profile = run(case, a, b, c, add)
        want = case.scales[0] * case.scales[1] * np.einsum("bgmk,bnk->bgmn", left, right) + added * add
        np.testing.assert_array_equal(d.view(KIND[case.kinds[0]]), want)
    factors = case.kinds[1] if case.kinds[1] == case.kinds[2] else ".".join(case.kinds[1:])
    assert profile.tensor_operations == {f"m64n{case.n}k{case.k}.{case.kinds[0]}.{factors}": blocks * groups}
    assert profile.counts.tensor_operations == 4 * blocks * groups
    assert profile.mix["tensor"] == 4 * blocks * groups


@pytest.mark.parametrize("saturate", [False, True])
def test_integers_wrap_or_are_clamped(saturate):
    case = Case(8, ("s32", "s8", "s8"), saturate=saturate)
    a, b = (np.full(shape, 127, np.uint8) for shape in ((1, 1, 64, 32), (1, 8, 32)))
    c = np.full((1, 1, 64, 8), 2**31 - 10, np.uint32)
    d, _ = run(case, a, b, c, True)
    total = 2**31 - 10 + 32 * 127**2
    assert set(d.reshape(-1).tolist()) == {2**31 - 1 if saturate else total}


LEAST = {"f16": -14, "bf16": -126, "tf32": -126, "f32": -126, "e4m3": -6, "e5m2": -14}


@pytest.mark.parametrize("style", ["near", "wide"])
@pytest.mark.parametrize(
    ("d", "kinds"),
    [
        ("f32", ("f16", "f16")),
        ("f16", ("f16", "f16")),
        ("f32", ("bf16", "bf16")),
        ("f32", ("tf32", "tf32")),
        ("f32", ("e4m3", "e5m2")),
        ("f32", ("e4m3", "e4m3")),
        ("f16", ("e5m2", "e4m3")),
    ],
)
def test_sums_are_cut_as_in_the_model(d, kinds, style):
    random = generator()
    case = Case(8, (d, *kinds))
    a, left = numbers(kinds[0], (1, 1, 64, case.k), style, random)
    b, right = numbers(kinds[1], (1, 8, case.k), style, random)
    c, added = numbers(d, (1, 1, 64, 8), style, random)
    found, _ = run(case, a, b, c, True)
    small = kinds[0] in ("e4m3", "e5m2")
    output = d if d == "f16" else "e8m13" if small else "f32"
    least = LEAST[kinds[0]], LEAST[kinds[1]], LEAST[d]
    found = found.view(KIND[d]).astype(np.float64)[0, 0]
    rows = random.choice(64, 12, replace=False)
    exact = 0
    for row in rows:
        for column in range(8):
            parts = left[0, 0, row].tolist(), right[0, column].tolist()
            want = one_sum(*parts, float(added[0, 0, row, column]), least, 13 if small else 25, output)
            assert found[row, column] == float(want)
            exact += float(want) == sum(x * y for x, y in zip(*parts, strict=True)) + added[0, 0, row, column]
    assert exact < rows.size * 8, "nothing was rounded"


def numbers(kind: str, shape, style: str, random) -> tuple[np.ndarray, np.ndarray]:
    """Bits and values of random numbers: near 1, or of many sizes and often zero, some of them subnormal."""
    if kind in ("e4m3", "e5m2"):
        low, high = (0x30, 0x40) if style == "near" else (0, 0x50)
        codes = random.integers(low, high, shape) | random.integers(0, 2, shape) << 7
        values = np.vectorize(lambda code: value_of(int(code), kind), otypes=[float])(codes)
        return codes.astype(np.uint8), values
    spread = 1 if style == "near" else 12
    values = random.standard_normal(shape) * 2.0 ** random.integers(-spread, spread // 4 + 1, shape)
    if style == "wide":
        values *= random.integers(0, 2, shape)
    if kind in ("tf32", "bf16"):
        mask = np.uint32(0xFFFFE000 if kind == "tf32" else 0xFFFF0000)
        values = (values.astype(np.float32).view(np.uint32) & mask).view(np.float32)
    else:
        values = values.astype(KIND[kind])
    return bits_of(values, kind), values.astype(np.float64)
