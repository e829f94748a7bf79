"""Products of f16 as machine code: the bits of NumPy's, from registers to registers."""

import numpy as np
import pytest

from tests.support.random_inputs import generator
from warplab.simulator.numerics import tensor_cores
from warplab.simulator.ptx.program import Where
from warplab.simulator.run.matrix_operations import MatrixOperations
from warplab.simulator.run.warpgroups import Warpgroups
from warplab.simulator.translate import half_products, machine_compiler, matrix_instructions
from warplab.simulator.translate.warpgroup_instructions import warpgroup_product

pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="LLVM does not know this processor")
KINDS = "f16", "f16", "f32", "f32"
WHERE = Where("", 0)
# Ranges of bits without sign: any finite number, the largest, subnormal ones and zeros, around 1, one number.
HALVES = [(0, 0x7C00), (0x7B00, 0x7C00), (0, 0x400), (0, 1), (0x3800, 0x3C00), (0x7BFF, 0x7C00)]
SUMS = [(0, 0x7F800000), (0x7F000000, 0x7F800000), (0, 0x1000000), (0, 1), (0x3F000000, 0x40000000)]


def numbers(random, shape: tuple[int, ...], kinds: list[tuple[int, int]], signed: bool = True) -> np.ndarray:
    """Bits of f16 or f32 of one kind, half of them zeros at times."""
    bits = random.integers(*kinds[random.integers(len(kinds))], shape, np.uint32)
    bits = np.where(random.random(shape) < random.choice([0, 0.5]), 0, bits)
    sign = 0x8000 if kinds is HALVES else 0x80000000
    bits = bits | np.where(random.random(shape) < 0.5 * signed, sign, 0)
    return bits.astype(np.uint16 if kinds is HALVES else np.uint32)


def registers(random, count: int, lanes: int, kinds: list[tuple[int, int]]) -> list[np.ndarray]:
    one = numbers(random, (lanes, 4 // (2 if kinds is HALVES else 4) * count), kinds, random.random() < 0.8)
    return [np.ascontiguousarray(x) for x in one.view(np.uint32).T]


def by_numpy(instruction, a, b, c, warps: int) -> list[np.ndarray]:
    matrices = [
        MatrixOperations._matrix(x, bits, fragment, gather, warps)
        for x, bits, fragment, gather in zip(
            (a, b, c), (16, 16, 32), instruction.fragments, instruction.gathers, strict=False
        )
    ]
    d = tensor_cores.multiply_add(*matrices, KINDS, instruction.arithmetic)
    return MatrixOperations._registers(d.reshape(-1, warps)[instruction.scatter].T, 32 * warps)


@pytest.mark.parametrize(
    "instruction",
    [
        matrix_instructions.mma("m16n8k16", ("row", "col"), KINDS, False, WHERE, ""),
        matrix_instructions.wmma("m16n16k16", KINDS, False, WHERE, ""),
    ],
    ids=["mma", "wmma"],
)
def test_the_bits_of_numpy_for_warps(instruction):
    random = generator()
    for _ in range(100):
        warps, tiles = int(random.integers(1, 5)), instruction.tiles
        a, b = (registers(random, n, 32 * warps, HALVES) for n in (4, 2 * tiles))
        c = registers(random, 4 * tiles, 32 * warps, SUMS)
        if instruction.fragments[0].row.shape[1] > 8:  # wmma holds the elements twice
            want = by_numpy(instruction, a * 2, b * (4 // tiles), c, warps)
        else:
            want = by_numpy(instruction, a, b, c, warps)
        np.testing.assert_array_equal(half_products.of_warps(a, b, c, warps), want)


@pytest.mark.parametrize("n", [8, 24, 256])
def test_the_bits_of_numpy_for_warpgroups(n):
    random = generator()
    for _ in range(30):
        groups, negated = int(random.integers(1, 4)), tuple(random.random(2) < 0.5)
        left, right = (numbers(random, (groups, rows, 16), HALVES) for rows in (64, n))
        c = registers(random, n // 2, 128 * groups, SUMS)
        instruction = warpgroup_product(f"m64n{n}k16", KINDS[:3], (False, False), negated, False, WHERE, "")
        held = Warpgroups._from_sums(instruction, c, groups)
        how = instruction.kinds, negated, instruction.arithmetic
        want = Warpgroups._to_sums(tensor_cores.warpgroup_product(left, right, held, *how), groups)
        np.testing.assert_array_equal(half_products.of_warpgroups(left, right, negated, c), want)


@pytest.mark.parametrize("where", range(3))
def test_infinity_and_nan_are_left_to_numpy(where):
    random = generator()
    a, b = (registers(random, count, 64, HALVES) for count in (4, 2))
    c = registers(random, 4, 64, SUMS)
    assert half_products.of_warps(a, b, c, 2) is not None
    register = [a, b, c][where][random.integers(2)]
    register[random.integers(64)] = random.choice([0x7C000000, 0x00007E00] if where < 2 else [0xFF800000, 0x7FC00000])
    assert half_products.of_warps(a, b, c, 2) is None
