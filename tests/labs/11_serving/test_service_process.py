"""Lab 11's service as its command: how it starts, why it does not, and how it ends under load."""

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import httpx
import numpy as np
import pytest

from kernels.serving.serve.engines import digits_network
from kernels.serving.serve.service import process as service_process
from kernels.serving.serve.service.application import _arguments
from kernels.serving.serve.service.application import main as service_command
from kernels.serving.serve.service.process import Refused, start
from kernels.serving.serve.service.server import ServiceError
from tests.support.waiting import HANG, until
from warpcourse.bench.lab import labs

_SPEC = spec_from_file_location("asking", Path(__file__).with_name("asking.py"))
asking = module_from_spec(_SPEC)
_SPEC.loader.exec_module(asking)
GATE, HERE = "serving_engines:FileGate", asking.HERE


def gated(folder, **arguments):
    """A service whose engine waits until the file `open` is in `folder`."""
    limits = {"batch_limit": 2, "capacity": 4, "wait_limit": 0}
    return start(GATE, options={"folder": str(folder)}, environment=HERE, **limits | arguments)


def test_it_serves_digits_and_says_what_it_did():
    with start(batch_limit=8) as service:
        found = service.ask(np.zeros((3, 1, 8, 8)))
        assert found.shape == (3, 10)
        assert 'serving_requests_total{status="200"} 1.0' in service.metrics()
        with pytest.raises(Refused, match=r"422: instances\[0\] is a list of 8; it must be nested lists") as refused:
            service.ask(np.zeros((1, 8, 8)))
        assert refused.value.status == 422
        counts = service.stop()
    assert counts | {"batches": 0} == dict(accepted=3, answered=3, rejected=0, failed=0, withdrawn=0, batches=0)


# Another lab may have a module for servers, which this one does not know by name.
SERVED = [f"{lab.package}.served" for lab in labs() if find_spec(f"{lab.package}.served")]


@pytest.mark.skipif(not SERVED, reason="no lab here has a module `served`")
def test_another_labs_network_is_served_by_its_name(tmp_path, capsys):
    images, numbers = digits_network.digits()[2:]
    with start(f"{SERVED[0]}:trained", options={"batches": [1]}) as service:
        found = service.ask(images[:3]).argmax(axis=1)
    np.testing.assert_array_equal(found, numbers[:3])
    damaged = tmp_path / "damaged.plan"
    damaged.write_bytes(b"no plan")
    assert service_command(["--port=0", f"--engine={SERVED[0]}:from_files", f"--option=paths={damaged}"]) == 2
    assert f"could not be made of paths='{damaged}': {damaged} is no plan" in capsys.readouterr().err


def test_a_signal_under_load_loses_nothing_that_was_accepted(tmp_path):
    with gated(tmp_path) as service:
        requests = asking.Asking(service)
        requests.send(1)
        until(lambda: list(tmp_path.glob("batch-*")), "the first batch")
        requests.send(*range(2, 12))
        until(lambda: list(requests.answers.values()).count(429) == 6, "the answers to those that found no room")
        os.kill(service.pid, signal.SIGTERM)
        until(lambda: refused_as_late(service), "the answer 503")
        os.kill(service.pid, signal.SIGTERM)  # changes nothing
        (tmp_path / "open").touch()
        requests.wait()
        counts = service.stop()
    accepted = {n: answer for n, answer in requests.answers.items() if answer != 429}
    assert accepted == {n: n + 0.5 for n in accepted}
    assert len(accepted) == counts["accepted"] == counts["answered"] == 5
    assert counts["failed"] == counts["withdrawn"] == 0


def place(service) -> tuple[str, int]:
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    return host, int(port)


MANY = 700  # more than 512 and 128, which are usual, and fewer than a process may have files open


@pytest.mark.skipif(
    int(Path("/proc/sys/net/core/somaxconn").read_text()) < MANY, reason="this kernel lets fewer connections wait"
)
def test_all_who_come_while_it_is_busy_wait_to_be_accepted(tmp_path):
    """Beyond those, the kernel drops a client's first packet, and its TCP asks again a second later or more."""
    with gated(tmp_path) as service, contextlib.ExitStack() as stack:
        os.kill(service.pid, signal.SIGSTOP)
        connections = [stack.enter_context(socket.socket()) for _ in range(MANY)]
        for connection in connections:
            connection.setblocking(False)
            connection.connect_ex(place(service))
        waiting = select.poll()
        for connection in connections:
            waiting.register(connection, select.POLLOUT)
        try:
            until(lambda: len(waiting.poll(0)) == MANY, "a place for each")
        finally:
            os.kill(service.pid, signal.SIGCONT)
        for connection in connections:
            connection.settimeout(HANG)
            connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert {connection.recv(12) for connection in connections} == {b"HTTP/1.1 200"}


def refused_as_late(service) -> bool:
    """Whether it answers that it shuts down; not yet, if there is no room."""
    try:
        service.ask([[0, 0]])
    except Refused as refused:
        return refused.status == 503
    return False


def test_a_signal_in_the_midst_of_clients_that_come_and_go_loses_nothing_that_was_accepted():
    """Whenever it comes: as many get an answer, each the right one, as the service says that it accepted."""

    async def one(client, url, number):
        try:
            response = await client.post(url, json={"instances": [[number, 1, 2, 3]]})
        except httpx.TransportError:  # refused, or closed before it was read
            return "not accepted"
        if response.status_code == 200:
            assert response.json() == {"predictions": [[number + 6]]}
        return response.status_code

    async def clients(service):
        found = []
        async with httpx.AsyncClient(timeout=HANG, trust_env=False) as client:
            for number in range(300):
                found.append(asyncio.create_task(one(client, f"{service.url}/v1/predict", number)))
                if number == 150:
                    await found[100]  # so that some are answered, and others wait
                    os.kill(service.pid, signal.SIGTERM)
                await asyncio.sleep(0)
            return await asyncio.gather(*found)

    engine = {"per_batch": 0.01, "per_sample": 0.0005}
    with start("kernels.serving.serve.engines:virtual", options=engine, batch_limit=8, capacity=16) as service:
        statuses = asyncio.run(clients(service))
        counts = service.stop()
    assert set(statuses) <= {200, 429, 503, "not accepted"}
    assert statuses.count(200) == counts["answered"] == counts["accepted"] >= 1
    assert counts["rejected"] == statuses.count(429) + statuses.count(503)


@pytest.mark.parametrize("how", ["signal", "grace"])
def test_who_insists_ends_it_at_once_and_is_told_what_is_lost(tmp_path, how):
    with gated(tmp_path, **{"grace": 0.05} if how == "grace" else {}) as service:
        requests = asking.Asking(service)
        requests.send(1)
        until(lambda: list(tmp_path.glob("batch-*")), "the first batch")
        os.kill(service.pid, signal.SIGTERM)
        if how == "signal":
            until(lambda: refused_as_late(service), "the answer 503")
            os.kill(service.pid, signal.SIGINT)
        requests.wait()
        with pytest.raises(ServiceError, match="ended with the status 1: 1 requests are left unanswered"):
            service.stop()
    assert requests.answers == {1: "not accepted"}


def test_it_ends_when_the_process_that_started_it_does():
    """The starter is killed; what it started closes by itself, after answering."""
    script = (
        "import os, signal\nfrom kernels.serving.serve.service.process import start\n"
        "service = start()\nprint(service.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    printed = subprocess.run([sys.executable, "-c", script], env=os.environ | HERE, capture_output=True, text=True)
    pid = int(printed.stdout)
    until(lambda: not alive(pid), "the end of the service")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_cannot_start_says_why_to_who_started_it():
    with pytest.raises(
        ServiceError, match=r"the service ended: module 'kernels.serving.serve.engines' has no function 'x'"
    ):
        start("kernels.serving.serve.engines:x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--option=size=3"], "error: the engine 'kernels.serving.serve.engines:digits' could not be made of size=3"),
        (["--engine=serving_engines:wrong_rows"], "answered a batch of 1 with float64 of shape (2, 1)"),
        (["--host=192.0.2.1"], "error: this machine has no address 192.0.2.1: choose one that it has"),
        (["--host=no such host"], "error: there is no address 'no such host': choose one of this machine"),
        (["--port=70000"], "'70000' is no port: give a number from 0 to 65535"),
        (["--capacity=1"], "error: capacity is 1, less than the batch_limit of 32"),
        (["--batch-limit=0"], "error: batch_limit is 0"),
        (["--body-limit=0"], "'0' must be a whole number, 1 or more"),
    ],
)
def test_what_cannot_start_says_why(arguments, message, monkeypatch, capsys):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    try:
        status = service_command(["--port=0", *arguments])
    except SystemExit as wrong_arguments:
        status = wrong_arguments.code
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert message in said.err
    assert "Traceback" not in said.err


def test_a_port_in_use_is_named(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert service_command([f"--port={port}"]) == 2
    assert f"error: port {port} of 127.0.0.1 is in use by another program: stop that one" in capsys.readouterr().err


@pytest.fixture(autouse=True)
def _threads_take_turns_as_before():
    """The command changes that for its whole process."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def test_a_service_that_says_nothing_is_killed(monkeypatch):
    monkeypatch.setattr(service_process, "START_SECONDS", 0.01)
    with pytest.raises(ServiceError, match=r"the service said nothing for 0.01 seconds; it was killed"):
        start()


def test_options_come_as_json_or_as_text():
    given = _arguments(["--option", "a=[1, 2]", "--option", "b=digits.plan", "--option", 'c="3"'])
    assert dict(given.option) == {"a": [1, 2], "b": "digits.plan", "c": "3"}
    for wrong in ("a", "=3", "a b=3"):
        with pytest.raises(SystemExit):
            _arguments(["--option", wrong])


def test_the_help_names_every_default(capsys):
    with pytest.raises(SystemExit):
        _arguments(["--help"])
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    for default in ("kernels.serving.serve.engines:digits", "8000", "32", "0.002", "256"):
        assert f"({default})" in printed
    assert json.dumps(printed).isascii()
