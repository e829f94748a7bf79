"""What lab 11 measures of the five kernels of the course: their time, and Nsight Compute's shares of peak throughput.

`three_roads` decides by the simulator's counters; these say whether the hardware agrees.
"""

from collections.abc import Callable
from typing import Any

from kernels.serving.utilisation.course_cases import CASES
from kernels.serving.utilisation.three_roads import chosen
from warpcourse.bench import lab_kernels, nsight_compute, timing
from warpcourse.bench.compared_launches import Launch, is_array
from warpcourse.bench.nsight_compute import ProfiledLaunch
from warpcourse.processes import isolated_call

# Percentages of Nsight Compute (section SpeedOfLight and others): name here -> metric.
NCU = {
    "compute": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
}


def _on_device(launch: Launch) -> tuple:
    import cupy

    return tuple(cupy.asarray(x) if is_array(x) else x for x in launch.arguments)


def _queue(launch: Launch, arguments: tuple) -> None:
    lab_kernels.launch(launch.kernel(), launch.grid, launch.block, arguments, launch.shared_bytes)


def shares(launch: ProfiledLaunch) -> dict[str, float]:
    """Return the shares, 0 to 1, that Nsight Compute counted of a launch, by the names of NCU."""
    return {name: launch.metrics[metric] / 100 for name, metric in NCU.items()}


def _found() -> list[tuple[str, Launch]]:
    """List names and launches of the cases whose labs are there."""
    made = [(case.name, case.launch()) for case in CASES]
    return [(name, launch) for name, launch in made if launch is not None]


def launch_counted() -> None:
    """Launch each case once, after a launch that compiled and loaded it, for ncu."""
    import cupy

    for _, launch in _found():
        arguments = _on_device(launch)
        _queue(launch, arguments)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.start()
        _queue(launch, arguments)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()


def roads() -> dict[str, Any]:
    """Return seconds of each case, shares of the peak that Nsight Compute counts, 0 to 1, and the road that follows."""
    timing.cupy_on_gpu()
    found = _found()
    seconds = {}
    for name, launch in found:
        arguments = _on_device(launch)
        timed = timing.time_gpu(lambda *given, one=launch: _queue(one, given), [arguments], runs=20)
        seconds[name] = timed.seconds
    counted = nsight_compute.profiled(isolated_call.command(f"{__name__}:launch_counted"), NCU.values())
    rows = []
    for (name, _), launch in zip(found, counted, strict=True):
        row = {"case": name, "kernel": launch.kernel, "seconds": seconds[name], **shares(launch)}
        rows.append({**row, "road": chosen(row["memory"], row["compute"])})
    return {"rows": rows, "ncu": nsight_compute.version()}


MEASUREMENTS: dict[str, Callable[[], Any]] = {"roads": roads}
