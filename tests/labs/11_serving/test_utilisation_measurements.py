"""The measurement of utilisation against a GPU in virtual time, through a fake NVML."""

import importlib.util
import sys
from pathlib import Path

import pytest

from kernels.serving.utilisation import measurements as measured
from kernels.serving.utilisation.measurements import PERIOD, Workload, keep_busy, measure
from kernels.serving.utilisation.nvml import Activity, NoNvml, NvmlGpu
from tests.support.machines import needs_idle_gpu

_spec = importlib.util.spec_from_file_location("fake_nvml", Path(__file__).with_name("fake_nvml.py"))
fake_nvml = sys.modules.setdefault("fake_nvml", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(fake_nvml)
FakeNvml = fake_nvml.FakeNvml


def row(fake, duty, seconds=None, sms=1, warps=1):
    launch = None if seconds is None else lambda: fake.run(seconds, sms, warps)
    gpu = NvmlGpu(library=fake)
    found = measure(
        Workload("a load", duty, launch), gpu, run=lambda queue: queue(), clock=fake.clock, sleep=fake.clock.sleep
    )
    gpu.close()
    assert fake.open == 0
    assert not fake.readings  # each was freed
    return found


def test_an_idle_gpu_is_idle():
    found = row(FakeNvml(), 0.0)
    assert found["kernels"] == found["kernels_ran"] == found["nvml"] == 0
    assert found["gpm"]["sm"] == found["gpm"]["graphics"] == 0
    assert found["watts"] is None
    assert found["sm_mhz"] == 1980


def test_one_thread_and_a_full_card_are_both_fully_utilised():
    one, full = row(FakeNvml(), 1.0, 0.01), row(FakeNvml(), 1.0, 0.01, 132, 132 * 64)
    for found in (one, full):
        assert found["nvml"] == pytest.approx(1, abs=0.005)
        assert found["kernels_ran"] == pytest.approx(1, abs=0.03)
        assert found["nvml_samples"] > 10
    assert one["gpm"]["sm"] == pytest.approx(1 / 132, rel=0.03)
    assert one["gpm"]["occupancy"] == pytest.approx(1 / 132 / 64, rel=0.03)
    assert full["gpm"]["sm"] == pytest.approx(1, rel=0.03)
    assert full["gpm"]["fp32"] is None


@pytest.mark.parametrize("duty", [0.25, 0.5, 0.8])
def test_a_part_of_the_time(duty):
    found = row(FakeNvml(), duty, duty * PERIOD)
    assert found["kernels"] == round(measured.WINDOW / PERIOD)
    assert found["kernels_ran"] == pytest.approx(duty, rel=0.01)
    assert found["nvml"] == pytest.approx(duty, abs=0.02)
    assert found["gpm"]["sm"] == pytest.approx(duty / 132, rel=0.03)
    assert all(period == pytest.approx(fake_nvml.PERIOD, rel=0.01) for period in found["periods_seconds"])


def test_without_samples_and_counters_the_rate_is_what_is_left():
    found = row(FakeNvml(gpm=False, keeps_samples=False), 1.0, 0.01)
    assert found["nvml"] == 1
    assert found["nvml_samples"] == 0
    assert set(found["gpm"].values()) == {None}


def test_kernels_that_take_long_are_not_queued_without_end():
    fake = FakeNvml()
    ran = keep_busy(lambda: fake.run(0.3), 1.0, clock=fake.clock, sleep=fake.clock.sleep)
    assert 4 <= len(ran) <= 4 + measured.AHEAD
    late = FakeNvml()  # each kernel takes longer than the time between two beginnings
    assert len(keep_busy(lambda: late.run(2 * PERIOD), 1.0, 0.5, clock=late.clock, sleep=late.clock.sleep)) == 20


def test_names_of_loads_and_ncu_agree():
    assert measured.WITH_KERNELS[:3] == (
        "one thread, 25 % of the time",
        "one thread, 50 % of the time",
        "one thread, 80 % of the time",
    )
    assert len(set(measured.WITH_KERNELS)) == len(measured.WITH_KERNELS) == 7


def test_no_gpu_is_said_with_what_to_do():
    with pytest.raises(NoNvml, match=r"NVML finds no GPU 0 .*; `make doctor` says"):
        NvmlGpu(library=FakeNvml(found=False))
    gpu = NvmlGpu(library=FakeNvml(gpm=False))
    assert gpu.reading() is None
    assert gpu.between(None, None) == Activity()


@pytest.mark.parametrize(("refusals", "told"), [(0, True), (4, True), (5, False)])
def test_a_reading_that_is_refused_is_tried_again(refusals, told):
    fake = FakeNvml()
    fake.refusals = refusals
    gpu = NvmlGpu(library=fake)
    reading = gpu.reading()
    assert (reading is not None) == told
    gpu.forget(reading)
    assert not fake.readings


def test_a_metric_that_is_no_number_is_not_told():
    fake = FakeNvml()
    gpu = NvmlGpu(library=fake)
    before = gpu.reading()
    fake.clock.sleep(1)
    found = gpu.between(before, gpu.reading())
    assert found.sm == 0
    assert found.dram is None


def test_tables_of_the_benchmark():
    value = {"rows": [{"load": measured.ONE_THREAD, **row(FakeNvml(), 1.0, 0.01)} | {"load": measured.ONE_THREAD}]}
    text = measured.TABLES["utilisation"].text(value)
    assert "SM activity, %" in text
    assert [cell for cell in text.splitlines()[-1].split("  ") if cell][-1].strip() == "-"  # DRAM: not told
    assert measured.TABLES["utilisation"].summary(value)["one thread"]["nvml"] == pytest.approx(1, abs=0.01)
    road = {"case": "a kernel", "seconds": 2e-6, "memory": 0.7, "compute": 0.2, "occupancy": 0.9, "road": "memory"}
    assert measured.TABLES["roads"].text({"rows": [road]}).splitlines()[-1].split() == [
        "a",
        "kernel",
        "2",
        "70.00",
        "20.00",
        "90.00",
        "memory",
    ]
    assert measured.TABLES["roads"].summary({"rows": [road]}) == {"a kernel": "memory"}


@pytest.mark.gpu
@needs_idle_gpu
def test_one_thread_keeps_a_gpu_utilised():
    loads = {load.name: load for load in measured.loads()}
    assert set(loads) == {measured.IDLE, *measured.WITH_KERNELS}
    gpu = NvmlGpu()
    one, full = (measure(loads[name], gpu) for name in (measured.ONE_THREAD, measured.FULL))
    gpu.close()
    assert one["nvml"] > 0.9  # what others run can only add to it
    assert one["kernels_ran"] > 0.5
    if one["gpm"]["sm"] is not None:
        assert one["gpm"]["occupancy"] < 0.5 * full["gpm"]["occupancy"]
