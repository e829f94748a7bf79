"""Load on a service, open loop: requests come when they come, whether or not the earlier ones are answered.

    with InProcess(predict, Limits(batch_limit=8), samples) as service:
        load = offer(service, rate=500, seconds=2)
    load.statuses, load.percentile(99)

The generator is MLPerf's LoadGen in its Server scenario: arrivals of a Poisson process, planned before the run. Where
it has no wheels (ARM, Python 3.14), NumPy draws the arrivals and a loop in Python sends them; the plans of both differ.

Latency counts from the planned moment, not from the moment of sending. A generator that waits for an answer before it
sends the next request (a closed loop) stops sending while the service hangs: the requests that would have suffered are
never sent, and the percentiles look well. Gil Tene calls that coordinated omission. `LoadResult.from_sending` is what
such a generator would have reported of the requests that were sent late.

Source: LoadGen, github.com/mlcommons/inference, loadgen/. It keeps global state: one `offer` at a time per process.
"""

import asyncio
import gc
import http.client
import importlib.util
import queue
import re
import select
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np

from kernels.serving.serve.batching.batcher import AsyncBatcher, Closed, Limits, QueueFull

OK, TOO_MANY, ERROR, UNAVAILABLE = 200, 429, 500, 503  # HTTP's numbers, also where no HTTP is
LOST = 0  # no answer within the patience, or a broken connection
SWITCH_INTERVAL = 0.0005  # seconds that a Python thread keeps the interpreter while another one asks for it

Done = Callable[[int, int], None]
"""Told (ticket, status) once for each request, from any thread."""


class SystemUnderTest(Protocol):
    """What load is offered to: `send` starts requests and returns at once, and `done` hears of each."""

    samples: int

    def send(self, tickets: Sequence[int], indices: Sequence[int], done: Done) -> None: ...


@dataclass(frozen=True, eq=False)
class LoadResult:
    """What became of the requests of one run, in the order of their planned moments. Arrays are of shape (requests,).

    `rate`: requests per second that were asked for. `planned`: seconds since the first planned moment. `late`: seconds
    from the planned moment until LoadGen sent it. `latency`: seconds from the planned moment until the answer,
    whatever it said. `status`: HTTP's number, or LOST.
    """

    rate: float
    planned: np.ndarray
    late: np.ndarray
    latency: np.ndarray
    status: np.ndarray

    @property
    def statuses(self) -> dict[int, int]:
        """Return how many requests ended with which status."""
        return dict(sorted(Counter(self.status.tolist()).items()))

    @property
    def seconds(self) -> float:
        """From the first planned moment to the last answer."""
        return float((self.planned + self.latency).max(initial=0))

    @property
    def offered(self) -> float:
        """Return requests per second that came, by their plan."""
        return len(self.planned) / float(self.planned[-1]) if len(self.planned) > 1 else 0.0

    @property
    def throughput(self) -> float:
        """Return requests per second that were answered with OK."""
        return int((self.status == OK).sum()) / self.seconds if self.seconds else 0.0

    def percentile(self, percent: float) -> float:
        """Return this percentile of the latency of requests answered with OK, in seconds; NaN if none was."""
        return _percentile(self.latency[self.status == OK], percent)

    def from_sending(self, percent: float) -> float:
        """Do the same from the moment of sending: without the wait of requests that the generator sent late."""
        return _percentile((self.latency - self.late)[self.status == OK], percent)

    def summary(self) -> dict[str, Any]:
        """Return the run in JSON types: statuses are strings; what does not exist, as nothing was answered, is None."""
        return {
            "asked_per_second": self.rate,
            "offered_per_second": self.offered,
            "answered_per_second": self.throughput,
            "requests": len(self.status),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "seconds": self.seconds,
            "mean_seconds": _number(self.latency[self.status == OK].mean() if OK in self.statuses else np.nan),
            "p50_seconds": _number(self.percentile(50)),
            "p99_seconds": _number(self.percentile(99)),
            "largest_seconds": _number(self.percentile(100)),
            "p99_from_sending_seconds": _number(self.from_sending(99)),
        }


def offer(
    service: SystemUnderTest, rate: float, seconds: float, *, seed: int = 2017, patience: float = 30.0
) -> LoadResult:
    """Send `rate` requests per second on the average for `seconds`, as LoadGen's Server scenario plans them.

    `seed`: of arrivals and of the choice of samples. `patience`: seconds after the last request was sent; what has no
    answer then is LOST. Returns when every request has an answer or is lost. Raise ValueError for a rate or a time that
    is not positive.
    """
    if not (0 < rate < float("inf") and 0 < seconds < float("inf")):
        raise ValueError(f"rate is {rate} requests per second for {seconds} seconds; both must be above 0 and finite")
    offer_by = _by_loadgen if has_loadgen() else _by_numpy
    return offer_by(service, rate, seconds, seed, patience)


def has_loadgen() -> bool:
    """Return whether LoadGen is installed."""
    return importlib.util.find_spec("mlperf_loadgen") is not None


def _by_loadgen(service: SystemUnderTest, rate: float, seconds: float, seed: int, patience: float) -> LoadResult:
    import mlperf_loadgen as loadgen

    def complete(ticket: int) -> None:
        loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(ticket, 0, 0)])

    run = _Run(service, patience, complete)
    sut = loadgen.ConstructFastSUT(run.issue, run.all_sent)
    library = loadgen.ConstructQSL(service.samples, service.samples, lambda samples: None, lambda samples: None)
    with tempfile.TemporaryDirectory() as folder:
        logs = loadgen.LogSettings()
        logs.log_output.outdir, logs.enable_trace = folder, True
        try:
            loadgen.StartTestWithLogSettings(sut, library, _settings(rate, seconds, seed), logs, "")
        finally:
            loadgen.DestroyQSL(library)
            loadgen.DestroyFastSUT(sut)
            run.end()
        planned, late, latency = read_trace(Path(folder) / "mlperf_log_trace.json")
    if len(planned) != len(run.tickets):
        raise RuntimeError(f"LoadGen's trace tells of {len(planned)} requests, but {len(run.tickets)} were sent")
    status = np.array([run.status[ticket] for ticket in run.tickets], int)
    return LoadResult(rate, planned, late, latency, status)


def _by_numpy(service: SystemUnderTest, rate: float, seconds: float, seed: int, patience: float) -> LoadResult:
    draw = np.random.default_rng(seed)
    # So many arrivals of a Poisson process lie as independent uniform draws do.
    planned = np.sort(draw.uniform(0, seconds, max(1, draw.poisson(rate * seconds))))
    planned -= planned[0]
    indices = draw.integers(service.samples, size=len(planned)).tolist()
    sent, answered, open_ = np.empty(len(planned)), np.empty(len(planned)), threading.Semaphore(0)

    def complete(ticket: int) -> None:
        answered[ticket] = time.perf_counter() - start
        open_.release()

    run = _Run(service, patience, complete)
    start, next_ = time.perf_counter(), 0
    try:
        while next_ < len(planned):
            now = time.perf_counter() - start
            due = int(np.searchsorted(planned, now, side="right"))
            if due > next_:  # requests whose moment has passed are sent with one call
                sent[next_:due] = now
                run.issue(list(range(next_, due)), indices[next_:due])
                next_ = due
            else:
                time.sleep(planned[next_] - now)
        run.all_sent()
        for _ in planned:
            open_.acquire()
    finally:
        run.end()
    status = np.array([run.status[ticket] for ticket in range(len(planned))], int)
    return LoadResult(rate, planned, sent - planned, answered - planned, status)


SAMPLE = re.compile(rb'"ts":([\d.]+),"args":\{"sample_seq":(\d+),.*"issue_start_ns":(\d+),"complete_ns":(\d+)')


def read_trace(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read each request of LoadGen's trace, in the order of their plan: planned moment since the first one, how late it
    was sent, and when it was answered, both since the planned moment. Seconds, float64, shape (requests,) each.
    """
    with path.open("rb") as lines:
        found = [match.groups() for line in lines if b'"sample_seq"' in line and (match := SAMPLE.search(line))]
    if not found:
        return np.empty(0), np.empty(0), np.empty(0)
    micros, number, sent, answered = np.array(found, dtype="S32").astype(np.float64).T
    order = np.argsort(number)
    micros, sent, answered = micros[order], sent[order], answered[order]
    return (micros - micros[0]) * 1e-6, sent * 1e-9, answered * 1e-9


def _settings(rate: float, seconds: float, seed: int) -> Any:
    import mlperf_loadgen as loadgen

    settings = loadgen.TestSettings()
    settings.scenario, settings.mode = loadgen.TestScenario.Server, loadgen.TestMode.PerformanceOnly
    settings.server_target_qps = rate
    settings.server_coalesce_queries = True  # requests whose moment has passed are sent with one call
    settings.min_duration_ms, settings.min_query_count = max(1, round(1000 * seconds)), 1
    settings.schedule_rng_seed = settings.sample_index_rng_seed = settings.qsl_rng_seed = seed
    return settings


class _Run:
    """One run's book: who was sent, who was answered and how. `complete`: told each ticket at its first answer."""

    def __init__(self, service: SystemUnderTest, patience: float, complete: Callable[[int], None]) -> None:
        self._complete = complete
        self.tickets: list[int] = []
        self.status: dict[int, int] = {}
        self._service = service
        self._lock = threading.Lock()
        self._watchdog = threading.Timer(patience, self._lose)
        self._watchdog.daemon = True

    def issue(self, tickets: list[int], indices: list[int]) -> None:
        self.tickets.extend(tickets)
        self._service.send(tickets, indices, self.done)

    def done(self, ticket: int, status: int) -> None:
        with self._lock:
            if ticket in self.status:  # it was given up
                return
            self.status[ticket] = status
        self._complete(ticket)

    def all_sent(self) -> None:
        self._watchdog.start()

    def end(self) -> None:
        self._watchdog.cancel()

    def _lose(self) -> None:
        for ticket in self.tickets:
            self.done(ticket, LOST)


class InProcess:
    """A batcher and its engine in this process, in threads of their own: load without HTTP.

    `predict`, `limits`, `engines`: AsyncBatcher's. `data`: samples that LoadGen chooses from, shape (samples, ...).
    `check`: told (index, result) -> whether the result is right; a wrong one ends with status ERROR.
    """

    def __init__(
        self,
        predict: Callable[[list[Any]], Sequence[Any]],
        limits: Limits,
        data: Sequence[Any],
        *,
        engines: int = 1,
        observe: Callable[[int, float], None] | None = None,
        check: Callable[[int, Any], bool] | None = None,
    ) -> None:
        self.samples = len(data)
        self.batcher = AsyncBatcher(predict, limits, engines=engines, observe=observe)
        self._data, self._check = data, check
        self._arrived: deque[tuple[int, int, Done]] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="batcher", daemon=True)

    def __enter__(self) -> "InProcess":
        # Python stops all threads for each full garbage collection: 50 to 100 ms where PyTorch is imported. What is
        # there now stays anyway, and is left out of them.
        gc.collect()
        gc.freeze()
        # The thread that comes back from the GPU needs the interpreter, and shall not wait the usual 5 ms for it.
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.batcher.__aenter__(), self._loop).result()
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self.batcher.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        sys.setswitchinterval(self._interval)
        gc.unfreeze()

    def send(self, tickets: Sequence[int], indices: Sequence[int], done: Done) -> None:
        self._arrived.extend((ticket, index, done) for ticket, index in zip(tickets, indices, strict=True))
        self._loop.call_soon_threadsafe(self._submit)

    def _submit(self) -> None:
        while self._arrived:
            ticket, index, done = self._arrived.popleft()
            try:
                answer = self.batcher.submit(self._data[index])
            except QueueFull:
                done(ticket, TOO_MANY)
            except Closed:
                done(ticket, UNAVAILABLE)
            else:
                answer.add_done_callback(partial(self._answered, ticket, index, done))

    def _answered(self, ticket: int, index: int, done: Done, answer: asyncio.Future) -> None:
        wrong = answer.exception() is not None or (self._check and not self._check(index, answer.result()))
        done(ticket, ERROR if wrong else OK)


class OverHttp:
    """A service at `url`, asked by POST over `connections` connections that stay open, a thread each.

    `bodies`: JSON texts of requests that LoadGen chooses from. A request waits for a free connection here; that wait
    counts, as latency begins at the planned moment. Let there be more connections than the service has places for
    requests (queue and batches), else they limit the load. `check`: told (index, body of the answer) -> whether it is
    right; a wrong one ends with status ERROR. A connection that the service has closed is opened again before the next
    request; a request whose connection breaks is LOST, and not sent again.
    """

    def __init__(
        self,
        url: str,
        bodies: Sequence[bytes],
        *,
        connections: int = 64,
        timeout: float = 30.0,
        check: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        self.samples = len(bodies)
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a service; give one such as http://127.0.0.1:8000/v1/predict")
        self._host, self._port, self._path = parts.hostname, parts.port or 80, parts.path or "/"
        self._bodies, self._timeout, self._check = bodies, timeout, check
        self._requests: queue.SimpleQueue[tuple[int, int, Done] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(connections)]

    def __enter__(self) -> "OverHttp":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        for _ in self._threads:
            self._requests.put(None)
        for thread in self._threads:
            thread.join()

    def send(self, tickets: Sequence[int], indices: Sequence[int], done: Done) -> None:
        for ticket, index in zip(tickets, indices, strict=True):
            self._requests.put((ticket, index, done))

    def _ask(self) -> None:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        while (request := self._requests.get()) is not None:
            ticket, index, done = request
            done(ticket, self._post(connection, index))
        connection.close()

    def _post(self, connection: http.client.HTTPConnection, index: int) -> int:
        if connection.sock and select.select([connection.sock], [], [], 0)[0]:  # nobody has asked: it says good-bye
            connection.close()
        try:
            connection.request("POST", self._path, self._bodies[index], {"Content-Type": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()  # the next request opens it again
            return LOST
        return ERROR if answer.status == OK and self._check and not self._check(index, body) else answer.status


def _percentile(seconds: np.ndarray, percent: float) -> float:
    return float(np.percentile(seconds, percent)) if len(seconds) else float("nan")


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
