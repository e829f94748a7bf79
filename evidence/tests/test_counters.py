"""The simulator's counters against those that Nsight Compute read on a GPU, one launch for each pattern."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from evidence.counters.launches import LAUNCHES
from tests.support.ncu_harness import check_measured, check_recorded
from tools import ncu
from warplab.launch.kernel_source import source_of
from warplab.launch.simulate import simulate

TOPIC = "evidence.counters"


def test_counters_are_those_of_the_hardware():
    few_differ(check_recorded(TOPIC))


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute (ncu) is not installed")
def test_ncu_counts_what_the_simulator_counts():
    check_measured(TOPIC)


def few_differ(comparisons):
    """Nearly all counters are equal, whole branches too."""
    # The metric of the bytes leaves out copies to shared memory, of which there are many launches.
    unequal = [c for c in comparisons if not c.equal and (c.counter, c.ncu) != ("global_load_bytes", 0)]
    launches = {c.launch for c in unequal if c.counter in ncu.EQUAL}
    assert len(launches) <= 10 < 300 < len({c.launch for c in comparisons})
    assert not [c for c in unequal if c.counter in ncu.EQUAL and c.counter.startswith("shared")]
    branches = [c for c in comparisons if c.counter in ncu.BRANCHES]
    assert len({c.launch for c in branches if c.ncu}) > 200
    unequal = [c for c in branches if not c.equal]
    assert all(c.difference is not None for c in unequal)
    assert len({c.launch for c in unequal}) <= 9


def test_at_least_thirty_kernels_are_compared():
    kernels = {source_of(launch.kernel()).name for launch in LAUNCHES}
    assert len(kernels) >= 30


@pytest.mark.parametrize(("apart", "wavefronts"), [(64, 64), (80, 120)])
def test_copies_past_the_l1_cache_have_no_conflicts(apart, wavefronts):
    """Tiles of 64-byte rows, 1024 bytes apart in global memory: as ncu read them on an H100 80GB HBM3, 2026-11-23."""
    name = f"tile of 64-byte rows, 1024 apart to {apart} apart"
    launch = next(launch for launch in LAUNCHES if launch.name == name)
    arguments = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in launch.arguments)
    counts = simulate(launch.kernel(), launch.grid, launch.block, arguments, shared_bytes=launch.shared_bytes).counts
    assert (counts.shared_copy_requests, counts.shared_copy_wavefronts) == (8, wavefronts)
    assert counts.shared_copy_conflicts == 0
