"""Reports of profilers as they print them, read and joined by kernel."""

import pytest

from kernels.serving.utilisation import profilers, traces
from kernels.serving.utilisation.profilers import by_kernel, read_report
from kernels.serving.utilisation.traces import CALL, KERNEL, UP, Span

# As ncu 2025 prints it; two launches, cut to a few rows.
TEXT = """\
==PROF== Connected to process 100 (/usr/bin/python3)
[100] python3@127.0.0.1
  spin (4096, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Ghz         2.62
    Elapsed Cycles                cycle      130,123
    Memory Throughput                 %         5.12
    Duration                         us        74.66
    Compute (SM) Throughput           %        91.37
    ----------------------- ----------- ------------

    INF   This workload is utilizing greater than 80.0% of the available compute or memory performance of this device.
          To further improve performance, work will likely need to be shifted.

    Section: Memory Workload Analysis
    --------------------------- ----------- ------------
    Metric Name                 Metric Unit Metric Value
    --------------------------- ----------- ------------
    Memory Throughput               Gbyte/s        72.25
    --------------------------- ----------- ------------

    Section: Occupancy
    ------------------------------- ----------- ------------
    Metric Name                     Metric Unit Metric Value
    ------------------------------- ----------- ------------
    Block Limit SM                        block           32
    Achieved Occupancy                        %        88.51
    ------------------------------- ----------- ------------

  copy(const float4 *, float4 *, unsigned long) (1024, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    Memory Throughput                 %        40.10
    Compute (SM) Throughput           %        10.00
    OPT   This kernel waits.
"""


def test_a_report_is_read():
    spin, copy = read_report(TEXT)
    assert (spin.kernel, spin.grid, spin.block) == ("spin", (4096, 1, 1), (256, 1, 1))
    assert spin.memory == pytest.approx(0.0512)
    assert spin.compute == pytest.approx(0.9137)
    assert spin.occupancy == pytest.approx(0.8851)
    assert spin.value(profilers.SPEED, "Elapsed Cycles") == 130123
    assert spin.sections["Memory Workload Analysis"]["Memory Throughput"] == (72.25, "Gbyte/s")
    assert spin.road == "instructions"
    assert copy.road == "latency"
    assert list(spin.advice) == [
        "This workload is utilizing greater than 80.0% of the available compute or memory performance of this device. "
        "To further improve performance, work will likely need to be shifted."
    ]
    assert list(copy.advice) == ["This kernel waits."]
    with pytest.raises(KeyError, match=r"the report of copy.* has no 'Achieved Occupancy' in 'Occupancy'"):
        _ = copy.occupancy
    with pytest.raises(ValueError, match="holds no launch; print it with `ncu --page details`"):
        read_report("==PROF== nothing")


def test_a_timeline_and_a_report_by_kernel():
    spans = [
        Span("cudaLaunchKernel", CALL, 0.0, 0.1),
        Span("H2D", UP, 0.0, 1.0, 7),
        Span("spin", KERNEL, 1.0, 2.0, 7),
        Span("other", KERNEL, 3.5, 0.5, 7),
    ]
    spin, other = by_kernel(spans, read_report(TEXT))
    assert (spin["kernel"], spin["count"], spin["share"], spin["faster"]) == ("spin", 1, 0.5, 2.0)
    assert spin["road"] == "instructions"
    assert other["share"] == 0.125
    assert other["road"] is None
    with pytest.raises(ValueError, match="no span on a GPU"):
        by_kernel(spans[:1], [])


def test_what_was_recorded_is_of_the_same_program():
    spans, reports = profilers.recorded_profiles()
    rows = {row["kernel"]: row for row in by_kernel(spans, reports)}
    assert rows.keys() == {"spin", "copy"}
    assert all(row["road"] for row in rows.values())
    assert {traces.UP, traces.DOWN, KERNEL, CALL} <= {span.kind for span in spans}
    text = (profilers.REPORTS.parent / "profilers.md").read_text()
    assert f"{100 * traces.share(spans):.3g} %" in text  # the page's number is the recording's
    for row in rows.values():
        assert f"| {100 * row['share']:.2f} % |" in text
    for report in reports:
        assert f"{100 * report.compute:.3g} %" in text
        assert f"{100 * report.memory:.3g} %" in text
