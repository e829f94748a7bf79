"""The REST calls against the real server: a run from start to answer and export, and what goes wrong in a sentence."""

from __future__ import annotations

import contextlib
import http.client
import importlib
import io
import json
import re
import time
import types
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from digits.data.builtin import sklearn_digits
from digits.page import api
from digits.training import runs
from digits.workspace import Workspace
from tests.support.waiting import until
from warpcourse.paths import COURSE

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
stub = importlib.import_module("tests.labs.12_digits.run_stub")
SPEC = {"network": {"name": "lenet", "filters": 4, "units": 16, "dropout": 0}, "solver": {"epochs": 4, "rate": 0.01}}


class Client:
    def __init__(self, address):
        parts = urllib.parse.urlsplit(address)
        self.port, self.token = parts.port, urllib.parse.parse_qs(parts.query)["token"][0]

    def __call__(self, method, path, body=None, token=None, raw=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        with contextlib.closing(connection):
            data = body if isinstance(body, bytes | None) else json.dumps(body)
            headers = {"Authorization": f"token {self.token if token is None else token}"}
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            read = answer.read()
            return answer.status, read if raw else json.loads(read)


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    space = Workspace(tmp_path_factory.mktemp("api") / "workspace")
    sklearn_digits(space)
    return space


@pytest.fixture(scope="module")
def call(space):
    with harness.app(space.root, silent=True) as (address, _):
        yield Client(address)


def png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.tensorflow
def test_a_run_is_started_watched_asked_and_exported(space, call):
    status, datasets = call("GET", "/api/datasets")
    (dataset,) = datasets
    assert (status, dataset["shape"], len(dataset["classes"])) == (200, [8, 8, 1], 10)
    status, run = call("POST", "/api/runs", {"dataset": dataset["id"], "name": "by HTTP", **SPEC})
    assert (status, run["name"], run["status"]) == (201, "by HTTP", "waiting")
    path = f"/api/runs/{run['id']}"
    until(lambda: call("GET", path)[1]["status"] not in runs.ALIVE, "the end of the run")
    status, state = call("GET", path)
    assert (status, state["status"], state["step"]) == (200, "done", state["steps"])
    assert [line["epoch"] for line in state["curves"] if line["part"] == "validation"] == [0, 1, 2, 3, 4]
    assert [one["id"] for one in call("GET", "/api/runs")[1]] == [run["id"]]
    # As the page answers: the same image, enlarged, is brought to the dataset's size.
    from digits.data.dataset import Dataset

    pixels = Dataset.open(space, dataset["id"]).images("test")[0][..., 0]
    status, answer = call("POST", f"{path}/predict", png(np.kron(pixels, np.ones((8, 8), np.uint8))))
    assert status == 200
    probabilities = list(answer["probabilities"].values())
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1, abs=1e-5)
    assert answer["class"] == next(iter(answer["probabilities"]))
    status, report = call("POST", f"{path}/onnx")
    assert (status, report["answers"][1]["same_answers"]) == (200, report["images"])
    status, file = call("GET", report["file"], raw=True)
    assert (status, len(file)) == (200, report["bytes"])


@pytest.mark.parametrize("token", ["", "wrong"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/datasets"), ("GET", "/api/runs"), ("POST", "/api/runs"), ("GET", "/api/runs/x")]
    + [("POST", f"/api/runs/x/{act}") for act in (*api.ACTS, "predict", "onnx")],
)
def test_without_the_token_nothing_is_answered(call, method, path, token):
    status, answer = call(method, path, {} if method == "POST" else None, token=token)
    assert (status, answer) == (403, {"error": api.TOKEN})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"[1]", "must be an object"),
        ({}, "names no dataset"),
        ({"dataset": "../../etc"}, "There is no dataset"),
        ({"dataset": "gone", "solver": {"rate": 0}}, "learning rate is 0"),
        ({"dataset": "gone", "solver": {"epochs": "50 % more"}}, "epochs"),
        ({"dataset": "gone", "speed": 9}, "has no setting 'speed'. It has dataset, network, solver, kind, name, start"),
        ({"dataset": "gone", "id": "mine"}, "A run has no setting 'id'"),
        ({"dataset": "gone", "solver": {"created": 1}}, "A solver has no setting 'created'. It has epochs, batch"),
        (
            {"dataset": "gone", "network": {"name": "lenet", "fliters": 4}},
            "The network lenet has no option 'fliters'. It has filters, units, dropout.",
        ),
        ({"dataset": "gone", "network": {"name": "googlenet", "filters": 4}}, "has no option 'filters'. It has none."),
        ({"dataset": "gone", "network": {"name": "custom", "code": ""}}, "It has configuration, source."),
        (b'{"dataset": "gone", "dataset": "other"}', "an object has a key twice"),
        ({"dataset": "gone", "solver": {"epochs": 10**400}}, "epochs must be a whole number, not inf"),
        ({"dataset": "gone", "solver": {"rate": 10**400}}, "rate must be a number, not inf"),
        ({"dataset": "gone", "name": "\ud800"}, "is no JSON"),
        ({"dataset": "100 %"}, "There is no dataset '100 %'"),
    ],
)
def test_a_run_that_cannot_be_started_says_why(call, body, reason):
    status, answer = call("POST", "/api/runs", body)
    assert status == 400
    assert reason in answer["error"]
    assert list(answer) == ["error"]


def test_what_cannot_be_done_with_a_run_says_why(space, call):
    done = stub.written(space, "written", dataset=space.ids("datasets")[0]).id
    try:
        for act, status, reason in (
            (f"{done}/pause", 400, "there is nothing to pause"),
            (f"{done}/predict", 400, "image"),
            (f"{done}/onnx", 400, "has no weights yet"),
            ("gone/stop", 404, "There is no run 'gone'"),
            (f"{done}/stop?after=3", 400, "parameter 'after' in its address"),
        ):
            body = b"no image" if act.endswith("predict") else None
            found, answer = call("POST", f"/api/runs/{act}", body)
            assert (found, reason in answer["error"]) == (status, True), answer
        for act in (*api.ACTS, "onnx"):
            assert call("POST", f"/api/runs/{done}/{act}", {"opset": 12}) == (
                400,
                {"error": "This call is given nothing. Send no body."},
            )
        assert call("GET", "/api/runs?status=done")[0] == 400
        assert call("PUT", "/api/runs")[0] == 405
    finally:
        runs.open(space, done).delete()


def test_the_page_that_tells_how_names_every_call_and_no_other():
    rows = [line for line in (COURSE / "docs" / "digits_api.md").read_text().splitlines() if line.startswith("| `")]
    told = set()
    for row in rows:
        first, *others = re.findall(r"`([^`]+)`", row.split("|")[1])
        method, path = first.split(" ")
        told |= {(method, path), *((method, f"{path.rsplit('/', 1)[0]}/{other}") for other in others)}
    told.discard(("GET", "files/runs/ID/FILE"))
    there = set()
    for pattern, handler, _ in api.handlers("", None, None):
        paths = [pattern.replace("([A-Za-z0-9_-]+)", "ID")]
        if choices := re.search(r"\(([a-z|]+)\)", paths[0]):
            paths = [paths[0].replace(choices[0], act) for act in choices[1].split("|")]
        there |= {(kind, path) for kind in ("GET", "POST") if kind.lower() in vars(handler) for path in paths}
    assert told == there


def test_questions_about_two_runs_at_once_do_not_break_each_other_off(tmp_path, monkeypatch):
    """One model is kept; who asks about another run waits, and does not end the process that is being asked."""
    broken = []

    class Slow:
        def __init__(self, run):
            self.folder, self.busy = run.folder, False

        def classify(self, images):
            self.busy = True
            time.sleep(0.2)
            self.busy = False
            return images

        def close(self):
            broken.append(self.busy)

    monkeypatch.setattr(api.look, "open", Slow)
    looks, pixels = api.Looks(), np.zeros((2, 2, 1), np.uint8)
    asked = [types.SimpleNamespace(folder=tmp_path / name) for name in ("a", "b", "a")]
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda run: looks.classify(run, pixels), asked))
        monkeypatch.setattr(api, "REST", -1.0)
        looks.rest()
    assert len(found) == 3
    assert len(broken) >= 2
    assert not any(broken)
