"""The page's REST calls: runs started, watched, asked and exported by programs. docs/digits_api.md tells how.

They need the page's token, answer JSON, and say what was wrong as {"error": a sentence}.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from http.client import responses
from typing import Any

import numpy as np
import tornado.ioloop
import tornado.web
from jupyter_server.base.handlers import APIHandler

from digits import look
from digits.data import images
from digits.data.dataset import Dataset
from digits.deploy import onnx_export
from digits.files import DigitsError
from digits.training import runs
from digits.training.spec import RunSpec
from digits.workspace import Workspace

TOKEN = "The token is missing or wrong. Send the page's as the header Authorization: token TOKEN."
MOST_IMAGE = 64 << 20  # bytes of an image to predict
REST = 600.0  # seconds without a question, after which the model's process gives its memory back
ACTS = ("pause", "stop", "resume")


class Looks:
    """The model that was asked last, kept for the next question. One at a time: each is a process with TensorFlow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: look.Inside | None = None
        self._asked = time.monotonic()

    def classify(self, run: runs.Run, pixels: np.ndarray) -> np.ndarray:
        """Return the probabilities of one image, from the run's last weights."""
        with self._lock:
            if self._inside is None or self._inside.folder != run.folder:
                self._close()
                self._inside = look.open(run)
            found = self._inside.classify(pixels[None])[0]
            self._asked = time.monotonic()
            return found

    def rest(self) -> None:
        """End the model's process if nobody has asked it for a while."""
        if time.monotonic() - self._asked > REST and self._lock.acquire(blocking=False):
            self._close()
            self._lock.release()

    def _close(self) -> None:
        inside, self._inside = self._inside, None
        if inside is not None:
            inside.close()


class _Call(APIHandler):
    def initialize(self, workspace: Workspace, looks: Looks) -> None:
        self.workspace, self.looks = workspace, looks

    async def answer(self, work: Callable[[], Any], status: int = 200, body: bool = False) -> None:
        """Answer with what `work` returns; it is called in a thread, so that the server goes on answering others.

        `body`: whether the call is given one. What a call would not look at is refused.
        """
        try:
            if unknown := self.request.query_arguments.keys() - {"token"}:
                raise DigitsError(f"No call has a parameter {min(unknown)!r} in its address. Leave it out.")
            if not body and self.request.body.strip() not in (b"", b"{}"):
                raise DigitsError("This call is given nothing. Send no body.")
            found = await tornado.ioloop.IOLoop.current().run_in_executor(None, work)
        except DigitsError as error:
            raise tornado.web.HTTPError(400, reason="Bad Request", log_message=str(error)) from None
        self.set_status(status)
        self.finish(json.dumps(found))

    def run(self, id: str) -> runs.Run:
        """Return the run, or answer 404."""
        try:
            return runs.open(self.workspace, id)
        except DigitsError as error:
            raise tornado.web.HTTPError(404, log_message=str(error)) from None

    def log_exception(self, *error: Any) -> None:
        if not isinstance(error[1], tornado.web.HTTPError):  # those are told to who asked
            super().log_exception(*error)

    def write_error(self, status_code: int, **about: Any) -> None:
        error = about.get("exc_info", (None, None))[1]
        said = getattr(error, "log_message", None) or f"{responses.get(status_code, 'Error')}."
        if status_code == 403:
            said = TOKEN
        if status_code == 500:
            said = f"The server failed: {type(error).__name__}: {error}. Its terminal has the details."
        self.finish(json.dumps({"error": said.replace("%%", "%")}))  # Tornado doubles them


class _Datasets(_Call):
    @tornado.web.authenticated
    async def get(self) -> None:
        await self.answer(lambda: [_dataset(one) for one in Dataset.list(self.workspace)])


class _Runs(_Call):
    @tornado.web.authenticated
    async def get(self) -> None:
        await self.answer(lambda: [_state(run) for run in runs.listing(self.workspace)])

    @tornado.web.authenticated
    async def post(self) -> None:
        def work() -> dict[str, Any]:
            return _state(runs.start(self.workspace, RunSpec.from_json(_json(self.request.body))))

        await self.answer(work, status=201, body=True)


class _Run(_Call):
    @tornado.web.authenticated
    async def get(self, id: str) -> None:
        run = self.run(id)
        await self.answer(lambda: {**_state(run), "curves": run.curves()})


class _Act(_Call):
    @tornado.web.authenticated
    async def post(self, id: str, act: str) -> None:
        run = self.run(id)

        def work() -> dict[str, Any]:
            getattr(run, act)()
            return _state(run)

        await self.answer(work)


class _Predict(_Call):
    @tornado.web.authenticated
    async def post(self, id: str) -> None:
        run, data = self.run(id), self.request.body

        def work() -> dict[str, Any]:
            if len(data) > MOST_IMAGE:
                raise DigitsError(f"An image of {len(data):,} bytes; {MOST_IMAGE:,} are the most. Send a smaller one.")
            dataset = Dataset.open(self.workspace, run.spec.dataset)
            found = self.looks.classify(run, images.one(data, dataset))
            best = np.argsort(-found, kind="stable")
            return {
                "class": dataset.classes[best[0]],
                "probabilities": {dataset.classes[at]: float(found[at]) for at in best},
            }

        await self.answer(work, body=True)


class _Export(_Call):
    @tornado.web.authenticated
    async def post(self, id: str) -> None:
        run = self.run(id)

        def work() -> dict[str, Any]:
            report = onnx_export.export(self.workspace, run.id)
            return {"file": f"/files/runs/{run.id}/{onnx_export.MODEL}", **report}

        await self.answer(work)


def _json(body: bytes) -> Mapping[str, Any]:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            raise ValueError("an object has a key twice")
        return found

    def whole(digits: str) -> float:  # infinite if no float can hold it
        return int(digits) if len(digits) < 300 else math.inf

    try:
        found = json.loads(body, parse_int=whole, object_pairs_hook=pairs)
        json.dumps(found, ensure_ascii=False).encode()  # half a character is none
    except (ValueError, RecursionError) as error:
        raise DigitsError(
            f"The request's body is no JSON ({error}). Send an object, as docs/digits_api.md says."
        ) from None
    if not isinstance(found, dict):
        raise DigitsError('The request\'s body must be an object, such as {"dataset": "ID"}.')
    return found


def _dataset(dataset: Dataset) -> dict[str, Any]:
    told = {"id": dataset.id, "name": dataset.name, "kind": dataset.kind, "status": dataset.status}
    return told | {"classes": list(dataset.classes), "counts": dict(dataset.counts), "shape": list(dataset.shape)}


def _state(run: runs.Run) -> dict[str, Any]:
    return {"id": run.id, "name": run.name, **run.state()}


def handlers(base: str, workspace: Workspace, looks: Looks) -> list[tuple]:
    """Return what Tornado routes to, below `base`."""
    given = {"workspace": workspace, "looks": looks}
    run = rf"{base}api/runs/([A-Za-z0-9_-]+)"
    return [
        (rf"{base}api/datasets", _Datasets, given),
        (rf"{base}api/runs", _Runs, given),
        (run, _Run, given),
        (rf"{run}/({'|'.join(ACTS)})", _Act, given),
        (rf"{run}/predict", _Predict, given),
        (rf"{run}/onnx", _Export, given),
    ]
