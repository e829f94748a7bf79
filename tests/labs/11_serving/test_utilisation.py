"""What NVML, DCGM and Nsight Compute say of the same kernels, in virtual time."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.serving import recordings
from kernels.serving.utilisation.virtual import Kernel, Look, looked_at, samples

SMS, WARPS = 132, 132 * 64  # of an H100


def part_of_the_time(duty, every, until):
    return [Kernel(i * every, duty * every, 1, 1) for i in range(round(until / every))] if duty else []


def test_one_thread_is_full_utilisation_and_next_to_no_activity():
    look = looked_at([Kernel.launched(0, 1, grid=1, block=1)], 0, 1)
    assert look.utilisation == 1
    assert look.sm_activity == pytest.approx(1 / SMS)
    assert look.occupancy == pytest.approx(1 / WARPS)


def test_idle_time_is_idle():
    assert looked_at([], 0, 1) == Look(0, 1, 0, 0, 0)
    assert looked_at([Kernel(1, 1, 1, 1)], 0, 1).utilisation == 0
    assert looked_at([Kernel(-1, 1, 1, 1)], 0, 1).utilisation == 0


def test_kernels_beside_each_other_are_used_time_once_and_sms_twice():
    two = [Kernel(0, 0.6, 40, 80), Kernel(0.4, 0.4, 100, 400)]
    look = looked_at(two, 0, 1)
    assert look.utilisation == pytest.approx(0.8)
    assert look.sm_activity == pytest.approx((0.4 * 40 + 0.2 * SMS + 0.2 * 100) / SMS)  # 140 SMs there are not
    assert look.occupancy == pytest.approx((0.4 * 80 + 0.2 * 480 + 0.2 * 400) / WARPS)


def test_a_period_tells_only_its_own_part():
    found = samples([Kernel(0.05, 0.1, 1, 1)], 0.1, 0.3)
    assert [look.utilisation for look in found] == pytest.approx([0.5, 0.5, 0])
    assert [(look.start, look.end) for look in found] == [
        (0, 0.1),
        (0.1, 0.2),
        pytest.approx((0.2, 0.3)),
    ]
    assert len(samples([Kernel(0, 1, 1, 1)], 0.1)) == 10  # rounding adds no eleventh
    assert samples([], 0.1) == []


@pytest.mark.parametrize("duty", [0, 0.25, 0.5, 0.8, 1])
def test_a_part_of_the_time_is_the_utilisation(duty):
    kernels = part_of_the_time(duty, 0.05, 1.0)
    assert len(kernels) == (20 if duty else 0)
    assert looked_at(kernels, 0, 1).utilisation == pytest.approx(duty)


def test_the_tail_of_a_grid_leaves_sms_idle():
    blocks = 8 * SMS  # of 256 threads at once
    full, tail = (Kernel.launched(0, 1, grid, 256) for grid in (blocks, blocks + 1))
    assert (full.sms, full.warps) == (SMS, WARPS)
    assert tail.sms == (SMS + 1) / 2
    assert tail.warps == (WARPS + 8) / 2


def test_blocks_go_to_different_sms_first():
    assert Kernel.launched(0, 1, 100, 32).sms == 100
    assert Kernel.launched(0, 1, 100, 32).warps == 100
    assert Kernel.launched(0, 1, 133, 1024).sms == SMS  # two fit on an SM
    assert Kernel.launched(0, 1, 133, 1024, registers=64).sms == (SMS + 1) / 2  # one does
    assert Kernel.launched(0, 1, 1, 33).warps == 2


times = st.floats(0, 10, allow_nan=False)
kernels_of = st.lists(
    st.builds(Kernel, times, st.floats(0.001, 5), st.integers(1, SMS), st.integers(SMS, WARPS)),
    max_size=6,
)


@given(kernels_of, st.floats(0.05, 3))
def test_shares_are_shares_and_the_samples_add_up(kernels, period):
    found = samples(kernels, period, 12.0)
    whole = looked_at(kernels, 0, len(found) * period)
    for name in ("utilisation", "sm_activity", "occupancy"):
        values = [getattr(look, name) for look in found]
        assert all(0 <= value <= 1 + 1e-9 for value in values)
        assert sum(values) / len(values) == pytest.approx(getattr(whole, name), abs=1e-6)
    for look in found:
        assert look.sm_activity <= look.utilisation + 1e-9


@given(kernels_of)
def test_the_order_of_kernels_does_not_matter(kernels):
    shuffled = random.Random(1).sample(kernels, len(kernels))
    assert looked_at(shuffled, 0, 5).occupancy == pytest.approx(looked_at(kernels, 0, 5).occupancy)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="takes no time"):
        Kernel(0, 0, 1, 1)
    with pytest.raises(ValueError, match="on 2 SMs with 1 warps"):
        Kernel(0, 1, 2, 1)
    with pytest.raises(ValueError, match="no span of time"):
        looked_at([], 1, 1)
    with pytest.raises(ValueError, match="samples nothing; NVML's are 1/6 s to 1 s"):
        samples([], 0)
    with pytest.raises(ValueError, match="at least one block, not 0"):
        Kernel.launched(0, 1, 0, 32)
    with pytest.raises(ValueError, match="no block fits on an SM: 32 warps of 255 registers"):
        Kernel.launched(0, 1, 1, 1024, registers=255)
    with pytest.raises(ValueError, match="no card is named"):
        looked_at([], 0, 1, "H99")


def test_gaps_between_kernels_are_between_samples_too():
    kernels = part_of_the_time(0.5, 0.2, 1.0)
    busy = [look.utilisation for look in samples(kernels, 0.1, 1.0)]
    assert busy == pytest.approx(list(itertools.islice(itertools.cycle([1, 0]), 10)))


def test_the_model_predicts_the_samples_that_an_h100_kept():
    value = recordings.recorded("utilisation_step").value
    period = recordings.recorded("utilisation").value["sample_period_seconds"]
    kernel = Kernel(0.0, value["ended_seconds"], 1, 1)
    assert len(value["samples"]) >= 10
    for end, share in value["samples"]:
        assert looked_at([kernel], end - period, end).utilisation == pytest.approx(share, abs=0.02)


def test_the_model_predicts_what_an_h100_showed_of_part_of_the_time():
    rows = [row for row in recordings.recorded("utilisation").value["rows"] if "one thread" in row["load"]]
    assert [row["duty"] for row in rows] == [0.25, 0.5, 0.8, 1]
    told = 0
    for row in rows:
        look = looked_at(part_of_the_time(row["duty"], 0.05, 1.0), 0, 1)
        assert look.utilisation == pytest.approx(row["nvml"], abs=0.02)
        if row["gpm"]["sm"] is not None:
            told += 1
            assert look.sm_activity == pytest.approx(row["gpm"]["sm"], rel=0.02)
            assert look.occupancy == pytest.approx(row["gpm"]["occupancy"], rel=0.02)
    assert told >= 3


def test_ncu_and_the_model_agree_on_sm_activity():
    rows = {row["load"]: row for row in recordings.recorded("utilisation_counted").value["rows"]}
    one, each = Kernel.launched(0, 1, 1, 256), Kernel.launched(0, 1, 132, 32)
    for kernel, name in ((one, "one thread"), (each, "one warp on each SM")):
        assert looked_at([kernel], 0, 1).sm_activity == pytest.approx(rows[name]["sm"], rel=0.01)
    # A block of 256 threads of which one has work: the other warps end at once, and one stays.
    assert rows["one thread"]["occupancy"] == pytest.approx(1 / 64, rel=0.01)
