"""The page in Chromium, over runs that are written as files: its parts can be read, reached and named; it survives."""

from __future__ import annotations

import importlib
import os
import signal

import pytest

from digits.files import Lock
from digits.page.page import PANELS
from digits.workspace import Workspace
from tests.support.chromium import missing
from tests.support.waiting import until

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
stub = importlib.import_module("tests.labs.12_digits.run_stub")
pytestmark = pytest.mark.skipif(missing() != "", reason=missing())

TITLES = [title for title, _, _ in PANELS]
# Texts in sight whose contrast with what is behind them is below WCAG's AA: 4.5, or 3 for large ones.
TOO_FAINT = """
const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)); };
const light = colour => { const [r, g, b] = colour.map(v => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = element => { const layers = [];
    for (let e = element; e; e = e.parentElement) {
        const colour = numbers(getComputedStyle(e).backgroundColor);
        layers.push(colour); if ((colour[3] ?? 1) == 1) break; }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]); };
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !seen(element)) continue;
    if (element.closest("script, style, option, :disabled")) continue;
    const style = getComputedStyle(element), ground = behind(element);
    const ink = over(numbers(element.closest("svg") && element.tagName == "text" ? style.fill : style.color), ground);
    const [low, high] = [light(ink), light(ground)].sort((a, b) => a - b), ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(ratio.toFixed(2) + " " + walker.currentNode.data.trim().slice(0, 40));
}
return found;
"""
TOO_WIDE = """
const out = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [];
const all = [...document.querySelectorAll("body *")].filter(one => seen(one) && !one.closest(".digits-scroll, svg"));
const found = all.filter(one => one.getBoundingClientRect().right > innerWidth + 1);
return out.concat(found.map(one => one.tagName + " " + one.className).slice(0, 5));
"""
# What the Tab key must stop at: whatever can be pressed, typed into or chosen from, in the open panel.
REACHABLE = """
const controls = "main button, main input, main select, main textarea, main a[href], main summary";
window.digitsWanted = [...document.querySelectorAll(controls)]
    .filter(one => seen(one) && !one.disabled && one.tabIndex >= 0 && one.type != "file");
window.digitsFaint = [];
document.activeElement.blur();
return digitsWanted.length;
"""
STOP = """
const one = document.activeElement, style = getComputedStyle(one);
digitsWanted = digitsWanted.filter(other => other !== one);
if (one !== document.body && (style.outlineStyle == "none" || parseFloat(style.outlineWidth) < 2))
    digitsFaint.push(words(one) || one.outerHTML);
return digitsWanted.length;
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("page") / "workspace")
    stub.dataset(workspace, "stripes <blink>")
    stub.written(workspace, "first")
    run = stub.written(workspace, "second <marquee>", "paused", epochs=10, reached=4)
    stub.load(run.folder, 5, gpu=True)
    return workspace


@pytest.fixture(scope="module")
def opened(workspace):
    with harness.page_in_chromium(workspace.root) as page:
        yield page


@pytest.fixture
def page(opened):
    opened.size(1280)
    yield opened
    opened.check()


def show(page, title):
    """Open a panel, and wait until all of it is there: widgets come one by one."""
    page.press(title)
    until(lambda: page.run("return words(document.querySelector('[aria-selected=true]'))") == title, title)
    counts = [0]

    def complete():
        counts.append(page.run("return [...document.querySelectorAll('.digits-panel *')].filter(seen).length"))
        return len(counts) > 9 and len(set(counts[-9:])) == 1 and counts[-1] > 0

    until(complete, f"all of {title}")


def show_run(page, name):
    """Open the train panel at a run."""
    show(page, "Train")
    until(lambda: any(one.startswith(f"{name} –") for one in page.options("Run")), f"the run {name} in the list")
    page.choose("Run", next(one for one in page.options("Run") if one.startswith(f"{name} –")))
    page.until_says(f": {name}\n")


@pytest.mark.parametrize("title", TITLES)
def test_every_panel_can_be_read_at_both_widths_and_in_both_colours(page, title):
    show(page, title)
    for width in (1280, 390):
        for dark in (False, True):
            page.size(width, dark=dark)
            assert page.run(TOO_WIDE) == [], (width, dark)
            assert page.run(TOO_FAINT) == [], (width, dark)


def test_a_panel_that_was_open_before_is_shown_while_the_kernel_is_busy(page):
    titled = "return [...document.querySelectorAll('.digits-panel')].filter(seen).map(words).join().slice(0, 80)"
    show(page, "Solver")
    solver = page.run(titled)
    show(page, "Data")
    assert page.run(titled) != solver
    (kernel,) = page.kernels()
    os.kill(kernel, signal.SIGSTOP)
    try:
        page.press("Solver")
        assert page.run("return words(document.querySelector('[aria-selected=true]'))") == "Solver"
        assert page.run(titled) == solver
        assert page.run("return seen(document.getElementById('working'))")
    finally:
        os.kill(kernel, signal.SIGCONT)
    until(lambda: not page.run("return seen(document.getElementById('working'))"), "the kernel's answer")
    until(
        lambda: not page.run("return document.querySelector('.digits-page').hasAttribute('data-pressed')"), "its panel"
    )
    assert page.run(titled) == solver


def test_the_colours_are_the_readers(page):
    ground = "return getComputedStyle(document.body).backgroundColor"
    page.size(1280, dark=False)
    light = page.run(ground)
    page.size(1280, dark=True)
    assert (light, page.run(ground)) == ("rgb(255, 255, 255)", "rgb(20, 20, 20)")


@pytest.mark.parametrize("title", TITLES)
def test_every_control_and_picture_has_a_name(page, title):
    show(page, title)
    assert page.nameless() == []


@pytest.mark.parametrize("title", TITLES)
def test_every_control_is_reached_by_the_tab_key_and_shows_that_it_is(page, title):
    show(page, title)
    wanted = page.run(REACHABLE)
    assert wanted > 0
    for _ in range(3 * max(wanted, 40)):  # a table that scrolls is a stop, too, and so is the browser's own frame
        page.key("Tab")
        if page.run(STOP) == 0:
            break
    left = "return digitsWanted.map(one => words(one) || (one.labels[0] && words(one.labels[0])) || one.outerHTML)"
    assert page.run(left) == []
    assert page.run("return digitsFaint") == []


def test_steps_are_tabs_with_arrow_keys(page):
    show(page, "Data")
    assert page.focused() == "Data"
    page.key("ArrowRight", 2)
    assert page.focused() == "Solver"
    assert page.run("return words(document.querySelector('[aria-selected=true]'))") == "Data"
    page.key("Enter")
    page.until_says("Base learning rate")
    page.key("End")
    assert page.focused() == TITLES[-1]
    page.key("ArrowRight")
    assert page.focused() == TITLES[0]
    page.key("ArrowLeft")
    page.key("Home")
    assert page.focused() == TITLES[0]
    page.key("Space")
    until(lambda: page.run("return words(document.querySelector('[aria-selected=true]'))") == TITLES[0])
    assert page.run("return document.querySelectorAll('[role=tab][aria-selected=true]').length") == 1
    panel = (
        "const tab = document.querySelector('[aria-selected=true]');"
        "const panel = document.getElementById(tab.getAttribute('aria-controls'));"
        "return [panel.getAttribute('role'), panel.getAttribute('aria-labelledby') == tab.id, seen(panel)]"
    )
    until(lambda: page.run(panel) == ["tabpanel", True, True], "the panel's name, which follows its tab's")


def test_a_number_is_typed_by_keyboard_and_the_rate_is_drawn_anew(page):
    show(page, "Solver")
    page.fill("Epochs", "7")
    page.until_says("Learning rate over 7 steps, 1 per epoch")
    page.fill("Base learning rate", "0.001")
    page.choose("Policy", "Step down")
    page.fill("Gamma", "0.5")
    label = "[...document.querySelectorAll('.digits-chart svg[role=img]')].find(seen).getAttribute('aria-label')"
    until(lambda: "lowest 0.00025" in page.run(f"return {label}"), "the rate drawn with the new gamma")
    show(page, "Train")
    page.until_says("7 epochs, 32 images per step, adam, rate 0.001, step")
    assert page.is_pressable("Start training")


def test_names_of_users_are_shown_as_they_are(page):
    show_run(page, "second <marquee>")
    page.until_says("NVIDIA H100 80 % of the time busy")
    assert page.run("return document.querySelectorAll('marquee, blink').length") == 0
    assert "stripes <blink>" in page.options("Dataset")[0]


def test_what_is_said_is_in_sight_wherever_the_page_is_scrolled_to(page):
    show_run(page, "first")
    page.size(390, height=500)
    page.press("Take over its settings")
    page.until_says("The next run has the settings of first", ".digits-status")
    page.run("window.scrollTo(0, document.body.scrollHeight)")
    until(lambda: page.run("return scrollY") > 500)
    top, bottom = page.run(
        "const box = document.querySelector('.digits-status [role]').getBoundingClientRect();"
        "return [box.top, box.bottom]"
    )
    assert 0 <= top < bottom <= 500


def test_choices_outlive_a_reload(page):
    show(page, "Solver")
    page.fill("Epochs", "9")
    page.until_says("Learning rate over 9 steps")
    page.browser.open(page.browser.address)
    until(lambda: page.run("return !!document.querySelector('.digits-steps button')"), "the page again")
    show(page, "Solver")
    assert page.value("Epochs") == "9"


def test_curves_move_while_a_run_goes_on(page, workspace):
    run = stub.written(workspace, "moving", "running", epochs=6, reached=1)
    chart = "[...document.querySelectorAll('.digits-chart svg[role=img]')].find(seen)"
    label = f"const chart = {chart}; return chart ? chart.getAttribute('aria-label') : ''"
    with Lock(run.folder / "lock"):
        show_run(page, "moving")
        page.until_says("epoch 1.0 of 6")
        until(lambda: "at epoch 1;" in page.run(label))
        shape = page.run(f"return {chart}.innerHTML")
        stub.points(run.folder, 1, 4, 0.9, 6)
        stub.state(run.folder, "running", 4, 6)
        page.until_says("epoch 4.0 of 6")
        until(lambda: "at epoch 4;" in page.run(label))
        assert page.run(f"return {chart}.innerHTML") != shape
        assert page.run("return document.querySelector('progress').value") == pytest.approx(4 / 6, abs=1e-3)
        page.press("Pause")
        wanted = run.folder / "wanted"
        until(lambda: wanted.exists() and wanted.read_text() == "pause", "the wish to pause")
    page.until_says("Killed: moving")  # the lock is free, and nobody wrote an end: it can be resumed
    until(lambda: page.is_pressable("Resume"))


def test_runs_are_compared(page):
    show(page, "Train")
    script = (
        "const list = labelled('Compare with')[0]; for (const one of list.options) one.selected = true;"
        "list.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    page.run(script)
    page.until_says("first, validation")
    page.until_says("second <marquee>, training" if page.value("Run").startswith("second") else ", training")
    page.run(script.replace("= true", "= false"))
    until(lambda: not page.says("first, validation"))


def test_deleting_asks_first_and_then_deletes(page, workspace):
    run = stub.written(workspace, "to delete")
    show_run(page, "to delete")
    page.press("Delete …")
    page.until_says("Delete the run to delete with its weights and curves for good?")
    page.press("No, keep it")
    until(lambda: not page.is_pressable("Yes, delete it"), "the end of the question")
    assert run.folder.exists()
    page.press("Delete …")
    page.press("Yes, delete it")
    page.until_says("The run to delete has been deleted.")
    assert not run.folder.exists()


def test_the_address_keeps_no_token(page):
    assert "token" not in page.browser.address


def test_a_reload_shows_the_runs_again_and_ends_the_old_kernel(page):
    show(page, "Train")
    (before,) = page.kernels()
    page.browser.open(page.browser.address)  # the cookie lets it in
    until(lambda: page.run("return !!document.querySelector('.digits-steps button')"))
    show(page, "Train")
    page.until_says("second <marquee>")
    until(lambda: before not in page.kernels(), "the end of the old page's kernel")


def test_a_second_window_shows_the_same(page, workspace):
    show(page, "Train")
    first = page.browser.run("return location.href")
    window = page.browser.new_window()
    page.browser.open(first)
    until(lambda: page.run("return !!document.querySelector('.digits-steps button')"))
    show(page, "Train")
    page.until_says("second <marquee>")
    assert len(page.kernels()) == 2
    page.browser.open("about:blank")  # WebDriver closes a window without telling the page, unlike a hand
    page.browser.close_window(window)
    page.until_says("second <marquee>")
    until(lambda: len(page.kernels()) == 1, "the end of the closed window's kernel")


def test_a_busy_kernel_is_no_dead_one_and_after_a_dead_one_a_reload_brings_everything_back(page):
    show(page, "Train")
    (kernel,) = page.kernels()
    os.kill(kernel, signal.SIGSTOP)  # as silent as one that computes
    page.until_says("Working", "#working")
    assert page.text("#lost") == ""
    os.kill(kernel, signal.SIGCONT)
    until(lambda: page.run("return document.getElementById('working').hidden"), "the kernel's next beat")
    page.server.send_signal(signal.SIGSTOP)  # as Ctrl+Z does
    page.until_says("does not hear from its kernel any more", "#lost")
    page.server.send_signal(signal.SIGCONT)
    until(lambda: page.text("#lost") == "", "the kernel's next beat")
    os.kill(kernel, signal.SIGKILL)
    page.until_says("does not hear from its kernel any more", "#lost")
    page.press("Reload the page")
    until(lambda: page.kernels() and page.kernels() != [kernel], "a new kernel")
    until(lambda: page.run("return document.readyState == 'complete' && !document.getElementById('loading')"))
    show(page, "Train")
    page.until_says("second <marquee>")
    assert page.text("#lost") == ""
