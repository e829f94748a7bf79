"""What load does to a service, measured: latency and throughput by offered load and batch limit, and under overload.

Each function returns JSON types; keys end in their unit. In process, a batcher and its engine are asked by function
call; over HTTP, LAB's service runs in a process of its own. `correct` is false if an answer was wrong or missing.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kernels.serving.serve import engines
from kernels.serving.serve.batching.batcher import Limits
from kernels.serving.serve.engines import small_network_engine, torch_networks
from kernels.serving.serve.load.generator import LOST, OK, TOO_MANY, UNAVAILABLE, InProcess, LoadResult, OverHttp, offer
from kernels.serving.serve.service import process as service_process
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Table

LATENCY_LIMIT = 0.010  # seconds that 99 % of the requests may take
LIMITS = (Limits(1, 0.0, 256), Limits(8, 0.002, 256), Limits(32, 0.002, 256))
LIMITS_OF_LARGE = (LIMITS[0], LIMITS[1], Limits(16, 0.002, 256), LIMITS[2])
PARTS = (0.3, 0.6, 0.8, 0.9, 1.0, 1.2)  # of what a service answers when it is offered more than it can
MOST = 40_000.0  # requests per second that this generator is asked for, at most
SECONDS = 0.6  # of each point
CONNECTIONS, SAMPLES = 128, 64  # over HTTP
TURNED_AWAY = (TOO_MANY, UNAVAILABLE)  # where the queue is full, and where requests in hand are as many as may be
PLAN = "kernels.fusion.served:trained"  # lab 09's plan, where that lab is
PLAN_SIZES = (1, 8, 32)
DEEP = "kernels.serving.serve.engines.small_network_engine:deep"
OVERLOAD, OVERLOAD_SECONDS, ONE_BY_ONE = 10.0, 60.0, Limits(1, 0.0, 32)


class Subject(NamedTuple):
    """An engine under load. `predict`: a list of samples -> rows. `data`: samples. `right(index, row)`: whether it is.

    `sizes`: batches that it is timed at.
    """

    name: str
    predict: Callable[[list[Any]], Sequence[Any]]
    data: Sequence[Any]
    right: Callable[[int, Any], bool]
    sizes: tuple[int, ...] = small_network_engine.SIZES


def subject(engine: engines.Engine, data: np.ndarray, sizes: tuple[int, ...] = small_network_engine.SIZES) -> Subject:
    """Return `engine` with samples and the answers that it gives to each alone."""
    alone = np.concatenate([engine.predict(data[i : i + 1]) for i in range(len(data))])

    def predict(samples: list[Any]) -> Any:  # engines that copy to pinned memory take a list, and copy once
        return engine.predict(samples if getattr(engine, "takes_lists", False) else np.stack(samples))

    return Subject(engine.name, predict, data, _near(alone), sizes)


def _near(alone: np.ndarray) -> Callable[[int, Any], bool]:
    """Return whether an answer under load is right: the output that differs most between the samples is near the one
    that the sample gave alone, within a tenth of its range, as FP16 rounds differently in a batch.
    """
    spread = np.ptp(alone, axis=0)
    column = int(spread.argmax())
    expected, tolerance = alone[:, column].tolist(), float(spread[column]) / 10
    return lambda index, row: abs(float(row[column]) - expected[index]) <= tolerance


def batch_times(served: Subject) -> list[dict[str, Any]]:
    """Measure seconds of one batch by size, with copies to and from the GPU: median of twenty, nothing else running."""
    rows = []
    for size in served.sizes:
        batch = [served.data[i % len(served.data)] for i in range(size)]
        seconds = timing.time_host(lambda batch=batch: served.predict(batch)).seconds
        rows.append({"batch": size, "seconds": seconds, "samples_per_second": size / seconds})
    return rows


def curve(served: Subject, limits: Limits, guess: float, seconds: float, parts: Sequence[float]) -> dict[str, Any]:
    """Offer load from light to too much to one batcher. `guess`: requests per second that it may answer at most."""

    def row(rate: float, seconds: float) -> dict[str, Any]:
        with InProcess(served.predict, limits, served.data, check=served.right) as service:
            load = offer(service, min(rate, MOST), seconds)
        return load.summary() | {"mean_batch": load.statuses.get(OK, 0) / max(service.batcher.counts.batches, 1)}

    most = row(1.5 * guess, 0.4)["answered_per_second"]
    return _curve(f"{served.name}, batch limit {limits.batch_limit}", limits, most, parts, lambda r: row(r, seconds))


def _curve(
    title: str, limits: Limits, most: float, parts: Sequence[float], row: Callable[[float], dict[str, Any]]
) -> dict[str, Any]:
    """Return a row for each of `parts` of `most`, the requests per second that are answered when more come."""
    rows = []
    for part in parts:
        rows.append(row(part * most))
        print(f"  {title}: {json.dumps(timing.rounded(rows[-1]))}", flush=True)
    return {
        "batch_limit": limits.batch_limit,
        "wait_limit_seconds": limits.wait_limit,
        "capacity": limits.capacity,
        "saturated_per_second": most,
        "rows": rows,
    }


def in_process(
    served: Subject,
    *,
    all_limits: Sequence[Limits] = LIMITS,
    seconds: float = SECONDS,
    parts: Sequence[float] = PARTS,
    latency_limit: float = LATENCY_LIMIT,
) -> dict[str, Any]:
    """Return a curve for each of `all_limits`, times of batches alone, and the most that keeps to `latency_limit`."""
    times = batch_times(served)
    rates = {row["batch"]: row["samples_per_second"] for row in times}
    curves = [curve(served, limits, rates[limits.batch_limit], seconds, parts) for limits in all_limits]
    return {"engine": served.name, "times": times, "curves": curves, "cpus": os.cpu_count()} | verdict(
        curves, latency_limit
    )


def verdict(curves: Sequence[dict[str, Any]], latency_limit: float) -> dict[str, Any]:
    """Return `best`, by batch limit the most requests per second of a run in which 99 % kept to the limit and none was
    turned away, else None, and `ratio`, the best of dynamic batching over that of batch limit 1.
    """
    best: dict[str, float | None] = {}
    for found in curves:
        none_turned_away = (row for row in found["rows"] if set(row["statuses"]) == {str(OK)})
        kept = [row["answered_per_second"] for row in none_turned_away if row["p99_seconds"] <= latency_limit]
        best[str(found["batch_limit"])] = max(kept, default=None)
    alone, batched = best.get("1"), [value for key, value in best.items() if key != "1" and value]
    return {
        "latency_limit_seconds": latency_limit,
        "best": best,
        "ratio": max(batched) / alone if alone and batched else None,
        "correct": all(set(row["statuses"]) <= {str(OK), str(TOO_MANY)} for found in curves for row in found["rows"]),
    }


# -- on a GPU, in process ----------------------------------------------------------------------------------------------


def load_small() -> dict[str, Any]:
    """Load the lab's small network: a batch of 32 takes little longer than one of 1."""
    engine = small_network_engine.small()
    return in_process(subject(engine, engine.network.images(64), engine.sizes))


def load_large() -> dict[str, Any]:
    """Measure ResNet-50 for 224 × 224 images, in PyTorch: a large batch fills the GPU."""
    engine = torch_networks.TorchEngine()
    return in_process(subject(engine, torch_networks.images(), engine.sizes), all_limits=LIMITS_OF_LARGE)


def load_plan() -> dict[str, Any]:
    """Measure lab 09's plan: the network is so small that Python takes longer than the GPU."""
    return in_process(_plan())


def _plan() -> Subject:
    engine = engines.make(PLAN, batches=list(PLAN_SIZES))
    return subject(engine, np.random.default_rng(2017).random((64, *engine.shape), np.float32), PLAN_SIZES)


def overloaded(load: LoadResult, most: float, accepted: int, answered: int) -> dict[str, Any]:
    """Return an overload in JSON types: the run, also by second, and whether every accepted request was answered."""
    by_second = []
    for second in range(int(load.planned[-1]) + 1 if len(load.planned) else 0):
        came = (load.planned >= second) & (load.planned < second + 1)
        fine = came & (load.status == OK)
        by_second.append(
            {
                "second": second,
                "offered": int(came.sum()),
                "answered": int(fine.sum()),
                "turned_away": int((came & np.isin(load.status, TURNED_AWAY)).sum()),
                "p99_seconds": float(np.percentile(load.latency[fine], 99)) if fine.any() else None,
            }
        )
    lost = load.statuses.get(LOST, 0)
    right = accepted == answered == load.statuses.get(OK, 0) and not lost
    return {
        "saturated_per_second": most,
        "times": load.offered / most,
        "accepted": accepted,
        "answered": answered,
        "lost": lost,
        "correct": right and set(load.statuses) <= {OK, *TURNED_AWAY},
        "run": load.summary(),
        "by_second": by_second,
    }


# -- over HTTP ---------------------------------------------------------------------------------------------------------


def http_curve(
    engine: str,
    limits: Limits,
    *,
    options: dict[str, Any] | None = None,
    seconds: float = 1.0,
    parts: Sequence[float] = PARTS,
    guess: float = 6000.0,
) -> dict[str, Any]:
    """Offer load to the service over HTTP, one sample per request, from light to too much."""
    with _service(engine, limits, options) as (service, ask):
        most = ask(guess, 1.0).throughput
        found = _curve(f"{engine} over HTTP", limits, most, parts, lambda rate: ask(rate, seconds).summary())
        found |= {"connections": CONNECTIONS, "counts": service.stop()}
    return {"engine": engine, "curves": [found], "cpus": os.cpu_count()} | verdict([found], LATENCY_LIMIT)


def overload_over_http(
    engine: str = DEEP,
    limits: Limits = ONE_BY_ONE,
    *,
    options: dict[str, Any] | None = None,
    seconds: float = OVERLOAD_SECONDS,
    times: float = OVERLOAD,
    guess: float = 1000.0,
) -> dict[str, Any]:
    """Offer the service over HTTP `times` what it answers at most. `accepted`, `answered`: by its own count."""
    with _service(engine, limits, options) as (service, ask):
        most = ask(guess, 1.5)
        before = most.statuses.get(OK, 0) + SAMPLES
        load = ask(times * most.throughput, seconds)
        counts = service.stop()
    found = overloaded(load, most.throughput, counts["accepted"] - before, counts["answered"] - before)
    return found | {"engine": engine, "batch_limit": limits.batch_limit, "capacity": limits.capacity}


@contextlib.contextmanager
def _service(
    engine: str, limits: Limits, options: dict[str, Any] | None
) -> Iterator[tuple[service_process.RunningService, Callable[[float, float], LoadResult]]]:
    """Yield the service, in its own process, and what offers it (rate, seconds) of requests with a sample each."""
    with service_process.start(
        engine, options=options, batch_limit=limits.batch_limit, wait_limit=limits.wait_limit, capacity=limits.capacity
    ) as service:
        shape = service.model()["sample_shape"]
        data = np.random.default_rng(2017).random((SAMPLES, *shape), np.float32).round(3)
        near = _near(np.array([service.ask(sample[None])[0] for sample in data]))

        def right(index: int, body: bytes) -> bool:
            return near(index, json.loads(body)["predictions"][0])

        bodies = [json.dumps({"instances": [sample.tolist()]}).encode() for sample in data]

        def ask(rate: float, seconds: float) -> LoadResult:
            with OverHttp(service.url + "/v1/predict", bodies, connections=CONNECTIONS, check=right) as asked:
                return offer(asked, rate, seconds)

        yield service, ask


def load_over_http() -> dict[str, Any]:
    """Measure lab 09's plan behind HTTP: the front end, one Python process, is what limits."""
    return http_curve(PLAN, Limits(32, 0.002, 64), options={"batches": list(PLAN_SIZES)})


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    function.__name__: function for function in (load_small, load_large, load_plan, load_over_http, overload_over_http)
}


# -- as `make bench` shows it ------------------------------------------------------------------------------------------


def _load_text(value: dict[str, Any]) -> str:
    limit = f"{1e3 * value['latency_limit_seconds']:g} ms for 99 %"
    ratio = f"; within {limit}, {value['ratio']:.1f} × what batch limit 1 answers" if value["ratio"] else ""
    columns = {"batch limit": "batch_limit", "offered/s": "offered_per_second", "answered/s": "answered_per_second"}
    columns |= {"p50 ms": "p50_seconds", "p99 ms": "p99_seconds"}
    columns |= {"429s": lambda row: row["statuses"].get(str(TOO_MANY), 0)}
    rows = [row | {"batch_limit": curve["batch_limit"]} for curve in value["curves"] for row in curve["rows"]]
    return Table.of_rows(lambda _: f"{value['engine']}, load{ratio}", columns).text(rows)


def _overload_text(value: dict[str, Any]) -> str:
    return (
        f"{value['engine']}: {value['times']:.1f} × what it answers, for {value['run']['seconds']:.0f} s: accepted "
        f"{value['accepted']:,}, answered {value['answered']:,}, lost {value['lost']}, statuses "
        f"{value['run']['statuses']}, p99 {1e3 * (value['run']['p99_seconds'] or float('nan')):.0f} ms"
    )


TABLES = {
    **{
        key: Table(_load_text, lambda value: {"best_per_second": value["best"], "ratio": value["ratio"]})
        for key in MEASUREMENTS
        if key.startswith("load")
    },
    "overload_over_http": Table(
        _overload_text, lambda value: {key: value[key] for key in ("times", "accepted", "answered", "lost")}
    ),
}
