"""The batcher: its rules in virtual time, for any arrivals; and on asyncio, where nothing is lost."""

import asyncio
import concurrent.futures
import importlib.util
import math
import selectors
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.serving.serve.batching.batcher import AsyncBatcher, Batcher, Closed, Limits, QueueFull
from kernels.serving.serve.batching.simulated_queue import serve
from tests.support.waiting import HANG

_spec = importlib.util.spec_from_file_location("batcher_rules", Path(__file__).with_name("batcher_rules.py"))
batcher_rules = sys.modules.setdefault("batcher_rules", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(batcher_rules)
violations = batcher_rules.violations

LIMITS = st.builds(
    lambda batch, extra, wait: Limits(batch, wait, batch + extra),
    st.integers(1, 6),
    st.integers(0, 8),
    st.sampled_from([0.0, 0.001, 0.01, 0.5]),
)
# Gaps of 0 are many at once; long ones leave the engine idle.
ARRIVALS = st.lists(st.sampled_from([0.0, 0.0, 0.0005, 0.003, 0.02, 1.0]), max_size=60).map(
    lambda gaps: np.cumsum(gaps)
)
SECONDS = st.tuples(st.sampled_from([0.0, 0.001, 0.05]), st.sampled_from([0.0, 0.002]))


@settings(max_examples=300, deadline=None)
@given(limits=LIMITS, arrivals=ARRIVALS, seconds=SECONDS, engines=st.integers(1, 3))
def test_no_rule_is_broken_whatever_arrives(limits, arrivals, seconds, engines):
    served = serve(Batcher(limits), arrivals, lambda n: seconds[0] + n * seconds[1], engines)
    assert violations(served, limits) == []
    answered = [request for batch in served.batches for request in batch.requests]
    assert sorted(answered + served.refused) == list(range(len(arrivals)))  # none lost, none twice
    assert answered == sorted(answered)
    assert max((len(batch.requests) for batch in served.batches), default=1) <= limits.batch_limit
    for batch in served.batches:  # none waits past the limit while the engine is idle
        assert batch.start <= max(arrivals[batch.requests[0]] + limits.wait_limit, batch.idle)


@settings(max_examples=200, deadline=None)
@given(limits=LIMITS, steps=st.lists(st.sampled_from(["offer", "take", "withdraw", "wait", "close"]), max_size=80))
def test_every_accepted_request_leaves_once_and_in_order(limits, steps):
    batcher, now, accepted, left, withdrawn = Batcher(limits), 0.0, [], [], set()
    for number, step in enumerate(steps):
        if step == "offer":
            room = len(batcher) < limits.capacity and not batcher.closed
            assert batcher.offer(number, now) == room
            accepted += [number] * room
        elif step == "take":
            batch = batcher.take(now)
            assert len(batch) <= limits.batch_limit
            left += batch
        elif step == "withdraw" and accepted:
            chosen = accepted[number % len(accepted)]
            assert batcher.withdraw(chosen) == (chosen not in left and chosen not in withdrawn)
            withdrawn |= {chosen} - set(left)
        elif step == "close":
            batcher.close()
        else:
            now += 0.3
    batcher.close()
    while len(batcher):
        assert batcher.due() <= now  # what waits is due at once
        left += batcher.take(now)
    assert left == [request for request in accepted if request not in withdrawn]
    assert batcher.due() is None
    assert batcher.take(now) == []
    assert not batcher.offer("one more", now)


def test_a_batch_is_due_when_full_or_when_the_oldest_has_waited():
    batcher = Batcher(Limits(batch_limit=3, wait_limit=0.5, capacity=4))
    assert batcher.offer("a", 1.0)
    assert batcher.offer("b", 1.25)
    assert batcher.due() == 1.5
    assert batcher.take(1.49) == []
    assert batcher.offer("c", 1.3)
    assert batcher.due() <= 1.3
    assert batcher.offer("d", 1.3)
    assert not batcher.offer("e", 1.3)
    assert batcher.take(1.3) == ["a", "b", "c"]
    assert batcher.due() == 1.8
    assert batcher.take(1.8) == ["d"]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ((0, 0.0, 4), "batch_limit is 0; a batch holds one request at least"),
        ((4, -1.0, 4), "wait_limit is -1.0 seconds"),
        ((4, float("inf"), 4), "wait_limit is inf seconds"),
        ((4, float("nan"), 4), "wait_limit is nan seconds"),
        ((4, 0.0, 3), "capacity is 3, less than the batch_limit of 4"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(limits, reason):
    with pytest.raises(ValueError, match=reason):
        Limits(*limits)


# -- on asyncio --------------------------------------------------------------------------------------------------------


class Engine:
    """Answers x with 10 · x, notes the batches, and waits for `go`."""

    def __init__(self, open_at_once=True):
        self.batches, self.go, self.entered = [], threading.Event(), threading.Event()
        if open_at_once:
            self.go.set()

    def __call__(self, samples):
        self.batches.append(list(samples))
        self.entered.set()
        self.go.wait()
        if "bad" in samples:
            raise ArithmeticError("no answer to that")
        return [10 * sample for sample in samples]


def test_each_request_gets_its_own_answer_in_batches_of_those_that_came_together():
    engine = Engine()
    sizes = []

    async def main():
        limits = Limits(4, 0.001, 64)
        async with AsyncBatcher(engine, limits, observe=lambda size, seconds: sizes.append((size, seconds >= 0))) as b:
            assert await asyncio.gather(*(b.submit(i) for i in range(10))) == [10 * i for i in range(10)]
            assert await b.submit(7) == 70  # alone: no full batch, and answered all the same
        return b.counts

    counts = asyncio.run(main())
    assert engine.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [7]]
    assert sizes == [(4, True), (4, True), (2, True), (1, True)]
    assert (counts.accepted, counts.answered, counts.rejected, counts.batches) == (11, 11, 0, 4)


def test_a_full_queue_turns_away_at_once_and_loses_nothing():
    engine = Engine(open_at_once=False)

    async def main():
        async with AsyncBatcher(engine, Limits(2, 0.0, 3), engines=1) as batcher:
            first = batcher.submit(0)
            await asyncio.to_thread(engine.entered.wait)
            waiting = [batcher.submit(i) for i in (1, 2, 3)]
            for i in (4, 5):
                with pytest.raises(QueueFull, match="3 requests wait already, as many as may"):
                    batcher.submit(i)
            engine.go.set()
            return await asyncio.gather(first, *waiting), batcher.counts

    answers, counts = asyncio.run(main())
    assert answers == [0, 10, 20, 30]
    assert engine.batches == [[0], [1, 2], [3]]
    assert (counts.accepted, counts.rejected, counts.answered) == (4, 2, 4)


def test_closing_answers_what_was_accepted_and_refuses_the_rest():
    engine = Engine(open_at_once=False)

    async def main():
        batcher = AsyncBatcher(engine, Limits(4, 30.0, 8))
        await batcher.__aenter__()
        futures = [batcher.submit(i) for i in range(4)]
        await asyncio.to_thread(engine.entered.wait)
        futures.append(batcher.submit(4))  # alone, it would wait for half a minute
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        assert batcher.closed
        with pytest.raises(Closed, match="shutting down"):
            batcher.submit(5)
        engine.go.set()
        await closing
        assert all(future.done() for future in futures)
        assert batcher.waiting == 0
        return [future.result() for future in futures]

    assert asyncio.run(main()) == [0, 10, 20, 30, 40]


def test_an_error_of_the_engine_reaches_its_batch_alone():
    engine = Engine()

    async def main():
        async with AsyncBatcher(engine, Limits(2, 0.0, 8)) as batcher:
            found = await asyncio.gather(*(batcher.submit(x) for x in (1, "bad", 2, 3)), return_exceptions=True)
            return found, batcher.counts

    found, counts = asyncio.run(main())
    assert [str(x) for x in found] == ["no answer to that", "no answer to that", "20", "30"]
    assert (counts.answered, counts.failed) == (2, 2)


def test_an_engine_that_forgets_a_sample_is_found_out():
    async def main():
        async with AsyncBatcher(lambda samples: samples[1:], Limits(3, 0.0, 8)) as batcher:
            return await asyncio.gather(*(batcher.submit(i) for i in range(3)), return_exceptions=True)

    found = asyncio.run(main())
    assert {str(error) for error in found} == {"the engine returned 2 results for a batch of 3"}


def test_a_client_that_goes_takes_no_place():
    engine = Engine(open_at_once=False)

    async def main():
        async with AsyncBatcher(engine, Limits(2, 0.0, 2)) as batcher:
            first = batcher.submit(0)
            await asyncio.to_thread(engine.entered.wait)
            gone, stays = batcher.submit(1), batcher.submit(2)
            gone.cancel()
            first.cancel()  # too late: the engine has it
            await asyncio.sleep(0)
            assert batcher.waiting == 1
            late = batcher.submit(3)
            engine.go.set()
            return await asyncio.gather(stays, late), batcher.counts

    answers, counts = asyncio.run(main())
    assert answers == [20, 30]
    assert engine.batches == [[0], [2, 3]]
    assert (counts.accepted, counts.answered, counts.withdrawn) == (4, 3, 1)


def test_engines_work_at_the_same_time():
    meeting = threading.Barrier(2)

    def predict(samples):
        meeting.wait(timeout=HANG)  # broken unless both are here
        return samples

    async def main():
        async with AsyncBatcher(predict, Limits(1, 0.0, 8), engines=2) as batcher:
            return await asyncio.gather(*(batcher.submit(i) for i in range(6)))

    assert asyncio.run(main()) == list(range(6))
    with pytest.raises(ValueError, match="engines is 0"):
        AsyncBatcher(predict, Limits(1, 0.0, 8), engines=0)


# -- on asyncio, in virtual time ---------------------------------------------------------------------------------------


class VirtualSelector(selectors.DefaultSelector):
    """Instead of waiting, it lets the loop's clock go on."""

    now = 0.0

    def select(self, timeout=None):
        events = super().select(0)
        if not events and timeout:
            self.now = max(
                self.now + timeout, math.nextafter(self.now, math.inf)
            )  # however short: else it stands still
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.clock = VirtualSelector()
        super().__init__(self.clock)

    def time(self):
        return self.clock.now


class VirtualThreads:
    """Takes the place of the engine's threads: a batch of n is answered `seconds(n)` later on the loop's clock."""

    def __init__(self, loop, seconds):
        self.loop, self.seconds, self.starts = loop, seconds, []

    def submit(self, function, samples):
        self.starts.append((self.loop.time(), list(samples)))
        future = concurrent.futures.Future()
        self.loop.call_later(self.seconds(len(samples)), lambda: future.set_result(function(samples)))
        return future

    def shutdown(self):
        pass


@settings(max_examples=60, deadline=None)
@given(
    limits=LIMITS,
    rate=st.sampled_from([20.0, 300.0, 3000.0]),
    per_batch=st.sampled_from([0.0005, 0.01]),
    engines=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_on_asyncio_the_same_batches_start_at_the_same_moments_as_in_the_simulation(
    limits, rate, per_batch, engines, seed
):
    arrivals = np.random.default_rng(seed).exponential(1 / rate, 60).cumsum()
    simulated = serve(Batcher(limits), arrivals, lambda n: per_batch * (1 + 0.1 * n), engines)
    refused = []

    async def main(loop):
        batcher = AsyncBatcher(lambda samples: samples, limits, engines=engines)
        batcher._threads = threads = VirtualThreads(loop, lambda n: per_batch * (1 + 0.1 * n))
        async with batcher:
            answers = []

            def arrive(number):
                try:
                    answers.append(batcher.submit(number))
                except QueueFull:
                    refused.append(number)

            for number, moment in enumerate(arrivals):
                loop.call_at(moment, arrive, number)
            await asyncio.sleep(simulated.seconds + 1)
            assert all(answer.done() for answer in answers)
        return threads.starts

    loop = VirtualLoop()
    try:
        starts = loop.run_until_complete(main(loop))
    finally:
        loop.close()
    assert [samples for _, samples in starts] == [list(batch.requests) for batch in simulated.batches]
    np.testing.assert_allclose([moment for moment, _ in starts], [b.start for b in simulated.batches], atol=1e-8)
    assert refused == simulated.refused
