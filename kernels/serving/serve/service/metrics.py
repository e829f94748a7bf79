"""What a service tells Prometheus: requests by status, their times, batches, and the queue as it is now.

Names and units follow Prometheus's rules (prometheus.io/docs/practices/naming): seconds, counters that end in _total.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_SAMPLES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of one service, in a registry of its own, so that two services in one process do not mix."""

    def __init__(self, engine: str) -> None:
        self.registry = registry = CollectorRegistry()
        info = Gauge("serving_engine_info", "The engine that answers; always 1", ["engine"], registry=registry)
        info.labels(engine).set(1)
        self._requests = Counter(
            "serving_requests", "Requests to /v1/predict that were answered, by status", ["status"], registry=registry
        )
        self._seconds = Histogram(
            "serving_request_seconds",
            "Time from a request's last byte to its answer, for those with status 200",
            registry=registry,
            buckets=_SECONDS,
        )
        self._batch = Histogram("serving_batch_samples", "Samples in a batch", registry=registry, buckets=_SAMPLES)
        self._engine = Histogram(
            "serving_engine_seconds", "Time that the engine took for a batch", registry=registry, buckets=_SECONDS
        )

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Register a gauge that is read when Prometheus asks."""
        Gauge(name, meaning, registry=self.registry).set_function(value)

    def watch_count(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Register a counter, `name` without its _total, kept elsewhere, that is read when Prometheus asks."""
        self.registry.register(_Count(name, meaning, value))

    def request(self, status: int, seconds: float) -> None:
        """Count an answered request to /v1/predict."""
        self._requests.labels(str(status)).inc()
        if status == 200:
            self._seconds.observe(seconds)

    def batch(self, size: int, seconds: float) -> None:
        """Count a batch that the engine answered, or failed at."""
        self._batch.observe(size)
        self._engine.observe(seconds)

    def text(self) -> bytes:
        """Return all of them, in Prometheus's text format."""
        return generate_latest(self.registry)


class _Count(Collector):
    """A count kept elsewhere: a Counter of the library can only be added to."""

    def __init__(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        self._name, self._meaning, self._value = name, meaning, value

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily(self._name, self._meaning, value=self._value())
