"""Lab 11's service in this process, its clock the event loop's: what is accepted is answered, whatever else happens."""

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import signal
import socket
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kernels.serving.serve.batching.batcher import Limits
from kernels.serving.serve.service import server
from kernels.serving.serve.service.application import Service
from tests.support.waiting import HANG

_SPEC = importlib.util.spec_from_file_location("serving_engines", Path(__file__).with_name("serving_engines.py"))
serving_engines = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(serving_engines)
Gate = serving_engines.Gate

LIMITS = Limits(batch_limit=4, wait_limit=0.0, capacity=8)


def sample(number: int) -> list:
    return [float(number), 0.5]


async def until(condition) -> None:
    """Let the loop run until the condition holds."""
    async with asyncio.timeout(HANG):
        while not condition():
            await asyncio.sleep(0.001)


def serving(test, engine=None, limits=LIMITS, **options):
    """Run `test(service, client)` while a service with this engine runs, and return what it returns."""

    async def run():
        service = Service(engine or opened(), limits, **options)
        transport = httpx.ASGITransport(app=service.application)
        async with (
            service.running(),
            httpx.AsyncClient(transport=transport, base_url="http://service", timeout=HANG) as client,
        ):
            return await test(service, client)

    return asyncio.run(run())


def opened(**options) -> Gate:
    gate = Gate(**options)
    gate.open()
    return gate


def ask(client, *numbers, **more):
    return client.post("/v1/predict", json={"instances": [sample(n) for n in numbers]}, **more)


def metrics(text: str) -> dict[str, float]:
    """Samples of Prometheus's format, by name and labels."""
    families = text_string_to_metric_families(text)
    return {s.name + "".join(f"{{{k}={v}}}" for k, v in s.labels.items()): s.value for f in families for s in f.samples}


def test_answers_come_in_the_order_of_the_samples():
    async def test(service, client):
        return await asyncio.gather(*(ask(client, n, n + 100) for n in range(4)))

    for n, response in enumerate(serving(test)):
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        assert response.json() == {"predictions": [[n + 0.5], [n + 100.5]]}


def test_requests_share_batches_within_the_limit():
    gate = Gate()

    async def test(service, client):
        first = asyncio.ensure_future(ask(client, 0))
        await until(lambda: gate.batches)
        others = [asyncio.ensure_future(ask(client, 2 * n + 1, 2 * n + 2)) for n in range(3)]
        await until(lambda: service.waiting == 6)
        gate.open()
        return [r.json()["predictions"] for r in await asyncio.gather(first, *others)]

    found = serving(test, gate)
    assert [row for rows in found for row in rows] == [[n + 0.5] for n in range(7)]
    assert [batch[:, 0].tolist() for batch in gate.batches] == [[0], [1, 2, 3, 4], [5, 6]]
    assert gate.closed


def test_ten_times_more_than_there_is_room_for_loses_nothing_that_was_accepted():
    gate = Gate()

    async def test(service, client):
        first = asyncio.ensure_future(ask(client, 0))
        await until(lambda: gate.batches)
        others = [asyncio.ensure_future(ask(client, n)) for n in range(1, 10 * LIMITS.capacity)]
        await until(lambda: sum(task.done() for task in others) == len(others) - LIMITS.capacity)
        assert service.waiting == LIMITS.capacity
        gate.open()
        found = await asyncio.gather(first, *others)
        return found, service.batcher.counts, metrics((await client.get("/metrics")).text)

    found, counts, told = serving(test, gate)
    assert counts.rejected == 10 * LIMITS.capacity - counts.accepted
    by_status = {status: [r for r in found if r.status_code == status] for status in (200, 429)}
    assert len(by_status[200]) == counts.accepted == counts.answered == LIMITS.capacity + 1
    assert len(by_status[429]) == 10 * LIMITS.capacity - len(by_status[200])
    for n, response in enumerate(found[: LIMITS.capacity + 1]):
        assert response.json() == {"predictions": [[n + 0.5]]}
    refused = by_status[429][0]
    assert refused.json() == {"error": "8 samples wait already, and 8 may; try again later"}
    assert int(refused.headers["retry-after"]) >= 1
    assert told["serving_requests_total{status=200}"] == 9
    assert told["serving_requests_total{status=429}"] == 71
    assert told["serving_request_seconds_count"] == 9
    assert told["serving_batch_samples_sum"] == 9
    assert told["serving_batch_samples_bucket{le=4.0}"] == told["serving_engine_seconds_count"] == 3
    assert told["serving_queue_samples"] == told["serving_in_hand"] == 0
    assert told["serving_engine_info{engine=gate}"] == told["serving_ready"] == 1


def test_all_samples_of_a_request_are_accepted_or_none():
    gate = Gate()

    async def test(service, client):
        tasks = [asyncio.ensure_future(ask(client, 0))]
        await until(lambda: gate.batches)
        tasks += [asyncio.ensure_future(ask(client, 1, 2, 3)) for _ in range(2)]
        await until(lambda: service.waiting == 6)
        assert (await ask(client, 4, 5, 6)).status_code == 429
        assert service.waiting == 6
        tasks.append(asyncio.ensure_future(ask(client, 7, 8)))
        await until(lambda: service.waiting == 8)
        gate.open()
        assert [r.status_code for r in await asyncio.gather(*tasks)] == [200] * 4
        assert service.batcher.counts.accepted == 9

    serving(test, gate)


def test_shutting_down_answers_what_was_accepted_and_refuses_the_rest():
    gate = Gate()

    async def test(service, client):
        assert (await client.get("/health/ready")).status_code == 200
        accepted = [asyncio.ensure_future(ask(client, n)) for n in range(6)]
        await until(lambda: gate.batches and service.waiting + len(gate.batches[0]) == 6)
        draining = asyncio.ensure_future(service.drain())
        await until(lambda: service.draining)
        late, ready, live = await ask(client, 9), await client.get("/health/ready"), await client.get("/health/live")
        assert (late.status_code, ready.status_code, live.status_code) == (503, 503, 200)
        assert late.json()["error"].startswith("the service is shutting down and accepts no more requests")
        assert late.headers["connection"] == ready.headers["connection"] == "close"
        assert metrics((await client.get("/metrics")).text)["serving_ready"] == 0
        assert not draining.done()
        gate.open()
        await draining
        found = await asyncio.gather(*accepted)
        assert [r.json() for r in found] == [{"predictions": [[n + 0.5]]} for n in range(6)]
        assert found[0].headers["connection"] == "close"

    serving(test, gate)
    assert gate.closed


def test_an_engine_that_takes_several_batches_gets_them():
    gate = Gate(at_once=3)

    async def test(service, client):
        tasks = []
        for n in range(3):
            tasks.append(asyncio.ensure_future(ask(client, n)))
            await until(lambda n=n: len(gate.batches) == n + 1)
        gate.open()
        await asyncio.gather(*tasks)

    serving(test, gate)


def test_an_engine_that_fails_is_not_the_clients_fault_and_not_the_end():
    class Failing(Gate):
        def predict(self, batch):
            results = super().predict(batch)
            if (batch < 0).any():
                raise RuntimeError("out of memory")
            return results[: -1 if (batch == 0).any() else None]

    gate = Failing()
    gate.open()

    async def test(service, client):
        found = [await ask(client, n) for n in (-1, 0, 3)]
        assert [r.status_code for r in found] == [500, 500, 200]
        assert found[0].json() == {"error": "the engine failed: out of memory"}
        assert "answered a batch of 1 with float32 of shape (0, 1)" in found[1].json()["error"]
        assert service.batcher.counts.failed == 2

    serving(test, gate)


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"{", 400, "the body is no JSON"),
        (b'{"instances": [[NaN, 1]]}', 400, "the body holds NaN"),
        (b'{"instances": [[1, 2, 3]]}', 422, "instances[0] is a list of 3; it must be a list of 2 numbers"),
        (b'{"instances": [["1", 2]]}', 422, "instances[0][0] is the text '1'; it must be a number"),
        (b'{"instances": [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]}', 422, "holds 5 samples; send 1 to 4"),
        (b" " * 2001, 413, "the body has 2,001 bytes or more; send at most 2,000"),
    ],
)
def test_bad_input_is_refused_and_hurts_nobody_else(content, status, message):
    async def test(service, client):
        good, bad, stream = await asyncio.gather(
            ask(client, 1), client.post("/v1/predict", content=content), client.post("/v1/predict", content=parts())
        )
        assert good.json() == {"predictions": [[1.5]]}
        for response in (bad, stream):
            assert response.status_code == status
            assert message in response.json()["error"]
        assert service.batcher.counts.accepted == 1

    async def parts():  # without Content-Length
        yield content[:3]
        yield content[3:]

    serving(test, body_limit=2000)


def test_the_largest_request_fits_into_the_default_limit():
    async def test(service, client):
        longest = [[-1.7976931348623157e-308, -1.7976931348623157e-308]] * LIMITS.batch_limit
        text = json.dumps({"instances": longest}, indent=1)
        assert (await client.post("/v1/predict", content=text)).status_code == 200
        assert (await client.post("/v1/predict", content=text + " " * 10_000)).status_code == 413

    serving(test)


def test_other_paths_and_methods_are_told_what_there_is():
    async def test(service, client):
        for method, path, status in (("GET", "/v1/predict", 405), ("POST", "/predict", 404), ("GET", "/docs", 404)):
            response = await client.request(method, path)
            assert response.status_code == status
            assert response.json()["error"].startswith(f"there is no {method} {path}; there are POST /v1/predict")

    serving(test)


def test_the_service_describes_what_it_takes():
    async def test(service, client):
        model = (await client.get("/v1/model")).json()
        schema = (await client.get("/openapi.json")).json()
        return model, schema

    model, schema = serving(test)
    assert model["sample_shape"] == [2]
    assert model["samples_per_request"] == 4
    assert re.fullmatch(r'\{"instances": \[sample, ...\]\}, each sample a list of 2 numbers', model["send"])
    body = schema["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["instances"]["items"] == {
        "type": "array",
        "items": {"type": "number"},
        "minItems": 2,
        "maxItems": 2,
    }


def test_answers_are_the_bits_that_the_engine_gave():
    class Thirds(Gate):
        def predict(self, batch):
            return batch / np.float32(3)

    async def test(service, client):
        return (await ask(client, 1, 7)).json()["predictions"]

    found = np.array(serving(test, Thirds()), np.float32)
    np.testing.assert_array_equal(found, np.float32([sample(1), sample(7)]) / np.float32(3))


def test_requests_beyond_those_in_hand_are_refused_before_their_bodies_are_read():
    gate = Gate()

    async def endless():
        raise AssertionError("the body was read")
        yield b""

    async def test(service, client):
        waiting = [asyncio.create_task(ask(client, number)) for number in range(3)]
        await until(lambda: service.requests == 3)
        refused = await client.post("/v1/predict", content=endless())
        live = await client.get("/health/live")
        gate.open()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"].startswith("3 requests are in hand already")
        assert live.status_code == 200
        assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200] * 3

    serving(test, gate, in_hand=3)


@pytest.mark.parametrize("announced", [True, False])
def test_bodies_that_come_slowly_are_held_to_so_many_bytes_together(announced):
    async def test(service, client):
        more = asyncio.Event()

        async def slow():
            yield b"[" * 900
            await more.wait()

        headers = {"Content-Length": "900"} if announced else {}
        first = asyncio.create_task(client.post("/v1/predict", content=slow(), headers=headers))
        await until(lambda: service.room.taken == 900)
        refused = await client.post("/v1/predict", content=slow(), headers=headers)
        assert refused.status_code == 503
        assert refused.json()["error"].startswith("900 bytes of bodies are in hand, of 1,000")
        assert (await ask(client, 1)).status_code == 200
        more.set()
        assert (await first).status_code == 400
        assert service.room.taken == 0

    serving(test, body_limit=1000, buffered=1000)


class Large(Gate):
    shape = (20_000,)


def test_a_large_body_is_parsed_while_others_are_answered():
    async def test(service, client):
        rows = np.random.default_rng(11).random((4, *Large.shape), np.float32)
        text = json.dumps({"instances": rows.astype(np.float64).tolist()})
        asked = asyncio.create_task(client.post("/v1/predict", content=text))
        await until(lambda: service.room.taken >= len(text))
        assert (await client.get("/health/live")).status_code == 200
        np.testing.assert_array_equal(np.float32((await asked).json()["predictions"])[:, 0], rows.sum(axis=1))
        refused = await client.post("/v1/predict", content=text.replace("[[", "[[null, ", 1))
        assert refused.status_code == 422
        assert "instances[0]" in refused.json()["error"]

    serving(test, opened_large())


def test_a_large_body_that_would_find_no_room_is_refused_without_being_parsed():
    gate = Gate()
    body = json.dumps({"instances": [sample(7)]}) + " " * 70_000

    async def test(service, client):
        waiting = [asyncio.create_task(ask(client, 0))]
        await until(lambda: gate.batches)
        waiting += [asyncio.create_task(ask(client, 1, 2)), asyncio.create_task(ask(client, 3, 4))]
        await until(lambda: service.waiting == 4)
        refused = await client.post("/v1/predict", content=body)
        parsed = service._parser._child is not None
        gate.open()
        assert (refused.status_code, refused.headers["retry-after"], parsed) == (429, "1", False)
        assert service.batcher.counts.rejected == 1
        assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200] * 3
        assert (await client.post("/v1/predict", content=body)).json() == {"predictions": [[7.5]]}

    serving(test, gate, Limits(2, 0.0, 4), body_limit=100_000)


def test_a_parser_that_is_killed_costs_one_request_and_is_not_called_the_engine():
    async def test(service, client):
        text = json.dumps({"instances": [[1.0] * Large.shape[0]]})
        assert (await client.post("/v1/predict", content=text)).status_code == 200
        os.kill(service._parser._child.pid, signal.SIGKILL)
        refused = await client.post("/v1/predict", content=text)
        assert refused.status_code == 503
        assert refused.json()["error"].startswith("the process that reads large bodies failed: it ended (signal 9)")
        assert (await client.post("/v1/predict", content=text)).status_code == 200

    serving(test, opened_large())


def opened_large() -> Large:
    gate = Large()
    gate.open()
    return gate


def test_the_time_of_the_engine_is_not_the_loops():
    """uvloop's clock counts whole milliseconds."""

    async def test(service, client):
        loop = asyncio.get_running_loop()
        loop.time = lambda: 5.0
        try:
            await ask(client, 1)
        finally:
            del loop.time
        return metrics((await client.get("/metrics")).text)["serving_engine_seconds_sum"]

    assert serving(test) > 0


def test_the_description_names_every_refusal():
    async def test(service, client):
        return (await client.get("/openapi.json")).json()

    answers = serving(test)["paths"]["/v1/predict"]["post"]["responses"]
    assert {"200", "400", "408", "413", "415", "422", "429", "500", "503"} <= set(answers)
    assert "properties" in answers["429"]["content"]["application/json"]["schema"]


def test_it_leaves_when_standard_input_ends(monkeypatch):
    parts, this = {0: [b"", b"said"]}, SimpleNamespace(_loop=None, _stdin_closed=False)
    monkeypatch.setattr(server, "os", SimpleNamespace(read=lambda file, most: parts[file].pop()))
    server._Server.leave_with_stdin(this)
    assert (parts[0], this._stdin_closed) == ([], True)


@contextlib.asynccontextmanager
async def listening(service):
    """The service on a socket: its address, and the connections that it has."""
    with server.bind("127.0.0.1", 0) as listener:
        serving = server._Server(service, listener, None)
        task = asyncio.create_task(serving.serve([listener]))
        await until(lambda: serving.started)
        yield listener.getsockname(), serving.server_state.connections
        serving.should_exit = True
        await task


def test_a_connection_that_sends_half_a_request_is_closed(monkeypatch):
    """A whole one that takes longer is answered."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)
    gate = Gate()

    async def test():
        async with listening(Service(gate, LIMITS)) as (place, _):
            body = json.dumps({"instances": [sample(1)]})
            whole = f"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            half, silent, slow = [await asyncio.open_connection(*place) for _ in range(3)]
            half[1].write(whole[:20])
            slow[1].write(whole)
            async with asyncio.timeout(HANG):
                assert [await half[0].read(), await silent[0].read()] == [b"", b""]
                gate.open()
                assert (await slow[0].readline()).startswith(b"HTTP/1.1 200")
            for _, writer in (half, silent, slow):
                writer.close()

    asyncio.run(test())


def test_without_room_a_new_connection_s_first_bytes_are_answered_and_what_follows_is_taken(monkeypatch):
    """Were the head parsed first, no answer would come; were the connection closed at once, a reset."""
    monkeypatch.setattr(server, "HEAD_SECONDS", HANG)
    monkeypatch.setattr(server, "REFUSED_SECONDS", HANG)
    gate = Gate()
    service = Service(gate, LIMITS, in_hand=1)

    async def test():
        body = json.dumps({"instances": [sample(1)]})
        head = f"POST /v1/predict HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        async with listening(service) as (place, _), asyncio.timeout(HANG):
            first, refused, probe = [await asyncio.open_connection(*place) for _ in range(3)]
            first[1].write((head + body).encode())
            await until(lambda: gate.batches)
            refused[1].write(b"POST /v1/pre")
            answer, _, text = (await refused[0].read()).partition(b"\r\n\r\n")
            refused[1].write(b"dict HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n" + bytes(9_000_000))
            await refused[1].drain()
            probe[1].write(b"GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert (await probe[0].read()).startswith(b"HTTP/1.1 200")
            gate.open()
            assert (await first[0].read()).startswith(b"HTTP/1.1 200")
            refused[1].close()
            await refused[1].wait_closed()
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"\r\nretry-after: 1\r\n" in answer
        assert json.loads(text)["error"].startswith("1 requests are in hand already")
        assert metrics(service.metrics.text().decode())["serving_requests_total{status=503}"] == 1

    asyncio.run(test())


def test_a_refused_client_that_never_closes_is_closed(monkeypatch):
    monkeypatch.setattr(server, "REFUSED_SECONDS", 0.3)
    service = Service(Gate(), LIMITS)
    monkeypatch.setattr(service, "in_hand", 0)

    async def test():
        async with listening(service) as (place, connections), asyncio.timeout(HANG):
            reader, writer = await asyncio.open_connection(*place)
            writer.write(b"POST ")
            assert (await reader.read()).startswith(b"HTTP/1.1 503")
            await until(lambda: not connections)
            writer.close()

    asyncio.run(test())


def test_a_client_that_does_not_read_its_answer_is_closed(monkeypatch):
    """Or it would hold its answer for ever, and the service could not end."""
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.3)
    engine = SimpleNamespace(name="large", shape=(2,), predict=lambda batch: np.ones((len(batch), 1_000_000)))

    async def test():
        async with listening(Service(engine, LIMITS)) as (place, connections), asyncio.timeout(HANG):
            body = json.dumps({"instances": [sample(1)]})
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.setblocking(False)
                await asyncio.get_running_loop().sock_connect(client, place)
                client.send(
                    f"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
                )
                await until(lambda: connections)
                await until(lambda: not connections)

    asyncio.run(test())
