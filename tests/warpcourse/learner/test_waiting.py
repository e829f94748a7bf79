"""A wait that is told: what it shows meanwhile, and that nothing of it is saved."""

import IPython.display
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools.execute_notebooks import conceal, execute
from warpcourse.learner import waiting as module
from warpcourse.learner.waiting import waiting


@pytest.mark.parametrize(("after", "shown"), [(0, ["step 1, 0 s", "step 2, 0 s", ""]), (60, [])])
def test_each_text_takes_the_place_of_the_one_before(after, shown, monkeypatch):
    texts = []

    class Handle:
        def update(self, data, raw):
            texts.append(data["text/plain"])

    monkeypatch.setattr(module, "in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", lambda data, **_: Handle())
    with waiting(after) as say:
        for text in ("step 1", "step 1", "step 2"):
            say(text)
    assert texts == shown


def test_outside_a_notebook_nothing_is_shown(capsys):
    with waiting(0) as say:
        say("step 1")
    assert capsys.readouterr() == ("", "")


def test_nothing_of_it_is_saved():
    cell = "from warpcourse.learner.waiting import waiting\nwith waiting(0) as say:\n    say('step 1')\nprint('done')"
    (done,) = execute(new_notebook(cells=[new_code_cell(cell)])).cells
    assert [output.get("data", {}) for output in done.outputs] == [{"text/plain": ""}, {}]
    (told,) = conceal(new_notebook(cells=[done])).cells
    assert [output.text for output in told.outputs] == ["done\n"]
