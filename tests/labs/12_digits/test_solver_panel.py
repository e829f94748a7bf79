"""The solver panel: what its controls say is the next run's solver, or is said to be wrong."""

from __future__ import annotations

import importlib
from dataclasses import asdict

import pytest

from digits.data.augment import LIMITS
from digits.page.page import Page
from digits.page.solver_panel import SolverPanel
from digits.training.schedule import POLICIES
from digits.training.spec import OPTIMIZERS, Solver
from digits.workspace import Workspace

stub = importlib.import_module("tests.labs.12_digits.run_stub")


@pytest.fixture
def page(tmp_path):
    workspace = Workspace(tmp_path)
    stub.dataset(workspace, images=64)
    page = Page(workspace, [("Solver", "digits.page.solver_panel", "SolverPanel")])
    yield page
    log = tmp_path / "page.log"
    assert not log.exists(), log.read_text()


@pytest.fixture
def panel(page):
    return page.panel("Solver")


def controls(widget):
    found = {widget.description: widget} if hasattr(widget, "description") and hasattr(widget, "value") else {}
    for child in getattr(widget, "children", ()):
        found = controls(child) | found  # a number's field before the line in it
    return found


def test_it_begins_with_the_usual_solver(page):
    assert Solver(**page.selected.solver) == Solver()
    assert page.selected.solver_error == ""


def test_every_control_reaches_the_solver(page, panel):
    of = controls(panel.widget)
    wanted = Solver(
        epochs=7,
        batch=16,
        optimizer="nesterov",
        rate=0.05,
        policy={"name": "inverse", "gamma": 0.2, "power": 0.75, "warm_up": 5},
        precision="mixed_bfloat16",
        augment={"shift": 0.1, "rotation": 10, "scale": 0.2, "noise": 3, "contrast": 0.3, "flip": "horizontal"},
        seed=9,
        momentum=0.8,
        decay=0.01,
        validate_every=2,
        keep_every=3,
    )
    of["Optimizer"].value = "nesterov"  # first, since it sets the rate
    of["Policy"].value = "inverse"
    of = controls(panel.widget)
    for label, value in {
        "Epochs": 7,
        "Batch (images)": 16,
        "Base learning rate": 0.05,
        "Momentum": 0.8,
        "Weight decay": 0.01,
        "Gamma": 0.2,
        "Power": 0.75,
        "Warm-up (% of the training)": 5,
        "Precision": "mixed_bfloat16",
        "Seed": 9,
        "Validate every (epochs)": 2,
        "Keep weights every (epochs; 0: the last two)": 3,
        "Shift (share of the side)": 0.1,
        "Rotation (degrees)": 10,
        "Scale (share of the size)": 0.2,
        "Noise (grey levels)": 3,
        "Contrast (share)": 0.3,
        "Flip": "horizontal",
    }.items():
        of[label].value = value
    assert Solver(**page.selected.solver) == wanted


def test_an_optimizer_brings_its_usual_rate_and_momentum_only_where_it_has_one(page, panel):
    of = controls(panel.widget)
    for name, (_, rate) in OPTIMIZERS.items():
        of["Optimizer"].value = name
        assert page.selected.solver["rate"] == rate
        assert page.selected.solver["decay"] == (0.004 if name == "adamw" else 0)
        assert (of["Momentum"].layout.display is None) == (name in ("sgd", "nesterov", "rmsprop"))


@pytest.mark.parametrize("name", POLICIES)
def test_each_policy_shows_its_options_and_its_curve(page, panel, name):
    controls(panel.widget)["Policy"].value = name
    assert page.selected.solver["policy"] == {"name": name, **POLICIES[name].options, "warm_up": 0.0}
    assert "digits-chart" in panel._drawn.value
    assert f"Learning rate over {2 * Solver().epochs} steps, 2 per epoch" in panel._drawn.value


def test_the_formula_is_said_as_a_sentence(panel):
    controls(panel.widget)["Policy"].value = "fixed"
    assert "The rate stays at its base." in panel._formula.value
    controls(panel.widget)["Policy"].value = "cosine"
    assert "Rate = base × (1 + cos(π × done / 100)) / 2, where done is" in panel._formula.value


def test_without_a_dataset_the_rate_is_drawn_for_a_thousand_images(tmp_path):
    page = Page(Workspace(tmp_path), [("Solver", "digits.page.solver_panel", "SolverPanel")])
    drawn = page.panel("Solver")._drawn.value
    assert "No dataset is selected; drawn for 1000 images." in drawn
    assert "digits-chart" in drawn


def test_what_is_wrong_is_said_and_no_solver_is_half_taken(page, panel):
    of = controls(panel.widget)
    of["Policy"].value = "multistep"
    before = page.selected.solver
    steps = controls(panel.widget)["Steps at (% of the training)"]
    steps.value = "20, x"
    assert "per cents with commas" in page.selected.solver_error
    assert "not &#x27;20, x&#x27;" in panel._wrong.value
    assert page.selected.solver == before
    steps.value = "20, 130"
    assert "from 0 to 100" in page.selected.solver_error
    steps.value = "20; 60"
    assert page.selected.solver_error == ""
    assert page.selected.solver["policy"]["values"] == [20, 60]
    of["Base learning rate"].value = 0
    assert "The learning rate is 0" in page.selected.solver_error


def test_another_panel_can_set_the_solver(page, panel):
    wanted = Solver(epochs=33, optimizer="sgd", rate=0.2, policy={"name": "step", "size": 20, "gamma": 0.5}, seed=3)
    page.selected.solver = asdict(wanted)
    of = controls(panel.widget)
    assert (of["Epochs"].value, of["Base learning rate"].value, of["Gamma"].value) == (33, 0.2, 0.5)
    assert panel.solver() == wanted
    assert Solver(**page.selected.solver) == wanted


def test_a_solver_that_was_set_before_the_panel_was_opened_is_kept(page):
    page.selected.solver = asdict(Solver(epochs=3, augment={"shift": 0.2}))
    again = SolverPanel(page)
    assert again.solver() == Solver(epochs=3, augment={name: 0.0 for name in LIMITS} | {"shift": 0.2, "flip": "none"})
    assert page.selected.solver["epochs"] == 3


def test_no_augmentation_is_an_empty_table(page, panel):
    of = controls(panel.widget)
    of["Noise (grey levels)"].value = 4
    assert page.selected.solver["augment"]["noise"] == 4
    of["Noise (grey levels)"].value = 0
    assert page.selected.solver["augment"] == {}
