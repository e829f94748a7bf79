"""Processes that share a GPU, tried on the simulator: the protocol, the common window, errors, and what is measured."""

import stat

import numpy as np
import pytest

from kernels.serving import recordings
from kernels.serving.overlap.sharing import bare_client, mps
from kernels.serving.overlap.sharing import client_process as sharing_client
from kernels.serving.overlap.sharing import measurements as sharing_measurements
from kernels.serving.overlap.sharing.clients import ClientFailed, ClientResult, Clients, Load, Reading, summary
from kernels.serving.small_network import SmallNetwork
from warpcourse.processes.tree import is_running

TINY = SmallNetwork(layers=2, channels=8, size=4, classes=3)
WINDOW = 0.3  # seconds; no test depends on how much is served in it


@pytest.fixture(autouse=True)
def _on_the_simulator(monkeypatch):
    monkeypatch.setenv("WARPLAB_BACKEND", "simulator")


def test_clients_serve_in_a_common_window():
    with Clients([{}, {}], TINY) as clients:
        together = clients.serve([Load(), Load(batch=3)], WINDOW)
        one = clients.serve([None, Load(streams=2)], WINDOW)
    assert [served.load.batch for served in together.served] == [1, 3]
    assert len(one.served) == 1
    for reading in (together, one):
        for served in reading.served:
            assert not served.error
            assert all(seconds > 0 for seconds in served.latencies)


def test_an_illegal_access_ends_its_own_process_only():
    with Clients([{}] * 3, TINY) as clients:
        reading = clients.attempt([None, Load(), Load()], WINDOW, meanwhile=lambda: clients.fault(0))
        assert "IllegalAddress" in clients.last_answer(0)
        assert [served.error for served in reading.served] == ["", ""]
        reading = clients.attempt([Load(), Load()], 2.0, meanwhile=lambda: clients.kill(1))  # long before its end
        first, second = reading.served
        assert "it ended (exit code 1)" in first.error
        assert "it ended (signal 9)" in second.error
        with pytest.raises(ClientFailed, match="it ended"):
            clients.serve([Load()], WINDOW)


def test_what_a_client_cannot_do_is_said():
    with Clients([{}], TINY) as clients:
        with pytest.raises(ValueError, match="2 loads for 1 clients; start more clients"):
            clients.serve([Load(), Load()])
        with pytest.raises(ClientFailed, match="ZeroDivisionError"):
            clients.serve([Load(streams=0)], WINDOW)
    object.__setattr__(wrong := SmallNetwork(), "channels", 7)
    with pytest.raises(ClientFailed, match="channels is 7; choose a multiple of 8"), Clients([{}], wrong):
        pass


def test_only_answers_within_the_window_count(monkeypatch):
    clock = iter(range(1000))  # a second per look at it
    monkeypatch.setattr(sharing_client.time, "monotonic", lambda: next(clock))
    server = sharing_client.Server(TINY)
    found = server.serve(begin=4, end=9)  # sent at 0, 2, 4, 6, 8, answered one later
    assert found == {"latencies": [1.0] * 3, "failed": ""}
    clock = iter(range(1000))
    found = server.serve(begin=0, end=12, streams=3)  # sent at 0, 1, 2; then looks at 3, 5, 7, ... answer and send
    assert found["latencies"] == [3.0, 4.0, 5.0, 5.0, 5.0]
    assert len(server.prepare(streams=3)) == 3


def test_a_wrong_answer_ends_the_service(monkeypatch):
    server = sharing_client.Server(TINY)
    (requests,) = server.prepare()
    requests.answer = np.zeros_like(requests.answer)
    requests.queue = lambda: None
    found = server.serve(begin=0, end=1e18)
    assert found["latencies"] == []
    assert found["failed"].startswith("WrongAnswer: the answer to input 0 changed between two requests; it is ")


def test_a_row_has_rates_and_percentiles_of_all_requests():
    slow = ClientResult(Load(batch=4), tuple(np.full(25, 0.2)))
    fast = ClientResult(Load(), tuple(np.linspace(0.001, 0.075, 75)))
    found = summary(Reading(0.5, (slow, fast)))
    assert found["images_per_second"] == (25 * 4 + 75) / 0.5
    assert found["p50_seconds"] == pytest.approx(0.0505, abs=1e-3)
    assert found["p99_seconds"] == 0.2
    assert found["smallest_share"] == 0.5
    with pytest.raises(ValueError, match="no request was answered in the window"):
        summary(Reading(0.5, (ClientResult(Load()),)))


# --- The daemon, by a program that stands in for NVIDIA's -------------------------------------------------------------

_CONTROL = """#!/bin/bash
pipe=$CUDA_MPS_PIPE_DIRECTORY
if [ "$1" = -d ]; then
    [ -n "$BROKEN" ] && { echo "no GPU"; exit 1; }
    sleep 60 > /dev/null 2>&1 &
    echo $! > "$pipe/nvidia-cuda-mps-control.pid"; echo started > "$CUDA_MPS_LOG_DIRECTORY/control.log"; exit 0
fi
read command
case "$command" in
    get_server_list) echo 7; echo 8 ;;
    "get_client_list 7") echo 11; echo 12 ;;
    "get_client_list 8") echo 13 ;;
    quit) [ -n "$STUCK" ] && sleep 30; kill $(cat "$pipe/nvidia-cuda-mps-control.pid") ;;
    "quit -t 1") kill $(cat "$pipe/nvidia-cuda-mps-control.pid") ;;
esac
"""


@pytest.fixture
def control(tmp_path, monkeypatch):
    program = tmp_path / mps.CONTROL
    program.write_text(_CONTROL)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_the_daemon_has_a_folder_of_its_own_and_quits_after_errors(control):
    with pytest.raises(KeyError), mps.daemon() as service:  # noqa: PT012 - what happens before the error
        pid = (service.folder / "pipe" / f"{mps.CONTROL}.pid").read_text().strip()
        assert service.clients() == 3
        assert service.logs() == "started"
        assert set(service.environment) == {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"}
        raise KeyError
    assert not service.folder.exists()
    assert not is_running(int(pid))


def test_a_daemon_whose_clients_have_not_ended_is_made_to_quit(control, monkeypatch):
    monkeypatch.setenv("STUCK", "1")
    with mps.daemon() as service:
        pid = (service.folder / "pipe" / f"{mps.CONTROL}.pid").read_text().strip()
        monkeypatch.setattr(mps, "PATIENCE", 1)
    assert not is_running(int(pid))


def test_without_mps_the_error_says_so(control, monkeypatch):
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(mps.NoMps, match="-d ended with code 1: no GPU"), mps.daemon():
        pass
    monkeypatch.setenv("PATH", "")
    with pytest.raises(mps.NoMps, match=r"mps-control is not installed here.*time slices"), mps.daemon():
        pass


# --- What is measured, with clients whose answers are given ----------------------------------------------------------


class _Given:
    """`Clients` without processes: 100 requests per second and client, each of 10 ms."""

    def __init__(self, environments, network):
        assert network is sharing_measurements.NETWORK
        self.environments, self.told = environments, {}

    def __len__(self):
        return len(self.environments)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def serve(self, loads, seconds=0.5):
        return self.attempt(loads, seconds)

    def attempt(self, loads, seconds=0.5, meanwhile=lambda: None):
        assert len(loads) <= len(self.environments)
        meanwhile()
        taken = (0.01,) * int(100 * seconds)
        found = [ClientResult(load, taken, self.told.get(i, "")) for i, load in enumerate(loads) if load]
        return Reading(seconds, tuple(found))

    def fault(self, number):
        self.told[number] = "illegal address\nsecond line"
        if self.environments[0]:  # as clients of MPS
            self.told |= dict.fromkeys(range(3), "the GPU had an error")

    def kill(self, number):
        self.told[number] = "ended with code -9"

    def last_answer(self, number):
        return self.told[number]


@pytest.fixture
def _given(monkeypatch):
    monkeypatch.setattr(sharing_measurements, "Clients", _Given)
    monkeypatch.setattr(sharing_measurements, "request_times", lambda sizes: [{"batch": b} for b in sizes])
    monkeypatch.setattr(sharing_measurements.timing, "cupy_on_gpu", lambda: None)


@pytest.mark.usefixtures("_given")
def test_the_table_of_ways(control):
    value = sharing_measurements.ways()
    assert value["mps_clients"] == 3
    ks = (1, 2, 4, 8, 16)
    assert [(row["way"], row["clients"], row["batch"]) for row in value["rows"]] == [
        *(("time slices", k, b) for b in (1, 16) for k in ks),
        *(("streams", k, 1) for k in ks),
        *(("MPS", k, b) for b in (1, 4, 16) for k in ks),
    ]
    assert sharing_measurements.rate(value, "MPS", 8, 4) == pytest.approx(100 * 8 * 4)
    assert value["blocks"] == 16
    text = sharing_measurements.TABLES["sharing_ways"].text(value)
    assert "× one process" in text
    found = sharing_measurements.TABLES["sharing_ways"].summary(value)
    assert found == pytest.approx({"time slices": 16, "streams": 1, "MPS": 16})
    with pytest.raises(KeyError, match="no row for MPS, 64 clients"):
        sharing_measurements.rate(value, "MPS", 64, 1)


@pytest.mark.usefixtures("_given")
def test_without_mps_the_other_rows_are_measured(monkeypatch):
    monkeypatch.setattr(mps, "installed", lambda: False)
    value = sharing_measurements.ways()
    assert "is not installed" in value["mps_error"]
    assert {row["way"] for row in value["rows"]} == {"time slices", "streams"}
    assert set(sharing_measurements.TABLES["sharing_ways"].summary(value)) == {"time slices", "streams"}


@pytest.mark.usefixtures("_given")
def test_batches():
    value = sharing_measurements.batches()
    assert [row["batch"] for row in value["rows"]] == [row["batch"] for row in value["alone"]]
    assert value["rows"][-1]["images_per_second"] == pytest.approx(100 * 256)
    assert "images/s" in sharing_measurements.TABLES["sharing_batches"].text(value)


def test_what_was_recorded_of_errors_and_limits():
    values = recordings.values()
    rows = {(row["way"], row["event"]): row for row in values["sharing_faults"]["rows"]}
    for key, row in rows.items():
        ended = key == ("MPS", "illegal access")
        assert all(("llegal" in error) == ended for error in row["errors"])
        assert row.get("afterwards", "serves") == "serves"
    clients = values["mps_clients"]
    assert clients["accepted"] == clients["connected"] == 48
    assert sum(clients["errors"].values()) == clients["asked_for"] - clients["accepted"]


@pytest.mark.usefixtures("_given")
def test_more_requests_than_clients(control):
    value = sharing_measurements.saturated()
    assert [(row["way"], row["clients"]) for row in value["rows"]] == [
        *(("MPS", 32), ("MPS", 64), ("streams", 32), ("streams", 64))
    ]
    assert "in flight" in sharing_measurements.TABLES["sharing_saturated"].text(value)


@pytest.mark.usefixtures("_given")
def test_parts(control):
    value = sharing_measurements.parts()
    assert [row["percentage"] for row in value["alone"]] == [100, 75, 50, 25, 10]
    assert [(row["way"], row["shares"]) for row in value["neighbours"][::2]] == [
        ("time slices", ""),
        ("MPS", "100 % and 100 %"),
        ("MPS", "50 % and 50 %"),
        ("MPS", "10 % and 90 %"),
    ]
    for alone, beside in zip(value["neighbours"][::2], value["neighbours"][1::2], strict=True):
        assert alone["neighbours_images_per_second"] == 0
        assert beside["neighbours_images_per_second"] == pytest.approx(6400)
        assert beside["images_per_second"] == pytest.approx(100)
    assert "neighbour's images/s" in sharing_measurements.TABLES["sharing_parts"].text(value)


@pytest.mark.usefixtures("_given")
def test_faults(control):
    value = sharing_measurements.faults()
    rows = {(row["way"], row["event"]): row for row in value["rows"]}
    assert len(rows) == 4
    assert rows["time slices", "illegal access"]["errors"] == ["", ""]
    assert rows["MPS", "illegal access"]["errors"] == ["the GPU had an error"] * 2
    assert rows["MPS", "killed"]["errors"] == ["", ""]
    for row in rows.values():
        assert row["own_error"] in ("illegal address", "ended with code -9", "the GPU had an error")
        assert len(row["answered"]) == 2
        assert row.get("afterwards", "serves") == "serves"
    text = sharing_measurements.TABLES["sharing_faults"].text(value)
    assert "go on" in text
    assert "the GPU had an error" in text


def test_clients_are_counted(control, monkeypatch):
    monkeypatch.setattr(sharing_measurements, "ASKED_FOR", 2)
    monkeypatch.setattr(sharing_measurements.timing, "cupy_on_gpu", lambda: None)
    value = sharing_measurements.client_limit()
    assert value["accepted"] + sum(value["errors"].values()) == 2
    assert value["connected"] == 3
    assert "2 clients asked" in sharing_measurements.TABLES["mps_clients"].text(value)
    if bare_client.create_context():
        assert value["accepted"] == 0
