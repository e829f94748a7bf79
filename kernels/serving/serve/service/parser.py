"""Parses large bodies in a process of its own.

`json` holds Python's lock from a body's first byte to its last, so not even a thread would let the service answer
others meanwhile: a legal body of 9.5 MB would fail a liveness probe.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kernels.serving.serve.service import request_body
from kernels.serving.serve.service.request_body import BadRequest
from warpcourse.processes.child import Child, ChildFailed, module
from warpcourse.processes.messages import read, reply, take_over

LARGE = 1 << 16  # bytes from which a body is parsed elsewhere: a millisecond's work or more
_SECONDS = 120.0


class Parser:
    """Turns bodies into samples. Its process starts with the first large body, and ends with this one."""

    def __init__(self, shape: tuple[int, ...], most: int) -> None:
        self._shape, self._most = shape, most
        self._child: Child | None = None
        self._thread, self._turn = ThreadPoolExecutor(1, thread_name_prefix="parser"), asyncio.Lock()

    async def samples(self, body: bytes, before: Callable[[], None]) -> np.ndarray:
        """Return the samples in a body, as `request_body.samples` does. Raises what that raises, and BadRequest 503.

        `before`: called when a large body's turn has come; what it raises spares the parsing.
        """
        if len(body) < LARGE:
            return request_body.samples(body, self._shape, self._most)
        async with self._turn:
            before()
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, body)

    def close(self) -> None:
        """End the process."""
        self._thread.shutdown()
        self._end()

    def _ask(self, body: bytes) -> np.ndarray:
        if self._child is None:
            self._child = Child(module("kernels.serving.serve.service.parser"), arrays=True)
        try:
            question = {"shape": self._shape, "most": self._most}
            self._child.send(question, {"body": np.frombuffer(body, np.uint8)})
            answer, arrays = self._child.receive(_SECONDS)
        except ChildFailed as error:  # killed, or out of memory: the next body gets a new one
            self._end()
            raise BadRequest(503, f"the process that reads large bodies failed: {error}; send it again") from error
        if "status" in answer:
            raise BadRequest(answer["status"], answer["reason"])
        return arrays["samples"]

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


def main() -> None:
    """Parse the bodies that come through standard input, until it ends."""
    questions, answers = take_over()
    while (message := read(questions, arrays=True)) is not None:
        question, arrays = message
        try:
            found = request_body.samples(arrays["body"].tobytes(), tuple(question["shape"]), question["most"])
            reply(answers, {}, {"samples": found})
        except BadRequest as error:
            reply(answers, {"status": error.status, "reason": str(error)})


if __name__ == "__main__":
    main()
