"""An engine behind HTTP. One command starts it:

    python -m kernels.serving.serve --engine kernels.serving.serve.engines:digits --port 8000

POST /v1/predict    {"instances": [sample, ...]} -> {"predictions": [row, ...]}, in the order of the samples
POST /v2/models/engine/infer    the same with the samples as bytes, as `binary_tensors` says
GET /v1/model       what the engine takes and answers
GET /health/live    200 while the process answers at all: if not, start it anew; /v2/health/live is the same
GET /health/ready   200 while it accepts requests, 503 while it shuts down: send requests only to those that do;
                    /v2/health/ready and /v2/models/engine/ready are the same
GET /metrics        for Prometheus

A request is accepted when all its samples are in the queue, and whatever is accepted is answered: the queue is bounded,
a request that finds it full is turned away with 429. So are the requests in hand and the bytes of their bodies: what is
beyond is refused with 503. Either comes before a body is read, on a new connection before anything is: refusals cost
little, and those who are answered don't wait behind those who are not. SIGTERM or Ctrl-C lets what was accepted finish
while new requests get 503. A client that gets either may ask again; one that gets another 4xx has to change something.
RFC 6585 has 429 for a client that asks too often, RFC 9110 has 503 for a server that is overloaded for a while; servers
use both for a full queue. Here they differ so that a client can tell "soon" from "elsewhere"; Retry-After comes with
both.
What is counted as answered the engine has answered; for a client that has gone meanwhile it was computed in vain.

It asks no client who it is. Unless told otherwise it listens on 127.0.0.1: any program of this machine may ask, another
user's too, and gets answers and counters. Open to a network it belongs behind a proxy, which ends TLS, knows its
clients, and closes connections that do nothing.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import logging
import math
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from kernels.serving.serve import engines
from kernels.serving.serve.batching.batcher import AsyncBatcher, Closed, Limits, QueueFull
from kernels.serving.serve.engines import Engine, EngineError
from kernels.serving.serve.service import binary_tensors, request_body, server
from kernels.serving.serve.service.metrics import CONTENT_TYPE, Metrics
from kernels.serving.serve.service.parser import Parser
from kernels.serving.serve.service.request_body import BadRequest
from kernels.serving.serve.service.server import ServiceError

BODY_SECONDS = 10.0  # for a body to arrive
NUMBER_BYTES = 32  # of a number in JSON, at most: 17 digits, sign, exponent, comma, and some room
IN_HAND = 32  # requests, by default, or two for each sample that may wait or be computed: a request holds one at least
BUFFERED = 64 << 20  # bytes of all bodies in hand, by default, or one body if that is more
RETRY_AFTER = 1  # seconds, the header's smallest unit
LATER = "try again later"
REFUSALS = {
    "400": "The body is no JSON",
    "408": f"The body did not arrive within {BODY_SECONDS:g} seconds",
    "413": "The body is larger than may be",
    "415": "The body is compressed",
    "422": "The JSON holds no such samples",
    "429": "The queue is full: try again later",
    "500": "The engine failed",
    "503": "Too much is in hand, or the service shuts down: try again later, or elsewhere",
}
_log = logging.getLogger(__name__)
Reply = Callable[[list[np.ndarray]], Response]
PATHS = "POST /v1/predict, /v2/models/engine/infer, GET /v1/model, /health/live, /health/ready, /metrics"


class Service:
    """An engine with its queue, and `application`, which speaks HTTP for them.

    `limits`: of the queue and its batches. A request holds at most as many samples as a batch; all of them are accepted
    or none. `body_limit`: bytes of a request's body; None: as many as those samples can take. `in_hand`: requests at
    once, from their arrival to their answer; None: two for each sample that may wait or be computed, IN_HAND at least.
    `buffered`: bytes of their bodies at once.
    """

    def __init__(
        self,
        engine: Engine,
        limits: Limits | None = None,
        *,
        body_limit: int | None = None,
        in_hand: int | None = None,
        buffered: int = BUFFERED,
    ) -> None:
        self.engine, self.limits = engine, limits or Limits()
        numbers = self.limits.batch_limit * math.prod(engine.shape)
        self.body_limit = body_limit or NUMBER_BYTES * numbers + 1024
        self.batcher: AsyncBatcher | None = None
        self.draining = False
        self.requests = 0  # in hand now, from their arrival to their answer
        computed = self.limits.batch_limit * engines.at_once(engine)
        self.in_hand = in_hand or max(IN_HAND, 2 * (self.limits.capacity + computed))
        self.room = request_body.Room(max(buffered, self.body_limit))
        self._parser = Parser(engine.shape, self.limits.batch_limit)
        self._idle = asyncio.Event()
        self.metrics = Metrics(engine.name)
        self.metrics.watch("serving_queue_samples", "Samples that wait for a batch", lambda: self.waiting)
        self.metrics.watch("serving_in_hand", "Requests that have arrived and are not answered", lambda: self.requests)
        self.metrics.watch("serving_buffered_bytes", "Bytes of bodies in hand", lambda: self.room.taken)
        self.metrics.watch("serving_ready", "1 while requests are accepted", lambda: float(self.ready))
        if hasattr(engine, "retries"):
            meaning = "Batches that the engine sent again, as a replica had died"
            self.metrics.watch_count("serving_engine_retries", meaning, lambda: engine.retries)
        self.application = self._application()

    @property
    def waiting(self) -> int:
        """Samples in the queue."""
        return self.batcher.waiting if self.batcher else 0

    @property
    def ready(self) -> bool:
        """Whether it accepts requests."""
        return self.batcher is not None and not self.draining

    @contextlib.asynccontextmanager
    async def running(self, _: object = None) -> AsyncIterator[None]:
        """Answer requests while this is open; on leaving, all that were accepted."""
        given = {"engines": engines.at_once(self.engine), "observe": self.metrics.batch}
        try:
            async with AsyncBatcher(self._predict, self.limits, **given) as self.batcher:
                yield
                await self.drain()
        finally:
            self._parser.close()
            engines.close(self.engine)

    async def drain(self) -> None:
        """Accept no more requests, and return when all that were accepted are answered."""
        self.draining = True
        if self.batcher is not None:
            await self.batcher.close()
        while self.requests:
            self._idle.clear()
            await self._idle.wait()

    def _predict(self, samples: list[np.ndarray]) -> np.ndarray:
        return engines.answer(self.engine, np.stack(samples))

    # -- HTTP ----------------------------------------------------------------------------------------------------------

    def _application(self) -> FastAPI:
        # No pages of documentation: theirs load scripts from elsewhere. /openapi.json describes the service.
        application = FastAPI(
            title=f"Serving {self.engine.name}", docs_url=None, redoc_url=None, lifespan=lambda _: self.running()
        )
        application.post("/v1/predict", response_class=Response, openapi_extra=self._schema())(self.predict)
        refusals, model = {"responses": self._schema()["responses"]}, f"/v2/models/{binary_tensors.MODEL}"
        application.post(f"{model}/infer", response_class=Response, openapi_extra=refusals)(self.infer)
        application.get("/v1/model")(self.model)
        for before in ("", "/v2"):
            application.get(f"{before}/health/live")(self.live)
            application.get(f"{before}/health/ready")(self.is_ready)
        application.get(f"{model}/ready")(self.is_ready)
        application.get("/metrics")(self.prometheus)
        application.add_exception_handler(HTTPException, self._refuse)
        return application

    async def predict(self, request: Request) -> Response:
        """Answer the samples in the body with the engine's results, or the reason why there are none."""

        async def read(body: bytes) -> tuple[np.ndarray, Reply]:
            samples = await self._parser.samples(body, lambda: self._find_room(1))
            return samples, lambda rows: self._json(200, {"predictions": [row.tolist() for row in rows]})

        return await self._answered(request, read)

    async def infer(self, request: Request) -> Response:
        """Do so for samples that are sent as binary tensors."""

        async def read(body: bytes) -> tuple[np.ndarray, Reply]:
            header = request.headers.get(binary_tensors.HEADER)
            asked = binary_tensors.asked(body, header, self.engine.shape, self.limits.batch_limit)

            def reply(rows: list[np.ndarray]) -> Response:
                content, headers = binary_tensors.answer(asked, rows)
                return Response(content, 200, {**self._closing(), **headers})

            return asked.samples, reply

        return await self._answered(request, read)

    async def _answered(
        self, request: Request, read: Callable[[bytes], Awaitable[tuple[np.ndarray, Reply]]]
    ) -> Response:
        if (refusal := self.turned_away()) is not None:
            return refusal
        self.requests += 1
        started = time.perf_counter()
        length = request.headers.get("content-length")
        try:
            if (coding := request.headers.get("content-encoding", "identity")) != "identity":
                raise BadRequest(415, f"the body's content-encoding is {coding:.40}; send it as it is")
            with self.room.share() as take:
                body = await request_body.read(request.stream(), length, self.body_limit, BODY_SECONDS, take)
                started = time.perf_counter()
                samples, reply = await read(body)
            response = reply(await asyncio.gather(*self._accept(samples)))
        except BadRequest as error:
            response = self._refusal(error.status, error)
        except QueueFull as error:
            response = self._refusal(429, error)
        except Closed as error:
            response = self._refusal(503, error)
        except ClientDisconnect:
            response = Response(status_code=400)  # nobody reads it
        except Exception as error:  # the engine's
            _log.error("the engine failed", exc_info=error)
            response = self._json(500, {"error": f"the engine failed: {_first_line(error)}"})
        finally:
            self.requests -= 1
            if not self.requests:
                self._idle.set()
        self.metrics.request(response.status_code, time.perf_counter() - started)
        return response

    def turned_away(self) -> Response | None:
        """Return the refusal of a request that comes now, before anything of it is read; None: it may come in."""
        if self.draining:  # which is said to each in its turn
            return None
        try:
            if self.requests >= self.in_hand:
                raise BadRequest(503, f"{self.in_hand} requests are in hand already, as many as may be; {LATER}")
            self._find_room(1)
        except BadRequest as error:
            response = self._refusal(error.status, error)
        except QueueFull as error:
            response = self._refusal(429, error)
        else:
            return None
        self.metrics.request(response.status_code, 0.0)
        return response

    def _accept(self, samples: np.ndarray) -> list[asyncio.Future]:
        """Queue all of them, or none: nothing else runs in between."""
        if self.batcher is None or self.draining:
            closed = "the service is shutting down and accepts no more requests; ask another replica"
            raise self._rejected(len(samples), Closed(closed))
        self._find_room(len(samples))
        return [self.batcher.submit(sample) for sample in samples]

    def _find_room(self, count: int) -> None:
        """Raise QueueFull where so many samples find no room. A body has one at least, even before it is parsed."""
        if self.waiting + count > self.limits.capacity:
            full = f"{self.waiting} samples wait already, and {self.limits.capacity} may; {LATER}"
            raise self._rejected(count, QueueFull(full))

    def _rejected(self, count: int, error: Exception) -> Exception:
        if self.batcher is not None:
            self.batcher.counts.rejected += count
        return error

    async def model(self) -> dict[str, Any]:
        """Say what the engine takes."""
        return {
            "engine": self.engine.name,
            "sample_shape": list(self.engine.shape),
            "samples_per_request": self.limits.batch_limit,
            "body_bytes": self.body_limit,
            "send": request_body.expected(self.engine.shape),
        }

    async def live(self) -> dict[str, str]:
        """Say that the process answers."""
        return {"status": "live"}

    async def is_ready(self) -> Response:
        """Return whether it accepts requests."""
        if self.ready:
            return self._json(200, {"status": "ready"})
        return self._json(503, {"error": "the service is shutting down; send requests to another replica"})

    async def prometheus(self) -> Response:
        """Return all metrics."""
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    async def _refuse(self, request: Request, error: Exception) -> Response:
        """Answer paths and methods that there are not."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        return self._json(
            status, {"error": f"there is no {request.method} {request.url.path}; there are {PATHS}"}, headers
        )

    def _refusal(self, status: int, error: Exception) -> Response:
        later = {"Retry-After": str(RETRY_AFTER)} if status in (429, 503) else {}
        return self._json(status, {"error": str(error)}, later)

    def _json(self, status: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
        return Response(json.dumps(content), status, {**self._closing(), **(headers or {})}, "application/json")

    def _closing(self) -> dict[str, str]:
        """While it shuts down, each answer ends its connection, so that the client's next request goes elsewhere."""
        return {"Connection": "close"} if self.draining else {}

    def _schema(self) -> dict[str, Any]:
        sample: dict[str, Any] = {"type": "number"}
        for n in reversed(self.engine.shape):
            sample = {"type": "array", "items": sample, "minItems": n, "maxItems": n}
        instances = {"type": "array", "items": sample, "minItems": 1, "maxItems": self.limits.batch_limit}
        schema = {"type": "object", "properties": {request_body.KEY: instances}, "required": [request_body.KEY]}
        error = {"type": "object", "properties": {"error": {"type": "string"}}}
        said = {"application/json": {"schema": error}}
        return {
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
            "responses": {status: {"description": meaning, "content": said} for status, meaning in REFUSALS.items()},
        }


def _first_line(error: Exception) -> str:
    """Return what a client is told; all of it is in the log."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


# -- the command -------------------------------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; the status to exit with: 0, 2 for what cannot start, 1 for requests unanswered."""
    given = _arguments(arguments)
    # An engine's thread would otherwise wait up to 5 ms for the thread that answers clients to let it run.
    sys.setswitchinterval(0.0005)
    try:
        limits = Limits(given.batch_limit, given.wait_limit, given.capacity)
        listener = server.bind(given.host, given.port)  # before the engine, which may take long to start
        with listener:
            engine = engines.make(given.engine, **dict(given.option))
            engines.warm_up(engine)
            # What is there now stays: left out of full garbage collections, each of which would stop every request.
            gc.collect()
            gc.freeze()
            bounds = {"in_hand": given.in_hand, "buffered": given.buffered}
            service = Service(engine, limits, body_limit=given.body_limit, **bounds)
            return server.run(service, listener, given.grace, given.until_stdin_closes)
    except (EngineError, ServiceError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m kernels.serving.serve", description="Serve an engine over HTTP.")
    parser.add_argument("--engine", default="kernels.serving.serve.engines:digits", help="module:name (%(default)s)")
    parser.add_argument(
        "--option", action="append", default=[], type=_option, metavar="KEY=VALUE", help="for the engine; JSON or text"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all (%(default)s)")
    parser.add_argument("--port", default=8000, type=_port, help="0 for any that is free (%(default)s)")
    parser.add_argument("--batch-limit", default=32, type=int, help="samples in a batch, at most (%(default)s)")
    parser.add_argument("--wait-limit", default=0.002, type=float, help="seconds to wait for others (%(default)s)")
    parser.add_argument("--capacity", default=256, type=int, help="samples that may wait (%(default)s)")
    parser.add_argument("--body-limit", type=_positive, help="bytes of a body, at most (enough for a batch)")
    most = f"requests at once, at most (2 for each sample in queue and batch, or {IN_HAND})"
    parser.add_argument("--in-hand", type=_positive, help=most)
    most = "bytes of all bodies at once, at most (%(default)s)"
    parser.add_argument("--buffered", type=_positive, default=BUFFERED, help=most)
    parser.add_argument("--grace", type=float, help="seconds to answer what was accepted after SIGTERM (no limit)")
    parser.add_argument("--until-stdin-closes", action="store_true", help="shut down when standard input ends")
    return parser.parse_args(arguments)


def _option(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)
