"""Address patterns that all warps share: what a pattern gives is what the lanes give one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warplab.simulator.memory.address_patterns import Pattern
from warplab.simulator.memory.device_memory import ORIGIN
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import BankPassCache, Group

WARPS = 6
LANE = np.arange(32)
LANES = {
    "neighbours": 4 * LANE,
    "pairs of neighbours": 8 * LANE,
    "backwards": 4 * (31 - LANE),
    "strided": 36 * LANE,
    "a tile of 8 columns": 1024 * (LANE // 8) + 4 * (LANE % 8),
    "a column": 128 * LANE,
    "one address": 0 * LANE,
    "bytes": LANE,
    "odd": 4 * LANE + LANE % 2,
    "before the first": 4 * (LANE % 2) - 64 * LANE,
}


def whole_group():
    lanes = 32 * WARPS
    chunk = SimpleNamespace(
        lanes=lanes,
        warps=WARPS,
        warp_of=np.arange(lanes) // 32,
        lane_of=(np.arange(lanes) % 32).astype(np.uint32),
        passes=BankPassCache(),
    )
    return Group(chunk, None)


@pytest.mark.parametrize("name", LANES)
@settings(max_examples=25)
@given(
    start=st.sampled_from([ORIGIN + 4096, 8192]),
    warps=st.lists(st.integers(0, 300), min_size=WARPS, max_size=WARPS),
    unit=st.sampled_from([1, 2, 4, 16, 32, 128]),
    offset=st.sampled_from([0, 4, 12, 128, -8, 3]),
)
def test_a_pattern_gives_what_lanes_give(name, start, warps, unit, offset):
    base = (start + unit * np.array(warps)[:, None] + LANES[name]).reshape(-1).astype(np.uint64)
    group = whole_group()
    found, plain = Addresses(base, WARPS), Addresses(base)
    assert found.pattern is not None
    assert plain.pattern is None
    assert (found.low, found.high) == (plain.low, plain.high)
    for item in (1, 2, 4, 8, 16):
        assert (found.bits & (item - 1) == 0) == (plain.bits & (item - 1) == 0)
        if plain.bits & (item - 1) == 0:
            assert found.items(item).tolist() == plain.items(item).tolist()
    assert found.distinct(group) == plain.distinct(group)
    assert found.sectors(offset, group) == plain.sectors(offset, group)
    for width in (4, 8, 16) if start < ORIGIN else ():  # shared memory
        for op in ("load", "store", "atomic"):
            assert found.wavefronts(offset, width, group, op) == plain.wavefronts(offset, width, group, op)
    touched = found.pattern.numbers_of_sectors(offset - start)
    if touched is not None:
        assert set(touched.reshape(-1).tolist()) == set(
            ((base.astype(np.int64) + offset - start) // 32).tolist(),
        )


@pytest.mark.parametrize("lane", [0, 31, 32, 33, 100, 191])
def test_one_lane_out_of_line_is_no_pattern(lane):
    base = ORIGIN + 4 * np.arange(32 * WARPS).astype(np.uint64)
    assert Pattern.of(base, WARPS) is not None
    base[lane] += 4
    assert Pattern.of(base, WARPS) is None


def test_addresses_before_the_memory_are_no_pattern():
    base = (4 * np.arange(32 * WARPS) - 64).astype(np.uint64)
    assert Pattern.of(base, WARPS) is None
    assert Addresses(base, WARPS).high >> 63
