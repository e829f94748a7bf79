"""A network written and checked, a run deployed and called, as a learner does it in a browser."""

import importlib

import pytest

from digits.data.builtin import sklearn_digits
from digits.networks import custom
from digits.workspace import Workspace
from tests.support.chromium import missing

pytestmark = pytest.mark.skipif(missing() != "", reason=missing())
harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
deploy = importlib.import_module("tests.labs.12_digits.test_deploy")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """One page for all tests, over a workspace with the digits and a run that is done."""
    pytest.importorskip("kernels.fusion")
    pytest.importorskip("kernels.serving")
    folder = tmp_path_factory.mktemp("digits")
    workspace = Workspace(folder)
    dataset = sklearn_digits(workspace)
    deploy.trained_run(
        workspace,
        dataset,
        "small",
        lambda layers: (
            layers.Conv2D(4, 3, padding="same", activation="relu", name="conv"),
            layers.GlobalAveragePooling2D(name="average"),
            layers.Dense(10, activation="softmax", name="classes"),
        ),
    )
    with harness.page_in_chromium(folder) as page:
        yield page


def no_harm(page):
    assert page.refused() == []
    assert page.errors() == []
    assert page.hosts() == {"127.0.0.1"}
    assert page.log() == ""


@pytest.mark.skipif(bool(custom.unavailable()), reason=custom.unavailable())
def test_own_code_is_confirmed_checked_and_drawn(page):
    page.press("Data")  # which selects the dataset
    page.press("Network")
    page.choose("Network", "Your own Keras code")
    page.until_says("has not been checked")
    assert page.says("No sandbox is perfect")
    assert not page.is_pressable("Check the code")
    page.tick("I have read this code, and want to run it in the sandbox")
    page.press("Check the code")
    page.until_says("The code can be used")
    assert page.says("GlobalAveragePooling2D")
    assert page.count(".digits-drawing svg") == 1
    assert page.run("return document.querySelector('.digits-drawing svg').getAttribute('aria-label')").startswith("The")
    no_harm(page)


def test_a_run_becomes_a_plan_that_answers_over_http(page):
    page.press("Deploy")
    page.fill("Batches", "4")
    page.fill("Test images, at most", "8")
    page.press("Build the plan")
    page.until_says("Latency, estimated")
    assert page.says("nothing was measured")
    page.press("Offer the plan files")
    page.until_says("batch-4.plan")
    assert page.run("return document.querySelector('a[download]').download").endswith("batch-4.plan")
    page.press("Serve this plan")
    page.until_says("curl")
    page.press("Ask about the test image")
    page.until_says("The most probable classes")
    page.press("Stop serving")
    page.until_says("1 of 1 images were answered")
    no_harm(page)
