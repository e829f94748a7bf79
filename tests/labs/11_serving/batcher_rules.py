"""The rules that a batcher keeps, and which of them a simulated one broke."""

from __future__ import annotations

import itertools
from collections import Counter

from kernels.serving.serve.batching.batcher import Limits
from kernels.serving.serve.batching.simulated_queue import Served

EPSILON = 1e-9  # seconds; sums of times are rounded


def violations(served: Served, limits: Limits) -> list[str]:
    """Every rule of `batcher` that was broken, in words; [] if none was. The first example of each."""
    found = [served.stuck] if served.stuck else []
    found += _of_requests(served)
    found += _of_batches(served, limits)
    found += _of_the_queue(served, limits)
    return found


def _of_requests(served: Served) -> list[str]:
    answers = [request for batch in served.batches for request in batch.requests]
    twice = {request for request, count in Counter(answers).items() if count > 1}
    refused = set(served.refused)
    lost = set(range(len(served.arrivals))) - set(answers) - refused
    found = []
    if lost:
        found.append(f"request {min(lost)} is lost: it was accepted and never answered (of {len(lost)})")
    if twice:
        found.append(f"request {min(twice)} is answered twice")
    if both := refused & set(answers):
        found.append(f"request {min(both)} was turned away and answered all the same")
    if answers != sorted(answers):
        later, sooner = next(pair for pair in itertools.pairwise(answers) if pair[0] > pair[1])
        found.append(f"request {sooner} leaves after request {later}, which came later")
    return found


def _of_batches(served: Served, limits: Limits) -> list[str]:
    too_large = early = idle = full = ""
    for batch in served.batches:
        count, oldest = len(batch.requests), served.arrivals[min(batch.requests)]
        due = oldest + limits.wait_limit
        what = f"the batch at {batch.start:g} s"
        if count > limits.batch_limit:
            too_large = too_large or f"{what} holds {count} requests; the limit is {limits.batch_limit}"
        if count < limits.batch_limit and batch.start < due - EPSILON:
            sooner = f"{due - batch.start:g} s before its oldest request has waited {limits.wait_limit:g} s"
            early = early or f"{what} leaves with {count} of {limits.batch_limit}, {sooner}"
        if batch.start > max(due, batch.idle) + EPSILON:
            late = batch.start - max(due, batch.idle)
            idle = idle or f"{what} starts {late:g} s after the limit of its oldest request, while the engine is idle"
        elif count >= limits.batch_limit:
            since = max(served.arrivals[max(batch.requests)], batch.idle)
            if batch.start > since + EPSILON:
                full = full or f"{what} was full {batch.start - since:g} s before, while the engine was idle"
    return [text for text in (too_large, early, idle, full) if text]


def _of_the_queue(served: Served, limits: Limits) -> list[str]:
    found, refused = [], set(served.refused)
    for request, waiting in enumerate(served.waiting.tolist()):
        if request in refused and waiting < limits.capacity:
            found.append(f"request {request} is turned away while {waiting} wait and {limits.capacity} may")
            break
    for request, waiting in enumerate(served.waiting.tolist()):
        if request not in refused and waiting >= limits.capacity:
            found.append(f"request {request} is accepted while {waiting} wait already and {limits.capacity} may")
            break
    return found
