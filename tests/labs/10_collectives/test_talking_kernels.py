"""Flags in three spellings, and the lesson's barrier of all devices: right as they are, a race without a part."""

import nbformat
import numpy as np
import pytest

from kernels.collectives import spellings
from kernels.collectives.forward_checks import Ring, check_forward
from warpcourse.paths import COURSE
from warplab import virtual_devices
from warplab.checks import CheckFailed
from warplab.launch.kernel_source import CudaSource
from warplab.simulator import DeviceDeadlock, DeviceRace
from warplab.simulator.check import flag_waits
from warplab.simulator.run import device_group

WEAKER = {
    "volatile and fences": [(side, "__threadfence_system();", "") for side in (0, 1)],
    "PTX": [(0, "ld.acquire.sys", "ld.relaxed.sys"), (1, "st.release.sys", "st.relaxed.sys")],
    "cuda::atomic_ref": [(0, "order_acquire", "order_relaxed"), (1, "order_release", "order_relaxed")],
}


def check(wait, tell):
    check_forward(spellings.pass_on(wait, tell), [Ring((2, 0, 1), 65, 1, gated=True)], [(1, 64)], language="CUDA C++")


@pytest.mark.parametrize("name", spellings.FLAG)
def test_each_spelling_passes_and_needs_its_order(name):
    check(*spellings.FLAG[name])
    for side, strong, weak in WEAKER[name]:
        statements = list(spellings.FLAG[name])
        assert strong in statements[side]
        statements[side] = statements[side].replace(strong, weak)
        with pytest.raises(CheckFailed, match=r"no fence (before the flag|after the wait)"):
            check(*statements)


@pytest.fixture(scope="module")
def cells():
    notebook = nbformat.read(COURSE / "notebooks" / "10_collectives.ipynb", as_version=4)
    return {cell.id: cell.source for cell in notebook.cells}


def run_barrier(cells, code):
    names = {"np": np, "virtual_devices": virtual_devices, "sum_windows": CudaSource(code, "sum_windows")}
    exec(cells["collectives-barrier-run"], names)


def test_the_barrier_orders_all_devices(cells, capsys):
    run_barrier(cells, cells["collectives-barrier"].removeprefix("%%cuda\n"))
    assert "on each device: [15, 15, 15, 15]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "instead", "cause"),
    [
        ("memory_order_release", "memory_order_relaxed", "no fence before the flag"),
        ("memory_order_acquire", "memory_order_relaxed", "no fence after the wait"),
        ("    barrier(pads, rank, ranks, 1);", "", "no wait"),
        ("    __syncthreads();\n    for", "    for", "no barrier"),
        ("    }\n    __syncthreads();", "    }", "no barrier"),
    ],
)
def test_a_barrier_that_lacks_a_part_is_a_race(cells, text, instead, cause):
    code = cells["collectives-barrier"].removeprefix("%%cuda\n")
    assert code.count(text) == 1
    with pytest.raises(DeviceRace) as caught:
        run_barrier(cells, code.replace(text, instead))
    assert caught.value.cause == cause


def test_a_peer_may_be_one_call_ahead(cells, capsys, monkeypatch):
    """The device that comes last goes on to its second call before the others, which waited, look again."""
    monkeypatch.setattr(flag_waits, "_sets", lambda block: False)  # else they look before it sets a flag
    monkeypatch.setattr(device_group, "_TURN", 1_000)
    code = cells["collectives-barrier"].removeprefix("%%cuda\n")
    call = "barrier(pads, rank, ranks, 1);"
    assert code.count(call) == 1
    code = code.replace(call, f"{call} {call.replace('1', '2')}")
    run_barrier(cells, code)
    assert "on each device: [15, 15, 15, 15]" in capsys.readouterr().out
    with pytest.raises(DeviceDeadlock, match="which is 2"):
        run_barrier(cells, code.replace(") < epoch)", ") != epoch)"))
