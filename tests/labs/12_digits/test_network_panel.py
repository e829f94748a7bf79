"""The network panel: what is chosen there is what the next run trains."""

import datetime
import importlib
import io
import zipfile

import numpy as np
import pytest

from digits.data.dataset import Dataset
from digits.networks import custom, keras_file, summary
from digits.page.page import Page
from digits.training.spec import RunSpec
from digits.workspace import Workspace

ones = importlib.import_module("tests.labs.12_digits.test_custom")
TIME = datetime.datetime(2026, 11, 26, tzinfo=datetime.UTC)
PANELS = [("Network", "digits.page.network_panel", "NetworkPanel")]
SUMMARY = {
    "name": "custom",
    "layers": [{"name": "conv<b>", "kind": "Conv2D", "shape": [8, 8, 4], "parameters": 40, "multiply_adds": 2304}],
    "parameters": 40,
    "trainable": 40,
    "parameter_bytes": 160,
    "multiply_adds": 2304,
    "bytes": 1024,
}
SUMMARY["layers"][0] |= {"bytes": 1024, "inputs": []}


def dataset(workspace):
    part = {"images": np.zeros((20, 8, 8, 1), np.uint8), "labels": np.arange(20) % 10}
    parts = {"train": part, "validation": part}
    classes = [str(one) for one in range(10)]
    return Dataset.create(workspace, "dots", "classification", classes, parts, seed=0, source="a test")


@pytest.fixture
def page(tmp_path):
    workspace = Workspace(tmp_path)
    page = Page(workspace, PANELS)
    page.selected.dataset = dataset(workspace).id
    yield page
    log = tmp_path / "page.log"
    assert not log.exists(), log.read_text()


@pytest.fixture
def panel(page):
    return page.panel("Network")


@pytest.fixture
def checked(monkeypatch):
    """The sandbox's part played by a stub: what it was asked, in a list."""
    asked = []

    def configure(source, image, classes, *, confirmed, cancelled, start=b""):
        assert not cancelled()
        asked.append((source, image, classes, confirmed))
        return ones.plain()

    monkeypatch.setattr(custom, "configure", configure)
    monkeypatch.setattr(custom, "unavailable", lambda: "")
    monkeypatch.setattr(summary, "of_network", lambda network, image, classes: SUMMARY)
    return asked


def controls(widget):
    if getattr(widget, "description", ""):
        return {widget.description: widget}
    found = {}
    for child in getattr(widget, "children", ()):
        found |= controls(child)
    return found


def test_it_begins_with_the_first_network_that_fits(page):
    assert page.selected.network["name"] == "lenet"
    assert page.selected.network_error == ""
    RunSpec(page.selected.dataset, page.selected.network)


def test_options_reach_the_next_run(page, panel):
    controls(panel.widget)["Filters of the first layer"].value = 7
    assert page.selected.network["filters"] == 7


def test_only_networks_for_the_datasets_kind_are_offered(page, panel):
    other = dataset(page.workspace)
    about = other.folder / "dataset.json"
    about.write_text(about.read_text().replace('"classification"', '"segmentation"'))
    page.selected.dataset = other.id
    assert [value for _, value in controls(panel.widget)["Network"].options] == ["fcn"]
    assert page.selected.network["name"] == "fcn"


def test_a_network_of_another_panel_is_shown(page, panel):
    page.selected.network = {"name": "lenet", "filters": 9, "units": 33, "dropout": 0.25}
    of = controls(panel.widget)
    assert (of["Filters of the first layer"].value, of["Units of the dense layer"].value) == (9, 33)
    page.selected.network = {"name": "googlenet"}
    assert controls(panel.widget)["Network"].value == "googlenet"
    assert page.selected.network == {"name": "googlenet"}


def test_unchecked_code_starts_no_run(page, panel, checked):
    of = controls(panel.widget)
    of["Network"].value = "custom"
    assert "has not been checked" in page.selected.network_error
    assert of["Check the code"].disabled
    of["I have read this code, and want to run it in the sandbox"].value = True
    assert not of["Check the code"].disabled
    assert checked == []


def test_checked_code_is_the_next_runs_network_until_it_is_changed(page, panel, checked):
    of = controls(panel.widget)
    of["Network"].value = "custom"
    of["I have read this code, and want to run it in the sandbox"].value = True
    of["Check the code"].click()
    assert checked == [(custom.EXAMPLE, (8, 8, 1), 10, True)]
    assert page.selected.network_error == ""
    assert page.selected.network == {"name": "custom", "configuration": ones.plain(), "source": custom.EXAMPLE}
    of["Keras code"].value += "\n# changed"
    assert "has not been checked" in page.selected.network_error
    of["Keras code"].value = custom.EXAMPLE
    assert page.selected.network_error == ""


def test_code_that_fails_is_said_and_can_be_checked_again(page, panel, checked, monkeypatch):
    def fails(*_, **__):
        raise custom.CustomNetworkError("Your code failed. Line 3: NameError: <x>")

    monkeypatch.setattr(custom, "configure", fails)
    of = controls(panel.widget)
    of["Network"].value = "custom"
    of["I have read this code, and want to run it in the sandbox"].value = True
    of["Check the code"].click()
    assert "Line 3" in page._status.value
    assert "<x>" not in page._status.value + panel._wrong.value
    assert "Line 3" in page.selected.network_error
    assert "Line 3" in panel._wrong.value
    assert not of["Check the code"].disabled
    of["Keras code"].value += "# mended"
    assert "has not been checked" in page.selected.network_error


def test_the_layers_of_other_code_are_not_left_standing(page, panel, checked):
    of = controls(panel.widget)
    of["Network"].value = "custom"
    of["I have read this code, and want to run it in the sandbox"].value = True
    of["Check the code"].click()
    assert panel._layers.value
    of["Keras code"].value += "# changed"
    assert panel._layers.value == ""


def test_a_network_and_code_outlive_the_page(page, panel, checked):
    of = controls(panel.widget)
    of["Network"].value = "custom"
    of["Keras code"].value = "# mine"
    again = Page(page.workspace, PANELS)
    assert controls(again.widget)["Keras code"].value == "# mine"
    of["I have read this code, and want to run it in the sandbox"].value = True
    of["Check the code"].click()
    again = Page(page.workspace, PANELS)
    again.selected.dataset = page.selected.dataset
    assert controls(again.widget)["Network"].value == "custom"
    assert again.selected.network == page.selected.network
    assert again.selected.network_error == ""


def test_code_that_is_newer_than_what_was_checked_is_kept(page, panel, checked):
    of = controls(panel.widget)
    of["Network"].value = "custom"
    of["I have read this code, and want to run it in the sandbox"].value = True
    of["Check the code"].click()
    of["Keras code"].value = "# newer"
    again = Page(page.workspace, PANELS)
    again.selected.dataset = page.selected.dataset
    for shown in (again, page):
        shown.selected.dataset = dataset(page.workspace).id
        assert controls(shown.widget)["Keras code"].value == "# newer"
        assert "has not been checked" in shown.selected.network_error


@pytest.mark.parametrize(
    "draft",
    [
        "{",
        "[]",
        '{"code": 3, "network": 4}',
        '{"network": {"name": []}}',
        '{"network": {"name": "lenet", "units": "x", "dropout": null, "filters": [1]}}',
        '{"network": {"name": "custom", "configuration": {"layers": 3}}, "code": "x"}',
    ],
)
def test_a_damaged_draft_is_left_aside(page, draft):
    (page.workspace.root / "network_draft.json").write_text(draft)
    again = Page(page.workspace, PANELS)
    again.selected.dataset = page.selected.dataset
    assert not isinstance(again.panel("Network"), type(None))
    assert controls(again.widget)["Network"].value in ("lenet", "custom")


def test_a_taken_over_configuration_counts_as_checked_for_such_images_only(page, panel, checked):
    page.selected.network = {"name": "custom", "configuration": ones.plain(), "source": "# mine"}
    assert controls(panel.widget)["Keras code"].value == "# mine"
    assert page.selected.network_error == ""
    other = ones.changed(("layers", 0, "settings", "shape"), [9, 9, 1])
    page.selected.network = {"name": "custom", "configuration": other, "source": "# other"}
    assert "has not been checked" in page.selected.network_error


def test_without_a_sandbox_the_panel_says_what_to_install(page, panel, monkeypatch):
    monkeypatch.setattr(custom, "unavailable", lambda: "There is no sandbox. Install bubblewrap.")
    of = controls(panel.widget)
    of["Network"].value = "custom"
    assert "Install bubblewrap" in panel._wrong.value
    assert of["Check the code"].disabled


def test_the_layers_are_a_table_with_sums_and_a_drawing(page, panel, checked):
    controls(panel.widget)["Show the layers"].click()
    shown = panel._layers.value
    assert "<b>" not in shown.replace("&lt;b&gt;", "")
    assert "2,304" in shown
    assert shown.count("<svg") == 1
    assert 'role="region"' in shown


def test_what_starts_there_are(page, panel):
    of = controls(panel.widget)
    assert [value for _, value in of["Start from"].options] == [""]
    of["Network"].value = "googlenet"
    assert "lab 09" in [value for _, value in of["Start from"].options]
    of["Start from"].value = "lab 09"
    assert page.selected.start == "lab 09"


def test_a_keras_file_becomes_the_network_the_start_and_is_frozen(page, panel, checked):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("config.json", '{"class_name": "Functional", "config": {"layers": []}}')
        archive.writestr("model.weights.h5", b"")
    file = {
        "name": "my flowers.keras",
        "content": memoryview(stream.getvalue()),
        "size": 1,
        "type": "",
        "last_modified": TIME,
    }
    panel._file.value = (file,)
    assert page.selected.network_error == ""
    assert checked == [(keras_file.SOURCE, (8, 8, 1), 10, True)]
    assert (page.selected.start, page.selected.freeze) == ("file my-flowers.keras", True)
    assert page.selected.network == {"name": "custom", "configuration": ones.plain(), "source": keras_file.SOURCE}
    assert "file my-flowers.keras" in [value for _, value in controls(panel.widget)["Start from"].options]
    assert RunSpec(page.selected.dataset, page.selected.network, start=page.selected.start, freeze=True).freeze
    # What is no such file leaves all as it was, with its reason.
    panel._file.value = (file | {"name": "x.keras", "content": memoryview(b"no zip")},)
    assert "x.keras is no .keras file" in page._status.value
    assert page.selected.start == "file my-flowers.keras"
