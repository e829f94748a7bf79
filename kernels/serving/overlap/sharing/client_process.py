"""A process that serves the small network: one of those that share a GPU. `sharing.Clients` starts and drives it.

    python -m kernels.serving.overlap.sharing.client_process '{"layers": 16, "channels": 32}'

It reads commands from its standard input, messages in JSON, and answers each by one:

    {"do": "prepare", "batch": 1, "streams": 1, "graph": true}           make buffers and graphs
    {"do": "serve", "batch": 1, ..., "begin": seconds, "end": seconds}   serve until `end` and count from `begin` on
    {"do": "fault"}                                                      write to a null pointer, on a GPU

Times are of the machine's monotonic clock, which all processes share, so that all count the same window. Each stream
has one request in flight: the next is sent when the answer is there (a closed loop).
"""

import json
import sys
import time
from typing import Any

import numpy as np

from kernels.serving.small_network import BLOCK, KERNELS, Requests, SmallNetwork, on_device
from warpcourse.processes.messages import read, reply, take_over


class Server:
    """The network's weights on the device, and prepared requests by batch, streams and graph."""

    def __init__(self, network: SmallNetwork) -> None:
        self.network = network
        self._weights = on_device(network)
        self._prepared: dict[tuple[int, int, bool], list[Requests]] = {}

    def prepare(self, batch: int = 1, streams: int = 1, graph: bool = True) -> list[Requests]:
        """Return a `Requests` per stream; made once."""
        key = batch, streams, graph
        if key not in self._prepared:
            self._prepared[key] = [Requests(self.network, self._weights, batch, graph) for _ in range(streams)]
        return self._prepared[key]

    def serve(self, begin: float, end: float, **load: Any) -> dict[str, Any]:
        """Send and receive until `end`; note the latency of each request that is answered from `begin` to `end`.

        Returns `latencies`, in seconds from sending to having the answer, and `failed`: what ended it early, or "".
        """
        latencies: list[float] = []
        failed = ""
        try:
            self._serve(self.prepare(**load), begin, end, latencies)
        except Exception as error:  # of CUDA, or a wrong answer
            failed = f"{type(error).__name__}: {error}"
        return {"latencies": [round(seconds, 7) for seconds in latencies], "failed": failed}

    def _serve(self, streams: list[Requests], begin: float, end: float, latencies: list[float]) -> None:
        sent, turn = [], 0
        for number, requests in enumerate(streams):
            sent.append(time.monotonic())
            requests.send(number)
        while True:
            number = turn % len(streams)
            streams[number].receive()
            now = time.monotonic()
            if begin <= now <= end:
                latencies.append(now - sent[number])
            if now >= end:
                break
            sent[number] = time.monotonic()
            streams[number].send(turn)
            turn += 1
        for other, requests in enumerate(streams):  # none is left in flight
            if other != number:
                requests.receive()


def fault() -> None:
    """Launch a convolution with null pointers, and wait: on a GPU an error that ends the CUDA context."""
    import cupy

    nowhere, one = np.uint64(0), np.int32(32)
    KERNELS["cuda_conv3x3"].function()((4, 4, 1), (BLOCK,), (nowhere, nowhere, nowhere, nowhere, one, one, one))
    cupy.cuda.Device().synchronize()


def main() -> int:
    """Serve until standard input ends. Returns 1 after an error, which is the last line of the output."""
    commands, answers = take_over()
    try:
        server = Server(SmallNetwork(**json.loads(sys.argv[1])))
        server.prepare()
        reply(answers, {"ready": True})
        while (message := read(commands)) is not None:
            command = message[0]
            what = command.pop("do")
            if what == "prepare":
                server.prepare(**command)
                reply(answers, {"ready": True})
            elif what == "serve":
                found = server.serve(**command)
                reply(answers, found)
                if found["failed"]:
                    return 1
            elif what == "fault":
                fault()
                reply(answers, {"ready": True})
            else:
                raise ValueError(f"there is no command {what!r}; send prepare, serve or fault")
    except Exception as error:
        reply(answers, {"error": f"{type(error).__name__}: {error}"})
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
