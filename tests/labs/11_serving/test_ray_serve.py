"""Lab 11's engine in replicas under Ray Serve, behind HTTP: replicas are killed with batches in hand, and none is lost.

One service for all tests, since Ray starts in 10 to 20 seconds on two cores.
"""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.serving.serve import engines
from kernels.serving.serve.engines import EngineError, ray_serve
from kernels.serving.serve.service.process import Refused, start
from tests.support.waiting import until

_SPEC = importlib.util.spec_from_file_location("asking", Path(__file__).with_name("asking.py"))
asking = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(asking)
REPLICAS = "kernels.serving.serve.engines.ray_serve:replicas"
WITH_RAY = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed; make setup-cluster installs it"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(scope="module")
def service(folder):
    options = {"of": "serving_engines:FileGate", "replicas": 2, "folder": str(folder)}
    limits = {"batch_limit": 2, "wait_limit": 0, "capacity": 8}
    with start(REPLICAS, options=options, environment=asking.HERE, **limits) as running:
        yield running


def busy(folder) -> dict[int, int]:
    """Batches that each process has taken, by its number."""
    counts: dict[int, int] = {}
    for path in folder.glob("batch-*"):
        pid = int(path.name.split("-")[1])
        counts[pid] = counts.get(pid, 0) + 1
    return counts


def retries(service) -> float:
    """Batches that were sent again."""
    (line,) = (line for line in service.metrics().splitlines() if line.startswith("serving_engine_retries_total "))
    return float(line.split()[1])


@WITH_RAY
@pytest.mark.parametrize("killed", [1, 2])
def test_replicas_that_die_with_batches_in_hand_lose_none(service, folder, killed):
    for path in folder.iterdir():
        path.unlink()
    requests, before = asking.Asking(service), retries(service)
    requests.send(*range(1, 13))
    until(lambda: len(busy(folder)) == 2, "a batch in both replicas")
    assert ray_serve.pids(service.pid) == sorted(busy(folder))
    victims = list(busy(folder))[:killed]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    until(lambda: retries(service) == before + killed, "the batches to be sent again")
    (folder / "open").touch()
    requests.wait()
    accepted = {n: answer for n, answer in requests.answers.items() if answer != 429}
    assert len(accepted) >= 8  # as many as may wait; more, if replicas take some while the others still arrive
    assert accepted == {n: n + 0.5 for n in accepted}
    assert set(busy(folder)) - set(victims), "another process has taken the batches"
    assert retries(service) == before + killed


@WITH_RAY
def test_what_a_replica_refuses_is_not_sent_again_and_shutting_down_says_what_became_of_all(service, folder):
    (folder / "open").touch()
    before = retries(service)
    with pytest.raises(Refused, match="500: the engine failed: told to fail"):
        service.ask([[-1.0, -1.0]])
    assert retries(service) == before
    assert service.ask([[1.0, 2.0]]) == 3
    counts = service.stop()
    assert counts["accepted"] == counts["answered"] + counts["failed"]
    assert counts["failed"] == 1


def test_a_replica_is_killed_as_a_fault_would(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        living = [process.pid]
        monkeypatch.setattr(ray_serve, "pids", lambda service: living if service == os.getpid() else [])
        replicas = object.__new__(ray_serve.Replicas)
        assert replicas.kill() == process.pid
        assert process.wait() == -signal.SIGKILL
        living.clear()
        with pytest.raises(RuntimeError, match="no replica of this process runs on this machine"):
            replicas.kill()


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match="Ray is not installed, which replicas need: run make setup-cluster"):
        engines.make(REPLICAS, of="kernels.serving.serve.engines:digits")


class _SlowRay:
    """Ray, whose processes are not there in time for the first `late` starts."""

    def __init__(self, late: int) -> None:
        self.late, self.folders, self.ended = late, [], 0

    def is_initialized(self) -> bool:
        return False

    def init(self, *_, _temp_dir: str, **options) -> None:
        self.folders.append(Path(_temp_dir))
        if len(self.folders) <= self.late:
            raise Exception("The current node timed out during startup.")

    def shutdown(self) -> None:
        self.ended += 1


def test_ray_is_started_again_where_its_processes_take_long():
    ray = _SlowRay(2)
    folder = Path(ray_serve._start(ray, None))
    try:
        assert ray.ended == 2
        assert ray.folders[2] == folder
        assert [path.exists() for path in ray.folders] == [False, False, True]
    finally:
        folder.rmdir()
    ray = _SlowRay(99)
    with pytest.raises(EngineError, match="Ray cannot start on this machine: The current node timed out"):
        ray_serve._start(ray, None)
    assert len(ray.folders) == ray_serve.STARTS
    assert not any(path.exists() for path in ray.folders)


def test_numbers_of_replicas_that_cannot_be_are_refused():
    for number in (0, "2", True):
        with pytest.raises(EngineError, match=f"replicas is {number!r}; it must be a whole number, 1 or more"):
            engines.make(REPLICAS, of="kernels.serving.serve.engines:digits", replicas=number)


def test_the_reason_is_found_in_what_ray_says():
    said = (
        "The deployment failed to start 2 times. Error:\n  File x, line 3\nmodule.EngineError: there is no plan\nmore"
    )
    assert ray_serve._reason(said) == "there is no plan"
    assert ray_serve._reason(" not enough memory\n") == "not enough memory"


def test_an_address_without_a_cluster_is_refused_at_once():
    with pytest.raises(EngineError, match=r"there is no Ray cluster at 'here'.*: give host:port"):
        engines.make(REPLICAS, of="kernels.serving.serve.engines:digits", address="here")
