"""What the queueing model says of a load that was measured: from the times of batches alone to latency percentiles.

    rows = predicted(value["times"], limits_of(curve), rates, added=added_per_batch(value))

The model knows the engine's times, the batcher's limits, and that arrivals are random. It does not know what the server
itself costs: Python between two batches, threads, copies. `added_per_batch` reads that from one number, how many
requests per second one by one were answered when more came; all other curves then are predictions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernels.serving.serve.batching.batcher import Batcher, Limits
from kernels.serving.serve.batching.queueing import measured
from kernels.serving.serve.batching.simulated_queue import poisson, serve

COUNT, SEED = 6000, 2017  # requests of each simulated run


def limits_of(curve: Mapping[str, Any]) -> Limits:
    """Return the limits under which a curve was measured."""
    return Limits(curve["batch_limit"], curve["wait_limit_seconds"], curve["capacity"])


def added_per_batch(value: Mapping[str, Any]) -> float:
    """Return seconds that the server adds to each batch: 1 / (requests per second that it answers one by one at most),
    less the engine's time for one. 0 where nothing was measured one by one."""
    for curve in value["curves"]:
        if curve["batch_limit"] == 1 and curve["saturated_per_second"]:
            return max(0.0, 1 / curve["saturated_per_second"] - measured(value["times"])(1))
    return 0.0


def predicted(
    times: Sequence[Mapping[str, Any]],
    limits: Limits,
    rates: Sequence[float],
    *,
    added: float = 0.0,
    count: int = COUNT,
    seed: int = SEED,
) -> list[dict[str, float]]:
    """Predict a row, with a measured one's keys, for each of `rates`, requests per second, by a queue in virtual time.

    `times`: rows with "batch" and "seconds". `added`: seconds of each batch beyond those.
    """
    engine, rows = measured(times), []
    for rate in rates:
        served = serve(Batcher(limits), poisson(rate, count, seed), lambda n: engine(n) + added)
        latency = served.latency[~np.isnan(served.latency)]
        rows.append(
            {
                "offered_per_second": float(rate),
                "answered_per_second": served.throughput,
                "refused": len(served.refused) / count,
                "mean_seconds": float(latency.mean()),
                "p50_seconds": float(np.percentile(latency, 50)),
                "p99_seconds": float(np.percentile(latency, 99)),
                "mean_batch": served.mean_batch,
                "busy": served.busy,
            }
        )
    return rows
