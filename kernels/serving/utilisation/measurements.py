"""What lab 11 measures of utilisation on a GPU: NVML's figure beside SM activity and occupancy, under known loads.

Each function returns numbers in JSON types; keys end in their unit, shares are 0 to 1. NVML's samples, GPM's counters
and the events around each kernel are taken in the same seconds of the same run; `counted` has Nsight Compute's counters
of the same launches, from a run of its own.
"""

import itertools
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kernels.serving.utilisation import busy_kernels, road_measurements
from kernels.serving.utilisation.monitor import Monitor, NvmlSource
from kernels.serving.utilisation.nvml import NvmlGpu
from warpcourse.bench import nsight_compute, random_inputs, timing
from warpcourse.bench.benchmark import Table
from warpcourse.processes import isolated_call

SETTLE, WINDOW = 0.4, 1.2  # seconds: until NVML's last sample is of this load alone, and measured
KERNEL_SECONDS = 0.01
PERIOD = 0.05  # of a load that runs a part of the time
AHEAD = 4  # kernels queued before the host waits for the first of them
COPY_BYTES = 2**30
DUTIES = (0.25, 0.5, 0.8)
IDLE, ONE_THREAD, ONE_WARP = "idle", "one thread", "one warp on each SM"
COPY, FULL = "copy, all SMs", "FMA, all SMs full"
# Metrics of Nsight Compute, beside those of `road_measurements`.
NANOSECONDS, ACTIVE, ELAPSED = "gpu__time_duration.sum", "sm__cycles_active.avg", "sm__cycles_elapsed.max"


def part_time(duty: float) -> str:
    """Return the name of the load whose one-thread kernel runs for that share of the time."""
    return f"{ONE_THREAD}, {100 * duty:g} % of the time"


WITH_KERNELS = (*map(part_time, DUTIES), ONE_THREAD, ONE_WARP, COPY, FULL)


@dataclass(frozen=True)
class Workload:
    """Work for a GPU. `duty`: share of the time in which the kernel is to run. `launch`: queues it; None: nothing."""

    name: str
    duty: float
    launch: Callable[[], Any] | None


class Run:
    """One kernel between two events."""

    def __init__(self, launch: Callable[[], Any]) -> None:
        import cupy

        self._cupy = cupy
        self._before, self._after = cupy.cuda.Event(), cupy.cuda.Event()
        self._before.record()
        launch()
        self._after.record()

    def wait(self) -> None:
        self._after.synchronize()

    def seconds(self) -> float:
        return self._cupy.cuda.get_elapsed_time(self._before, self._after) / 1e3


def keep_busy(
    run: Callable[[], Any],
    seconds: float,
    duty: float = 1.0,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[float]:
    """Let kernels run for so many seconds; return the seconds that each took.

    `run()` queues one and returns it (`wait()` for its end, `seconds()` that it took). At a `duty` of 1 they run back
    to back, else one begins every PERIOD: how long it runs is up to `run`.
    """
    began = clock()
    runs: list[Any] = []
    if duty == 1:
        while clock() - began < seconds:
            runs.append(run())
            if len(runs) >= AHEAD:
                runs[-AHEAD].wait()
    else:
        for k in range(max(1, round(seconds / PERIOD))):
            if (left := began + k * PERIOD - clock()) > 0:
                sleep(left)
            runs.append(run())
        if (left := began + seconds - clock()) > 0:
            sleep(left)
    for one in runs[-AHEAD:]:
        one.wait()
    return [one.seconds() for one in runs]


def _calibrated(c: Any, out: Any, seconds: float) -> int:
    """Find rounds with which `spin` runs for about so many seconds."""
    rounds = 2**16
    for _ in range(4):
        run = Run(lambda rounds=rounds: busy_kernels.spin(c, rounds, out))
        run.wait()
        rounds = max(1, round(rounds * seconds / run.seconds()))
    return rounds


def loads() -> list[Workload]:
    """Return the loads of the table, each calibrated on this GPU."""
    cupy = timing.cupy_on_gpu()
    sms = cupy.cuda.Device().attributes["MultiProcessorCount"]
    threads = sms * cupy.cuda.Device().attributes["MaxThreadsPerMultiProcessor"]
    rng = random_inputs.generator()
    c = cupy.asarray(busy_kernels.constants(threads, rng))
    out = cupy.empty_like(c)
    n = timing.fitting(COPY_BYTES // 4, 2)
    x, copied = cupy.random.random(n, dtype=cupy.float32), cupy.empty(n, cupy.float32)

    def spin(threads: int, seconds: float, block: int = busy_kernels.BLOCK) -> Callable[[], Any]:
        some, results = c[:threads], out[:threads]
        rounds = _calibrated(some, results, seconds)
        return lambda: busy_kernels.spin(some, rounds, results, block=block)

    work = {
        **{part_time(duty): spin(1, duty * PERIOD) for duty in DUTIES},
        ONE_THREAD: spin(1, KERNEL_SECONDS),
        ONE_WARP: spin(32 * sms, KERNEL_SECONDS, 32),
        COPY: lambda: busy_kernels.copy(x, copied),
        FULL: spin(threads, KERNEL_SECONDS),
    }
    duties = {part_time(duty): duty for duty in DUTIES}
    return [Workload(IDLE, 0.0, None), *(Workload(name, duties.get(name, 1.0), work[name]) for name in WITH_KERNELS)]


def utilisation_table(save_monitor: str | None = None) -> dict[str, Any]:
    """Return NVML's utilisation beside GPM's SM activity and occupancy, a row per load of `loads`.

    `save_monitor`: where to write what a `Monitor` saw meanwhile.
    """
    found = loads()
    gpu = NvmlGpu()
    time.sleep(SETTLE)  # else the first samples still tell of the calibration
    monitor = Monitor(NvmlSource())
    rows = []
    with monitor:
        for load in found:
            monitor.mark(load.name)
            rows.append(measure(load, gpu))
            print(row_text(rows[-1]), flush=True)
    if save_monitor:
        monitor.save(save_monitor, {key: timing.machine()[key] for key in ("device", "date")})
    periods = [period for row in rows for period in row.pop("periods_seconds")]
    value = {"rows": rows, "sample_period_seconds": statistics.median(periods) if periods else None}
    gpu.close()
    return value


def row_text(row: Mapping[str, Any]) -> str:
    """Return one line of a row."""
    parts = {"kernels ran": row["kernels_ran"], "NVML": row["nvml"], **row["gpm"]}
    return f"{row['load']}: " + ", ".join(f"{k} {100 * v:.1f} %" for k, v in parts.items() if v is not None)


def measure(
    load: Workload,
    gpu: NvmlGpu,
    *,
    run: Callable[[Callable[[], Any]], Any] = Run,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Return one row: a load runs, and NVML, GPM and the events say what they saw in the same seconds."""

    def busy(seconds: float) -> list[float]:
        if load.launch is None:
            sleep(seconds)
            return []
        launch = load.launch
        return keep_busy(lambda: run(launch), seconds, load.duty, clock=clock, sleep=sleep)

    busy(SETTLE)
    earlier = gpu.utilisation_samples()
    last = earlier[-1].time if earlier else 0.0
    before, began = gpu.reading(), clock()
    ran = busy(WINDOW)
    ended, after = clock(), gpu.reading()
    samples, shown = gpu.utilisation_samples(last), gpu.utilisation()[0]
    activity = gpu.between(before, after)
    for reading in (before, after):
        gpu.forget(reading)
    # The first sample may have begun before the window.
    shares = [sample.share for sample in (samples or [])[1:]]
    times = [sample.time for sample in samples or []]
    sm_mhz, _ = gpu.clocks()
    return {
        "load": load.name,
        "duty": load.duty,
        "kernels": len(ran),
        "kernels_ran": sum(ran) / (ended - began),
        "nvml": statistics.mean(shares) if shares else shown,
        "nvml_least": min(shares, default=shown),
        "nvml_most": max(shares, default=shown),
        "nvml_samples": len(shares),
        "periods_seconds": [b - a for a, b in itertools.pairwise(times)],
        "gpm": asdict(activity),
        "sm_mhz": sm_mhz,
        "watts": gpu.power(),
    }


def step() -> dict[str, Any]:
    """Return NVML's samples around one second of a one-thread kernel: how long a sample looks back.

    `samples`: pairs of seconds since the kernels began and share; `ended_seconds`: when the last one had ended.
    """
    cupy = timing.cupy_on_gpu()
    c = cupy.asarray(busy_kernels.constants(1, random_inputs.generator()))
    out = cupy.empty_like(c)
    rounds = _calibrated(c, out, KERNEL_SECONDS)
    gpu = NvmlGpu()
    time.sleep(0.6)
    kept = gpu.utilisation_samples()
    last = kept[-1].time if kept else 0.0
    polled, began = [], time.time()
    for _ in range(20):
        keep_busy(lambda: Run(lambda: busy_kernels.spin(c, rounds, out)), 0.05)
        polled.append((time.time() - began, gpu.utilisation()[0]))
    ended = time.time()
    while time.time() < ended + 1.2:
        time.sleep(0.05)
        polled.append((time.time() - began, gpu.utilisation()[0]))
    samples = gpu.utilisation_samples(last)
    gpu.close()
    return {
        "ended_seconds": ended - began,
        "samples": None if samples is None else [[s.time - began, s.share] for s in samples],
        "polled": [list(pair) for pair in polled],
    }


def latency() -> dict[str, Any]:
    """Return seconds that one load takes when each needs the one before it, by the memory that the chain lies in.

    And, as "FMA", those of one fused multiply-add in such a chain. `sm_mhz`: the clock meanwhile.
    """
    cupy = timing.cupy_on_gpu()
    rows = []
    for place, nbytes in (("L1", 2**16), ("L2", 2**23), ("DRAM", 2**28)):
        chain = busy_kernels.chain(nbytes // 4, random_inputs.generator(), stride=32)
        places, out = cupy.asarray(chain), cupy.empty(1, cupy.uint32)
        times = {}
        for steps in (2**12, 2**15):
            busy_kernels.chase(places, steps, out)  # brings the chain into the caches, as far as it fits
            runs = []
            for _ in range(3):
                if place == "DRAM":
                    timing.empty_l2()  # so many steps touch no more than the L2 holds
                runs.append(Run(lambda steps=steps, p=places, o=out: busy_kernels.chase(p, steps, o)))
            runs[-1].wait()
            times[steps] = statistics.median(run.seconds() for run in runs)
        rows.append({"place": place, "bytes": nbytes, "seconds": _per_step(times)})
    c = cupy.asarray(busy_kernels.constants(1, random_inputs.generator()))
    z, times = cupy.empty_like(c), {}
    for rounds in (2**16, 2**20):
        runs = [Run(lambda rounds=rounds: busy_kernels.spin(c, rounds, z)) for _ in range(3)]
        runs[-1].wait()
        times[rounds] = statistics.median(run.seconds() for run in runs)
    rows.append({"place": "FMA", "bytes": 0, "seconds": _per_step(times)})
    return {"rows": rows, "sm_mhz": NvmlGpu().clocks()[0]}


def scattered() -> dict[str, Any]:
    """Measure seconds of `scatter` by the distance of neighbouring stores, and the rate of sectors they fill in part.

    `sectors`: stored by requests, as the arithmetic has it; `per_second`: of those beyond what the bytes would fill.
    """
    cupy = timing.cupy_on_gpu()
    rows = []
    for n in (2**22, 2**24, 2**26):
        x, out = cupy.random.random(n, dtype=cupy.float32), cupy.empty(n, cupy.float32)
        for columns in (1, 8, 32, 4096):
            seconds = timing.time_gpu(busy_kernels.scatter, [(x, out, columns)], runs=15).seconds
            sectors = n * min(columns, 8) // 8
            correct = bool((out.reshape(-1, columns) == x.reshape(columns, -1).T).all())
            rows.append({"n": n, "columns": columns, "seconds": seconds, "sectors": sectors, "correct": correct})
            rows[-1]["per_second"] = (sectors - n / 8) / seconds
    return {"rows": rows}


def _per_step(times: Mapping[int, float]) -> float:
    """Return seconds per step, from those of few steps and of many: what a launch itself takes drops out."""
    few, many = sorted(times)
    return (times[many] - times[few]) / (many - few)


def launch_counted() -> None:
    """Launch each load with a kernel once, in the order of `loads`, for ncu."""
    import cupy

    launches = [load.launch for load in loads() if load.launch]
    for launch in launches:
        launch()
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.start()
    for launch in launches:
        launch()
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.stop()


def counted() -> dict[str, Any]:
    """Return Nsight Compute's counters of one kernel of each load."""
    metrics = (NANOSECONDS, ACTIVE, ELAPSED, *road_measurements.NCU.values())
    found = nsight_compute.profiled(isolated_call.command(f"{__name__}:launch_counted"), metrics)
    rows = []
    for name, launch in zip(WITH_KERNELS, found, strict=True):
        sm = launch.metrics[ACTIVE] / launch.metrics[ELAPSED]
        row = {"load": name, "grid": launch.grid, "block": launch.block, "sm": sm}
        rows.append({**row, **road_measurements.shares(launch), "seconds": launch.metrics[NANOSECONDS] / 1e9})
    return {"rows": rows, "ncu": nsight_compute.version()}


def _share(value: float | None) -> str:
    """Format a share as percent; a dash where the driver told none."""
    return "-" if value is None else f"{100 * value:.2f}"


TABLES = {
    "utilisation": Table.of_rows(
        "What instruments say of known loads",
        {"load": "load", "kernels ran, %": lambda row: _share(row["kernels_ran"])}
        | {"NVML, %": lambda row: _share(row["nvml"]), "SM activity, %": lambda row: _share(row["gpm"]["sm"])}
        | {"occupancy, %": lambda row: _share(row["gpm"]["occupancy"])}
        | {"FP32, %": lambda row: _share(row["gpm"]["fp32"]), "DRAM, %": lambda row: _share(row["gpm"]["dram"])},
        lambda value: {
            row["load"]: {"nvml": row["nvml"], "sm": row["gpm"]["sm"]}
            for row in value["rows"]
            if row["load"] == ONE_THREAD
        },
    ),
    "roads": Table.of_rows(
        "Three roads, by Nsight Compute's shares of the peak",
        {"kernel": "case", "µs": "seconds"}
        | {f"{name}, %": lambda row, name=name: _share(row[name]) for name in ("memory", "compute", "occupancy")}
        | {"road": "road"},
        lambda value: {row["case"]: row["road"] for row in value["rows"]},
    ),
}
MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "utilisation": utilisation_table,
    "utilisation_counted": counted,
    "utilisation_step": step,
    "latency": latency,
    "scattered": scattered,
    **road_measurements.MEASUREMENTS,
}
