"""The page without a browser: panels, selection, clock, background work, and what is said when something fails."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
import types
from dataclasses import asdict

import pytest

from digits.files import DigitsError
from digits.page import elements
from digits.page.page import PANELS, Page
from digits.training.spec import Solver
from digits.workspace import Workspace

stub = importlib.import_module("tests.labs.12_digits.run_stub")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def panels(monkeypatch):
    """Two panels that work and one that does not."""
    module = types.ModuleType("panels_of_a_test")
    module.made = []

    class Good:
        def __init__(self, page):
            module.made.append(type(self).__name__)
            self.widget = elements.note("good")

    class Other(Good):
        pass

    class Bad:
        def __init__(self, page):
            raise ValueError("the <b>disk</b> is gone")

    module.Good, module.Other, module.Bad = Good, Other, Bad
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def triples(*names):
    return [(name, "panels_of_a_test", name) for name in names]


def text(widget):
    return getattr(widget, "value", "") + "".join(text(child) for child in getattr(widget, "children", ()))


def test_a_panel_is_made_when_it_is_opened_first(workspace, panels):
    page = Page(workspace, triples("Good", "Other"))
    assert panels.made == ["Good"]
    page.open("Other")
    page.open("Good")
    page.open("Other")
    assert panels.made == ["Good", "Other"]
    assert page.opened == "Other"
    assert page.panel("Good").widget.layout.display == "none"
    assert page.panel("Other").widget.layout.display is None


def test_one_broken_panel_leaves_the_others(workspace, panels):
    page = Page(workspace, triples("Bad", "Good", "Missing"), open_at="Bad")
    assert "the &lt;b&gt;disk&lt;/b&gt; is gone" in text(page.widget)
    page.open("Missing")
    assert "The panel Missing could not be opened" in text(page.widget)
    page.open("Good")
    assert panels.made == ["Good"]


def test_every_panel_of_the_page_can_be_opened(workspace):
    """The real ones, on an empty workspace and on one with a run."""
    for filled in (False, True):
        if filled:
            stub.dataset(workspace)
            stub.written(workspace, "a run")
        page = Page(workspace)
        for title, _, _ in PANELS:
            page.open(title)
        log = workspace.root / "page.log"
        assert not log.exists(), log.read_text()
        page.tick()
        assert not log.exists(), log.read_text()


def test_what_is_said_is_escaped_and_marked(workspace, panels):
    page = Page(workspace, triples("Good"))
    page.say("<script>1</script>")
    assert '<div role="status"' in page._status.value
    assert "&lt;script&gt;" in page._status.value
    page.say("It broke", error=True)
    assert 'role="alert"' in page._status.value
    assert "Error: It broke" in page._status.value
    page.say("")
    assert page._status.value == ""


def test_a_guarded_function_says_what_went_wrong_and_writes_the_log(workspace, panels):
    page = Page(workspace, triples("Good"))
    assert page.guarded(lambda x: x + 1)(2) == 3

    def broken():
        return {}["no such key"]

    assert page.guarded(broken)() is None
    assert "KeyError" in page._status.value
    assert "page.log" in page._status.value
    page.guarded(lambda: int("nine"))()
    assert "invalid literal for int() with base 10: &#x27;nine&#x27;" in page._status.value
    log = (workspace.root / "page.log").read_text()
    assert "in broken" in log
    assert "ValueError" in log


def test_what_the_user_can_mend_is_said_and_not_logged(workspace, panels):
    page = Page(workspace, triples("Good"))

    def wrong():
        raise DigitsError("Give a name.")

    page.guarded(wrong)()
    assert "Error: Give a name." in page._status.value
    assert not (workspace.root / "page.log").exists()


def test_the_log_does_not_grow_without_end(workspace, panels, monkeypatch):
    monkeypatch.setattr("digits.page.page._LOG_BYTES", 2000)
    page = Page(workspace, triples("Good"))
    for _ in range(40):
        page.guarded(lambda: 1 / 0)()
    sizes = [path.stat().st_size for path in workspace.root.glob("page.log*")]
    assert len(sizes) == 2
    assert max(sizes) < 4000


def test_tick_calls_what_every_was_given(workspace, panels):
    page = Page(workspace, triples("Good"))
    called = []
    page.every(5, lambda: called.append(1))
    page.every(5, lambda: 1 / 0)  # one that fails does not keep the others from being called
    page.tick()
    page.tick()
    assert called == [1, 1]
    page.tick(all=False)  # not due yet
    assert called == [1, 1]


def test_in_an_event_loop_timers_run_by_themselves_and_background_work_in_a_thread(workspace, panels):
    async def kernel():
        page = Page(workspace, triples("Good"))
        here, beats, done = threading.get_ident(), [], asyncio.Event()
        page.every(0.01, lambda: beats.append(threading.get_ident()))
        result = []
        page.in_background(
            threading.get_ident,
            then=lambda there: result.append((there != here, threading.get_ident() == here)),
            finally_=done.set,
        )
        await done.wait()
        while not beats:
            await asyncio.sleep(0.01)
        assert result == [(True, True)]
        assert set(beats) == {here}
        failed = asyncio.Event()
        page.in_background(lambda: 1 / 0, then=result.append, finally_=failed.set)
        await failed.wait()
        assert "ZeroDivisionError" in page._status.value
        assert len(result) == 1
        page.close()
        assert page._clock.cancelling() or page._clock.cancelled()

    asyncio.run(kernel())


def test_what_was_said_goes_when_another_panel_is_opened_later(workspace, panels, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("digits.page.page.time.monotonic", lambda: clock[0])
    page = Page(workspace, triples("Good", "Other"))
    page.say("It is made.")
    page.open("Other")  # by what said it
    assert "It is made." in page._status.value
    clock[0] += 5
    page.open("Other")
    assert "It is made." in page._status.value
    page.open("Good")
    assert page._status.value == ""


def test_what_was_chosen_is_there_again(workspace, panels):
    first = stub.dataset(workspace, "a")
    stub.dataset(workspace, "b")
    page = Page(workspace, triples("Good"))
    page.selected.dataset = first.id
    page.selected.network = {"name": "googlenet"}
    page.selected.start = "lab 09"
    page.selected.solver = asdict(Solver(epochs=3))
    again = Page(workspace, triples("Good")).selected
    assert (again.dataset, again.network, again.start) == (first.id, {"name": "googlenet"}, "lab 09")
    assert Solver(**again.solver) == Solver(epochs=3)
    first.delete()
    assert Page(workspace, triples("Good")).selected.dataset != first.id


@pytest.mark.parametrize(
    "kept",
    [
        "{",
        "[]",
        '{"solver": {"epochs": "many"}, "network": {"name": 3}, "start": 7, "dataset": ["x"]}',
        '{"solver": {"colour": "red"}, "network": "lenet", "dataset": "../../x"}',
        '{"solver": 3, "network": null, "start": null, "dataset": null}',
        '{"network": {"name": "lenet"}, "start": 7}',
        '{"network": {"name": ["lenet"]}, "start": ""}',
    ],
)
def test_a_strangers_choice_does_not_keep_the_page_from_opening(workspace, panels, kept):
    (workspace.root / "page.json").write_text(kept)
    page = Page(workspace, triples("Good"))
    assert page.selected.solver == {}
    assert page.selected.network == {}
    assert page.selected.start == ""
    assert page.selected.dataset == ""


def test_a_page_that_is_shown_again_ends_the_one_before(workspace, panels, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    first, second = Page(workspace, triples("Good")), Page(workspace, triples("Good"))
    called = []
    first.every(1, lambda: called.append("first"))
    second.every(1, lambda: called.append("second"))
    first._ipython_display_()
    first._ipython_display_()
    second._ipython_display_()
    first.tick()
    second.tick()
    assert called == ["second"]
    assert shown == [first.widget, first.widget, second.widget]


def test_a_new_page_selects_what_is_newest(workspace, panels):
    assert Page(workspace, triples("Good")).selected.run == ""
    dataset = stub.dataset(workspace)
    stub.written(workspace, "a")
    newest = stub.written(workspace, "b")
    page = Page(workspace, triples("Good"))
    assert (page.selected.dataset, page.selected.run) == (dataset.id, newest.id)


def test_a_damaged_dataset_does_not_keep_the_page_from_opening(workspace, panels):
    (workspace.create("datasets", "odd") / "dataset.json").write_text("{")
    assert Page(workspace, triples("Good")).selected.dataset == ""


def test_tables_and_pictures_escape_what_users_named():
    made = elements.table(["<i>"], [["<script>", elements.Markup("<b>kept</b>")]], 'a "caption"')
    assert "<i>" not in made
    assert "<script>" not in made
    assert "<b>kept</b>" in made
    assert 'aria-label="a &quot;caption&quot;"' in made
    shown = elements.picture(b"\x89PNG", 'digit "<7>"', pixelated=True)
    assert 'alt="digit &quot;&lt;7&gt;&quot;"' in shown
    assert shown.startswith('<img src="data:image/png;base64,')
    assert elements.picture(b"\xff\xd8\xff", "x").startswith('<img src="data:image/jpeg')


def test_an_upload_button_hands_over_no_tooltip_null():
    assert elements.text("Name").tooltip == ""
    assert elements.choice("Name", ["a"]).tooltip == ""
