"""`assert_counters`: limits of counters, by launch, kernel or profile."""

from __future__ import annotations

import numpy as np
import pytest

import warplab
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

COPY = "__global__ void copy(const float* x, float* y, int stride) { int i = threadIdx.x; y[i] = x[i * stride]; }"


def _launch(stride: int):
    x, y = np.ones(1024, np.float32), np.zeros(32, np.float32)
    return simulate(CudaSource(COPY, "copy"), 1, 32, (x, y, np.int32(stride)))


def test_limits_hold_or_say_the_value() -> None:
    launch = _launch(8)
    warplab.assert_counters(launch, sectors_per_load_request=32, sectors_per_request__le=18, global_store_sectors__lt=5)
    warplab.assert_counters(launch, shared_load_bank_conflicts__le=0)  # a label of the report
    with pytest.raises(AssertionError, match=r"copy: sectors_per_load_request is 32; at most 4 was asked for$"):
        warplab.assert_counters(launch, sectors_per_load_request__le=4, sectors_per_store_request__le=4)
    warplab.assert_counters(launch, bank_conflicts=0, load_efficiency=1 / 8)
    with pytest.raises(AssertionError, match="bank_conflicts is 0; at least 1 was asked for"):
        warplab.assert_counters(launch, bank_conflicts__ge=1)
    with pytest.raises(ValueError, match=r"load_efficiency is a fraction.*write load_efficiency__ge=0.95$"):
        warplab.assert_counters(launch, load_efficiency__ge=95)
    nothing = simulate(CudaSource("__global__ void idle() {}", "idle"), 1, 32, ())
    with pytest.raises(AssertionError, match="load_efficiency is not defined, as the kernel made no such access"):
        warplab.assert_counters(nothing, load_efficiency__ge=0.5)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    launch = _launch(1)
    with pytest.raises(ValueError, match="no counter sector_per_request; the nearest is sectors_per_request"):
        warplab.assert_counters(launch, sector_per_request__le=4)
    with pytest.raises(ValueError, match="no comparison max; choose among le, lt"):
        warplab.assert_counters(launch, sectors_per_request__max=4)
    with pytest.raises(ValueError, match="needs a limit"):
        warplab.assert_counters(launch)


def test_without_a_record_it_says_how_to_get_one() -> None:
    with pytest.raises(LookupError, match=r"no kernel copy was launched that is recorded.*pytest --warplab"):
        warplab.assert_counters("copy", sectors_per_request__le=4)
