"""Checks of a topic's counters in the simulator against Nsight Compute's (`tools.ncu`)."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from tools import ncu, ncu_page
from warplab.hardware import backend


def check_recorded(topic: str) -> list[ncu.Comparison]:
    """Compare a topic's launches with its recording and its page; return the comparisons."""
    recorded = ncu.recording(topic)
    assert ncu.unrecorded(topic, recorded) == ([], [])
    comparisons = _compared(topic, recorded)
    _check(topic, comparisons)
    # Requests, sectors and wavefronts have no tolerance but on the launches that say why.
    assert all(len(c.difference.reason) > 40 for c in comparisons if c.counter in ncu.EQUAL and not c.equal)
    page = ncu_page.path(topic).read_text()
    assert page == ncu_page.page(topic, recorded, comparisons), f"run: python -m tools.ncu {topic}"
    assert f"{recorded['device']}, ncu {recorded['ncu']}, {recorded['date']}" in page
    return comparisons


def check_measured(topic: str) -> None:
    """Read a topic's counters on this machine's GPU, and compare."""
    assert backend.name() == "gpu", f"this test reads a GPU's counters; {backend.reason()}"
    _check(topic, _compared(topic, ncu.measured(topic)))


def _compared(topic: str, recorded: dict) -> list[ncu.Comparison]:
    """In a process of its own, as the page is made: after other tests one allowed counter of lab 09 came out equal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPLAB_BACKEND", "simulator")
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            return alone.submit(ncu.compare, topic, recorded).result()


def _check(topic: str, comparisons: list[ncu.Comparison]) -> None:
    assert len(comparisons) == len(ncu.launches(topic)) * (len(ncu.COMPARED) + 1)
    failing = [c for c in comparisons if not c.holds]
    assert not failing, ncu.text(failing)
