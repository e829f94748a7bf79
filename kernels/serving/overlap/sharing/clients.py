"""Processes that share a GPU: `Clients` starts some, lets them serve at the same time, and reads what each did.

    with Clients([{}] * 4) as clients:                        # they take turns: time slices
        reading = clients.serve([Load(batch=1)] * 4)
    with mps.daemon() as mps_daemon, Clients([mps_daemon.environment] * 4) as clients:   # they run together
        reading = clients.serve([Load(batch=1)] * 4)

Each client is a process of its own (`client_process`), with its own CUDA context and weights. All have made their
buffers and graphs before the window that counts begins, and all serve until it ends, so that no client is measured
while others still start. WAYS names the ways to share; `summary` makes a row of a table of a reading.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kernels.serving.small_network import SmallNetwork
from warpcourse.processes.child import Child, ChildFailed, module

WAYS = ("time slices", "MPS", "streams", "one batch")
SECONDS = 0.3  # a window
LEAD = 0.06  # seconds from the command to serve to the beginning of the window
START = 40.0  # seconds that a client may take to start
GRACE = 20.0  # seconds that an answer may take beyond its window

# One process per request's stream is what is measured; libraries that use all cores for one process would disturb it.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class ClientFailed(RuntimeError):
    """A client ended, or said what went wrong."""


@dataclass(frozen=True)
class Load:
    """What one client does: `streams` requests in flight, of `batch` images, each as a CUDA graph or call by call."""

    batch: int = 1
    streams: int = 1
    graph: bool = True


@dataclass(frozen=True)
class ClientResult:
    """What one client did in the window. `latencies`: seconds per answered request. `error`: why it ended, or ""."""

    load: Load
    latencies: tuple[float, ...] = ()
    error: str = ""

    @property
    def answered(self) -> int:
        """Return requests answered in the window."""
        return len(self.latencies)


@dataclass(frozen=True)
class Reading:
    """What clients did in a common window of `seconds`, in the order of the clients."""

    seconds: float
    served: tuple[ClientResult, ...]

    @property
    def images_per_second(self) -> float:
        return sum(one.answered * one.load.batch for one in self.served) / self.seconds

    def latency(self, percent: float) -> float:
        """Return seconds that `percent` of all requests took at most. ValueError where none was answered."""
        taken = [seconds for one in self.served for seconds in one.latencies]
        if not taken:
            raise ValueError("no request was answered in the window; make it longer")
        return float(np.percentile(taken, percent))


def summary(reading: Reading) -> dict[str, Any]:
    """Return a reading as a table's row has it: rates, latencies, and the smallest client's share of the mean."""
    shares = [one.answered for one in reading.served]
    return {
        "images_per_second": reading.images_per_second,
        "p50_seconds": reading.latency(50),
        "p99_seconds": reading.latency(99),
        "smallest_share": min(shares) * len(shares) / sum(shares),
    }


class _Client(Child):
    """A started process."""

    def answer(self, patience: float) -> dict[str, Any]:
        """Return its next answer. Raises ClientFailed for an error, and when it ended or was silent for so long."""
        try:
            found, _ = self.receive(max(patience, 0.0))
        except ChildFailed as failed:
            raise ClientFailed(f"a client did not answer: {failed}") from None
        if "error" in found:
            raise ClientFailed(found["error"])
        return found


class Clients:
    """Processes that serve `network`, one per entry of `environments`, which are added to this process's own.

    A context manager: processes start and end with the block. Raises ClientFailed where one does not start.
    """

    def __init__(self, environments: Sequence[Mapping[str, str]], network: SmallNetwork | None = None) -> None:
        self._environments = list(environments)
        self._network = network or SmallNetwork()
        self._clients: list[_Client] = []

    def __len__(self) -> int:
        return len(self._environments)

    def __enter__(self) -> "Clients":
        try:
            for added in self._environments:
                self._clients.append(self._started(added))
            for client in self._clients:
                client.answer(START)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for client in self._clients:
            client.hang_up()  # of all first, so that they end at the same time
        for client in self._clients:
            client.stop(GRACE)
        self._clients.clear()

    def serve(self, loads: Sequence[Load | None], seconds: float = SECONDS) -> Reading:
        """Let client i do loads[i] in one common window; None, or no entry, leaves a client idle.

        The reading holds the clients that had a load. Raises ClientFailed when one fails.
        """
        reading = self.attempt(loads, seconds)
        for one in reading.served:
            if one.error:
                raise ClientFailed(one.error)
        return reading

    def attempt(
        self, loads: Sequence[Load | None], seconds: float = SECONDS, meanwhile: Callable[[], None] = lambda: None
    ) -> Reading:
        """Do as `serve`, but keep errors in the reading, and call `meanwhile` in the middle of the window."""
        if len(loads) > len(self):
            raise ValueError(f"{len(loads)} loads for {len(self)} clients; start more clients")
        active = [(client, load) for client, load in zip(self._clients, loads, strict=False) if load is not None]
        for client, load in active:
            client.send({"do": "prepare", **asdict(load)})
        errors = [_error(client) for client, _ in active]
        begin = time.monotonic() + LEAD
        end = begin + seconds
        for client, load in active:
            client.send({"do": "serve", "begin": begin, "end": end, **asdict(load)})
        time.sleep(max(0.0, begin + seconds / 2 - time.monotonic()))
        meanwhile()
        served = []
        for (client, load), error in zip(active, errors, strict=True):
            if error:
                served.append(ClientResult(load, (), error))
                continue
            try:
                found = client.answer(end - time.monotonic() + GRACE)
                served.append(ClientResult(load, tuple(found["latencies"]), found["failed"]))
            except ClientFailed as ended:
                served.append(ClientResult(load, (), str(ended)))
        return Reading(seconds, tuple(served))

    def last_answer(self, number: int) -> str:
        """Return how client `number` took the last command that nobody read an answer of: "" or its error."""
        return _error(self._clients[number])

    def fault(self, number: int) -> None:
        """Let client `number`, which must be idle, make an illegal access on its GPU."""
        self._clients[number].send({"do": "fault"})

    def kill(self, number: int) -> None:
        """End client `number` as the operating system does when memory is short: by SIGKILL."""
        self._clients[number].process.kill()

    def _started(self, added: Mapping[str, str]) -> _Client:
        network = json.dumps(asdict(self._network))
        return _Client(module("kernels.serving.overlap.sharing.client_process", network), {**_ONE_THREAD, **added})


def _error(client: _Client) -> str:
    """Return a client's next answer as far as it is an error; "" for any other."""
    try:
        client.answer(GRACE)
    except ClientFailed as error:
        return str(error)
    return ""
