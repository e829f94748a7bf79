"""Load by LoadGen and by NumPy: plans, statuses, latencies, in process and over HTTP.

Of times, only lower bounds are asserted.
"""

import http.server
import json
import select
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from kernels.serving.serve.batching.batcher import Limits
from kernels.serving.serve.load import generator as load
from kernels.serving.serve.load.generator import ERROR, LOST, OK, TOO_MANY, InProcess, LoadResult, OverHttp, offer


@pytest.fixture(params=["loadgen", "numpy"], autouse=True)
def generator(request, monkeypatch):
    """Both generators pass the same tests."""
    if request.param == "numpy":
        monkeypatch.setattr(load, "has_loadgen", lambda: False)
    elif not load.has_loadgen():
        pytest.skip("LoadGen has no wheels for this machine")


class Immediate:
    """Answers everything at once with OK."""

    samples = 10

    def __init__(self):
        self.indices, self.calls = [], 0

    def send(self, tickets, indices, done):
        self.calls += 1
        self.indices += indices
        for ticket in tickets:
            done(ticket, OK)


def test_arrivals_are_planned_as_a_poisson_process_with_the_rate():
    first, again, other = Immediate(), Immediate(), Immediate()
    run = offer(first, rate=3000, seconds=0.5, seed=1)
    assert run.statuses == {OK: len(run.planned)}
    assert len(first.indices) == len(run.planned)
    assert set(first.indices) <= set(range(10))
    assert abs(len(run.planned) - 1500) < 4 * 1500**0.5  # a Poisson count's deviation is its mean's root
    assert run.offered == pytest.approx(3000, rel=0.11)
    gaps = np.diff(run.planned)
    assert (gaps >= 0).all()
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.15)  # exponential; in even steps it would be 0
    same = offer(again, rate=3000, seconds=0.5, seed=1)
    np.testing.assert_allclose(same.planned, run.planned, atol=2e-9)
    assert again.indices == first.indices
    assert len(offer(other, rate=3000, seconds=0.5, seed=2).planned) != len(run.planned)


def test_latency_counts_from_the_planned_moment():
    class Slow(Immediate):
        def send(self, tickets, indices, done):
            time.sleep(0.02)  # the generator is held up, as one is that waits for each answer
            super().send(tickets, indices, done)

    run = offer(Slow(), rate=1000, seconds=0.2)
    assert run.late.max() > 0.005
    assert run.percentile(100) > 0.02
    assert run.percentile(99) > run.from_sending(99)
    np.testing.assert_array_less(run.late, run.latency)


def test_in_process():
    seen = []

    def predict(samples):
        seen.append(len(samples))
        return [2 * sample for sample in samples]

    with InProcess(predict, Limits(8, 0.001, 2000), np.arange(50), check=lambda i, row: row == 2 * i) as service:
        run = offer(service, rate=2000, seconds=0.3)
    assert run.statuses == {OK: len(run.planned)}
    assert service.batcher.counts.answered == len(run.planned) == sum(seen)
    assert max(seen) <= 8
    assert (run.latency > 0).all()


def test_more_than_may_wait_is_turned_away_and_the_rest_answered():
    def predict(samples):
        while service.batcher.counts.rejected < 40:  # the engine hangs until so many were turned away
            time.sleep(0.001)
        return samples

    with InProcess(predict, Limits(1, 0.0, 4), list(range(10))) as service:
        run = offer(service, rate=1000, seconds=0.2)
    counts = service.batcher.counts
    assert set(run.statuses) == {OK, TOO_MANY}
    assert run.statuses[OK] == counts.accepted == counts.answered
    assert run.statuses[TOO_MANY] == counts.rejected >= 40


def test_wrong_answers_and_errors_are_told():
    def predict(samples):
        if 3 in samples:
            raise ArithmeticError("3")
        return [sample + (sample == 5) for sample in samples]

    with InProcess(predict, Limits(1, 0.0, 1000), list(range(10)), check=lambda i, row: row == i) as service:
        run = offer(service, rate=1000, seconds=0.3)
    assert set(run.statuses) == {OK, ERROR}
    assert run.statuses[ERROR] < run.statuses[OK]
    assert service.batcher.counts.failed > 0


def test_what_is_never_answered_is_lost_and_ends_the_run():
    class Forgetful(Immediate):
        def send(self, tickets, indices, done):
            for ticket, index in zip(tickets, indices, strict=True):
                if index:
                    done(ticket, OK)
                    done(ticket, ERROR)  # twice: the first one counts

    run = offer(Forgetful(), rate=1000, seconds=0.2, patience=0.05)
    assert set(run.statuses) == {LOST, OK}
    assert run.latency[run.status == LOST].min() >= 0.05


@pytest.mark.parametrize(("rate", "seconds"), [(0, 1), (-1, 1), (float("nan"), 1), (100, 0), (100, float("inf"))])
def test_a_rate_and_a_time_are_positive(rate, seconds):
    with pytest.raises(ValueError, match="both must be above 0 and finite"):
        offer(Immediate(), rate, seconds)


def test_a_summary_of_nothing_answered_is_json():
    run = LoadResult(10.0, np.array([0.0, 0.1]), np.zeros(2), np.array([0.001, 0.002]), np.array([TOO_MANY, LOST]))
    summary = json.loads(json.dumps(run.summary(), allow_nan=False))
    assert summary["statuses"] == {"0": 1, "429": 1}
    assert summary["p99_seconds"] is summary["mean_seconds"] is None
    assert summary["answered_per_second"] == 0
    assert np.isnan(run.percentile(99))


def test_a_summary_by_hand():
    status = np.array([OK, OK, TOO_MANY, OK])
    run = LoadResult(
        10.0, np.array([0, 0.1, 0.2, 0.4]), np.array([0, 0.05, 0, 0]), np.array([0.1, 0.2, 0, 0.6]), status
    )
    assert run.seconds == 1.0
    assert run.throughput == 3
    assert run.offered == 10
    assert run.percentile(50) == pytest.approx(0.2)
    assert run.from_sending(50) == pytest.approx(0.15)
    assert run.summary()["mean_seconds"] == pytest.approx(0.3)


# -- over HTTP ---------------------------------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    """POST of {"status": n}: answers with that status; of {"status": 0}: hangs up without an answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Content-Type"], wanted["status"]))
        if not wanted["status"]:
            self.close_connection = True
            return
        body = json.dumps({"status": wanted["status"]}).encode()
        self.send_response(wanted["status"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.server.hangs_up

    def do_GET(self):
        status = self.server.ready.pop(0) if self.server.ready else 200
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@contextmanager
def server():
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.asked, running.ready, running.hangs_up, running.daemon_threads = [], [], False, True
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    try:
        yield running, f"http://127.0.0.1:{running.server_address[1]}"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def body(status):
    return json.dumps({"status": status}).encode()


def test_over_http_every_request_ends_with_its_status():
    bodies = [body(status) for status in (200, 200, 429, 503, 0)]
    with server() as (running, url), OverHttp(url + "/v1/predict", bodies, connections=4) as service:
        run = offer(service, rate=400, seconds=0.4)
    assert set(run.statuses) == {LOST, 200, 429, 503}
    assert len(running.asked) == len(run.planned)  # none was sent twice
    for status, count in run.statuses.items():
        assert sum(asked == ("/v1/predict", "application/json", status) for asked in running.asked) == count


def test_over_http_a_wrong_answer_is_told():
    def right(index, answer):
        return index == 0 and json.loads(answer) == {"status": 200}

    with server() as (_, url), OverHttp(url, [body(200), body(200)], connections=2, check=right) as service:
        run = offer(service, rate=200, seconds=0.3)
    assert set(run.statuses) == {OK, ERROR}


def test_a_connection_that_the_service_closed_is_opened_again():
    with server() as (running, url):
        running.hangs_up = True
        service = OverHttp(url, [body(200)], connections=1)
        connection = load.http.client.HTTPConnection(service._host, service._port)
        assert service._post(connection, 0) == OK
        select.select([connection.sock], [], [])  # until the service has hung up
        assert service._post(connection, 0) == OK
        connection.close()


def test_an_address_that_is_none_is_refused():
    for url in ("https://127.0.0.1/", "127.0.0.1:80", ""):
        with pytest.raises(ValueError, match="is no address of a service"):
            OverHttp(url, [b"{}"])


def test_a_service_that_nobody_runs_loses_every_request():
    with server() as (_, url):
        pass
    with OverHttp(url, [body(200)], connections=2) as service:
        run = offer(service, rate=100, seconds=0.2)
    assert set(run.statuses) == {LOST}
