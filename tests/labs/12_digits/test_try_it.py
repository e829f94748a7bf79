"""Try it: a press gives a dataset, a trained network and a look into it; who goes elsewhere is not led on."""

from __future__ import annotations

import importlib

import pytest

from digits.data.builtin import sklearn_digits
from digits.data.dataset import Dataset
from digits.page import try_it
from digits.page.page import PANELS, Page
from digits.training import runs
from digits.workspace import Workspace
from tests.support.chromium import missing
from tests.support.waiting import until

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
stub = importlib.import_module("tests.labs.12_digits.run_stub")


@pytest.fixture
def space(tmp_path):
    return Workspace(tmp_path / "space")


@pytest.fixture
def started(monkeypatch):
    """Have a run that is done in place of training, and what was asked of it."""
    asked = []

    def start(workspace, spec):
        asked.append(spec)
        return stub.written(workspace, spec.name, dataset=spec.dataset)

    monkeypatch.setattr(runs, "start", start)
    return asked


def test_the_digits_are_made_once(space, started):
    try_it.begin(space)
    other = sklearn_digits(space, "larger", size=16)
    try_it.begin(space)
    assert len(Dataset.list(space)) == 2
    assert len({spec.dataset for spec in started}) == 1
    assert other.id != started[0].dataset


@pytest.mark.parametrize("goes_elsewhere", [False, True])
def test_it_leads_on_only_who_watches(space, started, goes_elsewhere):
    page = Page(space, PANELS)
    offer = page.panel("Data")._try
    offer.start.click()
    assert page.opened == "Train"
    assert offer.start.disabled
    if goes_elsewhere:
        page.open("Network")
    offer._poll()
    assert page.opened == ("Network" if goes_elsewhere else "Look inside")
    assert not offer.start.disabled
    page.close()


@pytest.mark.thorough
@pytest.mark.skipif(missing() != "", reason=missing())
def test_one_press_shows_a_trained_network_and_its_layers(space, tmp_path):
    with harness.page_in_chromium(space.root) as page:
        page.press("Try it")
        page.until_says("The network is trained")
        page.until_says("The most probable classes")
        until(lambda: page.count(".look-layer") >= 5, "the layers")
        (run,) = runs.listing(space)
        assert run.state()["best"]["accuracy"] > 0.9
        page.check()
