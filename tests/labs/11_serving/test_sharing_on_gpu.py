"""Processes that share a real GPU, by time slices and as clients of MPS."""

import pytest

from kernels.serving.overlap.sharing import mps
from kernels.serving.overlap.sharing.clients import Clients, Load
from kernels.serving.small_network import SmallNetwork

SMALL = SmallNetwork(layers=3, channels=16, size=16)

pytestmark = pytest.mark.gpu


def _check(clients):
    for loads in ([Load()] * 2, [Load(batch=4, streams=2), Load(graph=False)]):
        reading = clients.serve(loads)  # raises for an error and for a wrong answer
        assert [one.load for one in reading.served] == loads


def test_processes_take_turns():
    with Clients([{}] * 2, SMALL) as clients:
        _check(clients)


@pytest.mark.skipif(not mps.installed(), reason=f"{mps.CONTROL} is not installed")
def test_clients_of_mps_run_together_and_the_daemon_quits():
    with mps.daemon() as mps_daemon, Clients([mps_daemon.environment] * 2, SMALL) as clients:
        assert mps_daemon.clients() == 2
        _check(clients)
    assert not mps_daemon.folder.exists()


def test_a_fault_ends_the_process_that_made_it():
    with Clients([{}] * 2, SMALL) as clients:
        reading = clients.attempt([None, Load()], meanwhile=lambda: clients.fault(0))
        assert "llegal" in clients.last_answer(0)
        assert reading.served[0].error == ""
