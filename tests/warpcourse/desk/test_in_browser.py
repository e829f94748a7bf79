"""The learner's desk in a real browser: what `python -m warplab lab` shows, and a prediction from form to result."""

from __future__ import annotations

import contextlib
import json

import nbformat
import pytest

from tests.support.chromium import missing
from tests.support.jupyterlab import jupyterlab
from tests.support.waiting import until
from warpcourse.desk import copies, lab_command
from warpcourse.desk.course_order import shipped
from warpcourse.learner import record
from warpcourse.paths import own_folder

pytestmark = pytest.mark.skipif(missing() != "", reason=missing())

SETTINGS = lab_command.SETTINGS / "labconfig"
DISABLED = json.loads((SETTINGS / "page_config.json").read_text())["disabledExtensions"]
EXERCISE = next((one for one in shipped() if one.is_exercise), None)
if EXERCISE is None:
    pytest.skip("the course has no lab with an exercise", allow_module_level=True)
LESSON = next(one for one in shipped() if one.number == EXERCISE.number)
PREDICTION = (
    "from warplab import compare, predict",
    'predict("98/sectors", "How many sectors?", unit="sectors per request")',
    'compare("98/sectors", 32.0)',
)
MENUS = "return [...document.querySelectorAll('#jp-MainMenu .lm-MenuBar-itemLabel')].map(one => one.textContent)"
TABS = "return [...document.querySelectorAll('#jp-main-dock-panel .lm-TabBar-tabLabel')].map(one => one.textContent)"


def has_plugin(lab, name):
    return lab.browser.run("return jupyterapp.hasPlugin(arguments[0])", name)


@contextlib.contextmanager
def desk(own):
    """JupyterLab as `python -m warplab lab` starts it, on the learner's folder `own`."""
    copies.refresh()
    with jupyterlab(own, lab_command.options(), **{**lab_command.environment(), "WARPLAB_BACKEND": "simulator"}) as lab:
        lab.browser.size(1300, 1000)
        yield lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    own = tmp_path_factory.mktemp("desk") / "mine"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPLAB_MINE", str(own))
        with desk(own) as opened:
            yield opened


def test_without_the_courses_settings_news_and_instructors_menus_would_be_there(tmp_path):
    """So that the test below looks for names that exist in this version of JupyterLab and nbgrader."""
    with jupyterlab(tmp_path, [f"--ServerApp.root_dir={tmp_path}"]) as plain:
        plain.open()
        assert {name: has_plugin(plain, name) for name in DISABLED} == dict.fromkeys(DISABLED, True)
        assert "Nbgrader" in plain.browser.run(MENUS)


def test_no_news_and_no_instructors_menus(lab):
    lab.open()
    assert {name: has_plugin(lab, name) for name in DISABLED} == dict.fromkeys(DISABLED, False)
    menus = lab.browser.run(MENUS)
    assert "File" in menus
    assert "Nbgrader" not in menus
    assert has_plugin(lab, "@jupyter/nbgrader:validate-assignment")


def test_what_instructors_open_by_its_address_is_not_served(lab):
    status = "const done = arguments[0]; fetch('/formgrader').then(answer => done(answer.status))"
    lab.open()
    assert lab.browser.wait(status) == 404


def test_it_opens_the_first_lesson_of_the_learners_copy(lab):
    lab.open()
    until(lambda: shipped()[0].own.name in lab.browser.run(TABS), "the first lesson")


def test_lesson_and_exercise_have_different_tabs_and_the_way_leads_there(lab):
    lab.open_notebook(str(LESSON.own))
    follow(lab, 0, EXERCISE.title)
    until(lambda: len(lab.browser.run(TABS)) == 2, "the exercise's tab")
    assert lab.browser.run(TABS) == [LESSON.own.name, EXERCISE.own.name]


def follow(lab, cell, text):
    """Click on the first link of a cell that has `text`, once JupyterLab has found out where it leads."""
    find = (
        "const links = [...jupyterapp.shell.currentWidget.content.widgets[arguments[0]].node.querySelectorAll('a')];"
        "return links.find(one => one.href.includes('/files/') && one.textContent.includes(arguments[1]))"
    )
    until(lambda: lab.browser.run(find, cell, text), f"a link to {text or 'anything'}")
    lab.browser.click(lab.browser.run(find, cell, text))


def test_the_place_for_an_answer_is_marked_in_colour(lab):
    lab.open_notebook(str(EXERCISE.own))
    colour = (
        "const all = [...document.querySelectorAll('.jp-RenderedMarkdown div')];"
        "const mark = all.find(one => one.textContent.startsWith('Your answer'));"
        "return mark ? getComputedStyle(mark).borderLeftColor : ''"
    )
    until(lambda: lab.browser.run(colour), "the mark")
    assert lab.browser.run(colour) == "rgb(230, 159, 0)"


def cell_with(lab, text):
    script = (
        "return jupyterapp.shell.currentWidget.content.widgets"
        ".findIndex(one => one.model.sharedModel.getSource().includes(arguments[0]))"
    )
    return lab.browser.run(script, text)


def test_a_prediction_from_the_form_to_the_comparison(lab):
    cells = [nbformat.v4.new_code_cell(source) for source in PREDICTION]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}  # or JupyterLab would ask for one
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, own_folder() / "lesson.ipynb")
    lab.open_notebook("lesson.ipynb")
    asks, reveals = 1, 2
    lab.run_cell(0)
    lab.run_cell(asks)
    assert lab.output(reveals) == ""  # nothing of the answer is on the screen before
    until(lambda: lab.element(asks, "input"), "the form")
    field = lab.element(asks, "input")
    lab.browser.type(field, "four\ue007")
    until(lambda: "is no number" in lab.output(asks), "the message")
    lab.browser.run("arguments[0].value = ''", field)
    lab.browser.type(field, "4")
    lab.browser.click(lab.element(asks, "button.jupyter-button"))
    until(lambda: "You predicted 4 sectors per request." in lab.output(asks), "the prediction in the form's place")
    lab.run_cell(reveals)
    shown = lab.output(reveals)
    assert "you predicted\tit is\n4\t32 sectors per request" in shown
    assert "It is 8 times as much as you predicted." in shown
    kept = record.entry("predictions", "98/sectors")
    assert (kept["answer"], kept["seen"], kept["late"]) == (4, 32, False)
    lab.save()
    # Opened again another day, without the kernel that made the form: the prediction still stands there.
    lab.open_notebook("lesson.ipynb")
    assert "You predicted 4 sectors per request." in lab.output(asks)


def test_the_progress_page_shows_what_is_next_and_leads_there(lab):
    lab.open_notebook("progress.ipynb")
    cell = cell_with(lab, "progress()")
    assert "Next:" in lab.output(cell)  # saved, before anything is run
    record.keep("exercises", EXERCISE.path.stem, {"problems": {"1": [1, 1]}})
    lab.run_cell(cell)
    until(lambda: "1 of " in lab.output(cell), "the point that is kept")
    follow(lab, cell, "")
    until(lambda: len(lab.browser.run(TABS)) == 2, "the tab of what is next")
