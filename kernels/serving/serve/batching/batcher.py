"""Dynamic batching: requests wait a moment, so that the engine takes several of them at once.

`Batcher` holds the rules and no clock: its methods are told the time. So the same code is tested in virtual time,
simulated (`simulated_queue`) and, driven by `AsyncBatcher`, behind a server.

rules    - requests leave in the order of their arrival
         - a batch holds `batch_limit` requests at most
         - an idle engine gets a batch as soon as it is full, or as soon as its oldest request has waited `wait_limit`
         - at most `capacity` requests wait; another one is turned away at once, with HTTP's 429, to go elsewhere
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Request = TypeVar("Request")


class QueueFull(RuntimeError):
    """As many requests wait as may wait. A server answers 429 Too Many Requests."""


class Closed(RuntimeError):
    """The batcher takes no more requests. A server answers 503 Service Unavailable."""


@dataclass(frozen=True)
class Limits:
    """`batch_limit`: requests per batch at most. `wait_limit`: seconds that the oldest request waits for others while
    an engine is idle. `capacity`: requests that may wait.

    With `wait_limit` 0 an idle engine takes what is there; batches form from what arrived while it was busy.
    ValueError for limits that no request could meet.
    """

    batch_limit: int = 32
    wait_limit: float = 0.002
    capacity: int = 256

    def __post_init__(self) -> None:
        if self.batch_limit < 1:
            raise ValueError(f"batch_limit is {self.batch_limit}; a batch holds one request at least: choose 1 or more")
        if not 0 <= self.wait_limit < float("inf"):
            raise ValueError(f"wait_limit is {self.wait_limit} seconds; choose 0 or more, and less than infinity")
        if self.capacity < self.batch_limit:
            raise ValueError(
                f"capacity is {self.capacity}, less than the batch_limit of {self.batch_limit}: no batch would ever be "
                "full. Let at least one batch wait."
            )


class Batcher(Generic[Request]):
    """The queue and its rules, without a clock: `now` is in seconds from any moment, and never goes back."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.closed = False
        self._waiting: deque[tuple[float, Request]] = deque()

    def __len__(self) -> int:
        """Count requests that wait."""
        return len(self._waiting)

    def offer(self, request: Request, now: float) -> bool:
        """Let `request` wait for a batch. False if the queue is full or closed: then the request is not kept."""
        if self.closed or len(self._waiting) >= self.limits.capacity:
            return False
        self._waiting.append((now, request))
        return True

    def due(self) -> float | None:
        """Return when an idle engine gets the next batch, maybe in the past, as things stand; None if nothing waits."""
        if not self._waiting:
            return None
        oldest = self._waiting[0][0]
        full = len(self._waiting) >= self.limits.batch_limit
        return oldest if full or self.closed else oldest + self.limits.wait_limit

    def take(self, now: float) -> list[Request]:
        """Return the next batch, for an engine that is idle now: the oldest requests, or [] if no batch is due."""
        due = self.due()
        if due is None or now < due:
            return []
        count = min(len(self._waiting), self.limits.batch_limit)
        return [self._waiting.popleft()[1] for _ in range(count)]

    def withdraw(self, request: Request) -> bool:
        """Take back a request that still waits, as its client has gone. False if it waits no more."""
        for place, (_, waiting) in enumerate(self._waiting):
            if waiting is request:
                del self._waiting[place]
                return True
        return False

    def close(self) -> None:
        """Accept no more. What waits is due at once."""
        self.closed = True


@dataclass
class Counts:
    """What became of the requests so far. accepted = answered + failed + withdrawn + those waiting or in an engine.

    `failed`: the engine raised an error. `withdrawn`: the client went before its batch was taken.
    """

    accepted: int = 0
    rejected: int = 0
    answered: int = 0
    failed: int = 0
    withdrawn: int = 0
    batches: int = 0


@dataclass(eq=False)  # two requests with equal samples are still two requests
class _Pending:
    sample: Any
    answer: asyncio.Future


class AsyncBatcher:
    """A Batcher on asyncio's clock, with engines that work in threads of their own.

        async with AsyncBatcher(predict, Limits(batch_limit=32, wait_limit=0.002, capacity=256)) as batcher:
            result = await batcher.submit(sample)

    `predict`: samples of one batch, a list in the order of arrival -> as many results, in that order. It is called in a
    thread, by `engines` threads at once at most. `observe`: called in the event loop after each batch with its size and
    the seconds that `predict` took, for metrics.

    Timers of asyncio may be up to a millisecond late, and so may a batch that is not full.
    """

    def __init__(
        self,
        predict: Callable[[list[Any]], Sequence[Any]],
        limits: Limits,
        *,
        engines: int = 1,
        observe: Callable[[int, float], None] | None = None,
    ) -> None:
        if engines < 1:
            raise ValueError(f"engines is {engines}; at least one engine must answer")
        self.counts = Counts()
        self._predict, self._observe, self._engines = predict, observe, engines
        self._core: Batcher[_Pending] = Batcher(limits)
        self._threads = ThreadPoolExecutor(engines, thread_name_prefix="engine")
        self._workers: list[asyncio.Task] = []
        self._news = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Return requests in the queue, without those in an engine."""
        return len(self._core)

    @property
    def closed(self) -> bool:
        """Return whether it accepts no more requests."""
        return self._core.closed

    def submit(self, sample: Any) -> asyncio.Future:
        """Queue one sample; await the returned future for its result. A future that is cancelled leaves the queue.

        QueueFull and Closed if it is not accepted. The future raises what `predict` raised.
        """
        loop = asyncio.get_running_loop()
        pending = _Pending(sample, loop.create_future())
        if self._core.closed:
            self.counts.rejected += 1
            raise Closed("the service is shutting down and accepts no more requests; ask another replica")
        if not self._core.offer(pending, loop.time()):
            self.counts.rejected += 1
            raise QueueFull(f"{self.waiting} requests wait already, as many as may; try again later")
        self.counts.accepted += 1
        pending.answer.add_done_callback(lambda answer: self._gone(pending) if answer.cancelled() else None)
        if self.waiting == 1 or self.waiting >= self._core.limits.batch_limit:  # else no engine has a reason to wake
            self._news.set()
        return pending.answer

    async def __aenter__(self) -> "AsyncBatcher":
        self._workers = [asyncio.create_task(self._work()) for _ in range(self._engines)]
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Accept no more requests, and return when all accepted ones are answered."""
        self._core.close()
        self._news.set()
        await asyncio.gather(*self._workers)
        self._threads.shutdown()

    async def _work(self) -> None:
        """Serve as one engine: take a batch when one is due, until the batcher is closed and empty."""
        loop = asyncio.get_running_loop()
        while True:
            batch = self._core.take(loop.time())
            if batch:
                await self._answer(batch)
            elif self._core.closed:
                return
            else:
                await self._wait(self._core.due())

    async def _wait(self, due: float | None) -> None:
        """Wait until there is news, or until `due`."""
        self._news.clear()
        try:
            async with asyncio.timeout_at(due):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _answer(self, batch: list[_Pending]) -> None:
        loop = asyncio.get_running_loop()
        started = time.perf_counter()  # the loop's own clock may count whole milliseconds: uvloop's does
        self.counts.batches += 1
        try:
            results = await loop.run_in_executor(self._threads, self._predict, [p.sample for p in batch])
            if len(results) != len(batch):
                raise ValueError(f"the engine returned {len(results)} results for a batch of {len(batch)}")
        except Exception as error:
            self.counts.failed += len(batch)
            for pending in batch:
                if not pending.answer.done():
                    pending.answer.set_exception(error)
        else:
            self.counts.answered += len(batch)
            for pending, result in zip(batch, results, strict=True):
                if not pending.answer.done():
                    pending.answer.set_result(result)
        if self._observe:
            self._observe(len(batch), time.perf_counter() - started)

    def _gone(self, pending: _Pending) -> None:
        if self._core.withdraw(pending):
            self.counts.withdrawn += 1
