"""A model of the ways to share a GPU, in virtual time: no GPU, no clock, a handful of parameters.

Clients are closed loops: each prepares a request on the host (`host` seconds), has it computed, and begins again. The
GPU computes up to `width` images side by side at full speed; an image alone takes `request` seconds and leaves the rest
idle. Requests of n images in all that run at the same time therefore each run at the speed min(1, width / n).

    in_turns     time slices: one process at a time has the whole GPU; handing it over costs `switch`. A process keeps
                 it until it has nothing left to compute, or for `slice` seconds while others wait.
    together     MPS: all at once. `share` is the part of the width that a client may use at most.
    one_thread   streams of one process: all at once too, but one host thread prepares and collects all requests.

For equal clients of one image this gives k / (host + request) until a resource is full: 1 / (request + switch) in
turns, width / request together, 1 / host for one thread. The lesson takes the parameters from recordings,
`predict` gives a row of a recording from them. What the model leaves out: caches, copies, clocks that drop under load,
launches of a request that fill the GPU unevenly, and waves (a grid of 1.1 waves takes as long as one of 2).

Fitted to an H100 (recorded 2026-11-23: 728 µs, 8 µs, 29.5 images, 120 µs) it predicts the throughput of all rows of
"sharing_ways" and "sharing_batches" within a factor of 1.3, but for time slices with 16 clients (1.3) and with batches
of 16 from 8 clients on (1.7), where changing hands took longer than among few clients. With more requests in flight
than the width ("sharing_saturated") it predicts 40 150 to 40 540 images/s; recorded were 29 570 (MPS, 32 in flight) to
46 390 (64 streams). Latencies of a small request beside a large one it has within 1.1 with limited
shares; recorded were 1.2 times the predicted latency by time slices and 1.4 times by MPS without limits: the model
gives a small request its part of the SMs at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

UNTIL = 0.2  # seconds of virtual time for a row of a table
_TINY = 1e-12  # seconds; what is left of a request below this is done


@dataclass(frozen=True)
class Gpu:
    """What the model knows of a GPU and a network. Seconds, except `width`, in images.

    `request`: GPU time of one image alone. `host`: from an answer to the next request's start on the GPU.
    `width`: images that run side by side at full speed. `switch`: from one process to the next.
    `slice`: the longest that a process keeps the GPU while others wait.
    """

    request: float
    host: float
    width: float
    switch: float = 0.0
    slice: float = 2e-3

    def __post_init__(self) -> None:
        """Raise ValueError for times below zero and for a width below one image."""
        if self.request <= 0 or self.slice <= 0 or min(self.host, self.switch) < 0 or self.width < 1:
            raise ValueError(
                f"a GPU needs request > 0, slice > 0, host >= 0, switch >= 0 and width >= 1; this one is {self}"
            )

    def seconds(self, batch: int) -> float:
        """Return GPU time of a request of `batch` images that has the GPU to itself."""
        return self.request * max(1.0, batch / self.width)


@dataclass(frozen=True)
class Client:
    """A closed loop with requests of `batch` images. `share`: of the GPU's width, at most, when run together."""

    batch: int = 1
    share: float = 1.0


@dataclass(frozen=True)
class Request:
    """One request of a client: when the host began to prepare it, when it began to run, and when it was answered."""

    client: int
    sent: float
    began: float
    answered: float

    @property
    def latency(self) -> float:
        """As a client measures it: the host's preparation is in it."""
        return self.answered - self.sent


def one_thread(gpu: Gpu, streams: int, batch: int = 1, until: float = UNTIL) -> list[Request]:
    """Return all requests of streams of one process, whose only thread needs `gpu.host` seconds for each request."""
    return together(gpu, [Client(batch)] * streams, until, one_host=True)


def together(gpu: Gpu, clients: Sequence[Client], until: float = UNTIL, *, one_host: bool = False) -> list[Request]:
    """Return all requests answered before `until` seconds, all clients side by side, in order of their answers.

    `one_host`: one host thread prepares and collects the requests of all.
    """
    now, found = 0.0, []
    free_at = 0.0  # the one host thread's
    sent: dict[int, float] = {}  # by client: when the host began with its request
    ready: dict[int, float] = {}  # and when the request will be on the GPU
    left: dict[int, float] = {}  # by running client: seconds of its request at full speed
    began: dict[int, float] = {}

    def prepare(number: int) -> None:
        nonlocal free_at
        sent[number] = max(free_at, now) if one_host else now
        ready[number] = free_at = sent[number] + gpu.host

    for number in range(len(clients)):
        prepare(number)
    while now < until:
        speeds = _speeds(gpu, clients, left)
        ends = {number: now + left[number] / speeds[number] for number in left}
        upcoming = min([*ready.values(), *ends.values()])
        for number in left:
            left[number] -= (upcoming - now) * speeds[number]
        now = upcoming
        for number in sorted(ends, key=ends.__getitem__):
            if ends[number] <= now + _TINY:
                collected = max(free_at, now) if one_host else now
                found.append(Request(number, sent[number], began.pop(number), collected))
                del left[number]
                prepare(number)
        for number in [number for number, at in ready.items() if at <= now + _TINY]:
            del ready[number]
            began[number], left[number] = now, gpu.request
    return [one for one in found if one.answered <= until]


def _speeds(gpu: Gpu, clients: Sequence[Client], running: Mapping[int, float]) -> dict[int, float]:
    """Return by running client its request's speed: 1 where its images have the width that they can use."""
    caps = {number: min(1.0, clients[number].share * gpu.width / clients[number].batch) for number in running}
    used = sum(caps[number] * clients[number].batch for number in running)  # of the width
    fraction = min(1.0, gpu.width / used) if used else 1.0
    return {number: cap * fraction for number, cap in caps.items()}


def in_turns(gpu: Gpu, clients: Sequence[Client], until: float = UNTIL) -> list[Request]:
    """Return all requests answered before `until` seconds, one process at a time on the GPU, in order of answers."""
    now, found = 0.0, []
    sent = dict.fromkeys(range(len(clients)), 0.0)  # by client: when the host began with its request
    ready = dict.fromkeys(range(len(clients)), gpu.host)  # and when it is there
    left = {number: gpu.seconds(client.batch) for number, client in enumerate(clients)}
    began: dict[int, float] = {}
    queue: list[int] = []  # clients with a request, in the order of their turns
    last: int | None = None

    def arrive() -> None:
        for number in sorted((n for n, at in ready.items() if at <= now + _TINY), key=lambda n: (ready[n], n)):
            del ready[number]
            queue.append(number)

    while now < until:
        arrive()
        if not queue:
            now = min(ready.values())
            continue
        number = queue.pop(0)
        if last is not None and number != last:
            now += gpu.switch
        last = number
        began.setdefault(number, now)
        while True:  # a slice, and further ones as long as nobody waits
            step = min(left[number], gpu.slice)
            now += step
            left[number] -= step
            arrive()
            if left[number] <= _TINY:
                found.append(Request(number, sent[number], began.pop(number), now))
                left[number] = gpu.seconds(clients[number].batch)
                sent[number], ready[number] = now, now + gpu.host
                break
            if queue:
                queue.append(number)
                break
    return [one for one in found if one.answered <= until]


def row(requests: Sequence[Request], batch: int = 1, begin: float = 0.0, until: float = UNTIL) -> dict[str, float]:
    """Return throughput and latencies of the requests answered from `begin` to `until`, as a recording's row has them.

    Raises ValueError where none was.
    """
    counted = [one for one in requests if begin <= one.answered <= until]
    if not counted:
        raise ValueError("no request was answered; let the model run for longer")
    latencies = [one.latency for one in counted]
    return {
        "images_per_second": len(counted) * batch / (until - begin),
        "p50_seconds": float(np.percentile(latencies, 50)),
        "p99_seconds": float(np.percentile(latencies, 99)),
    }


WAYS: dict[str, Callable[[Gpu, int, int, float], list[Request]]] = {
    "time slices": lambda gpu, k, batch, until: in_turns(gpu, [Client(batch)] * k, until),
    "MPS": lambda gpu, k, batch, until: together(gpu, [Client(batch)] * k, until),
    "streams": lambda gpu, k, batch, until: one_thread(gpu, k, batch, until),
    "one batch": lambda gpu, k, batch, until: together(gpu, [Client(batch)] * k, until),
}


def predict(gpu: Gpu, way: str, clients: int, batch: int = 1) -> dict[str, float]:
    """Return a row for k clients with requests of `batch` images. Raises ValueError for a way that is not in WAYS."""
    if way not in WAYS:
        raise ValueError(f"there is no way {way!r} to share a GPU; choose one of {', '.join(WAYS)}")
    until = max(UNTIL, 20 * clients * (gpu.seconds(batch) + gpu.switch + gpu.host))
    begin = until / 4  # after the first requests, which all come at once
    return row(WAYS[way](gpu, clients, batch, until), batch, begin, until)
