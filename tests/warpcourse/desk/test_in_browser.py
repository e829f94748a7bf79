"""The learner's desk in a real browser: what `python -m warplab lab` shows, and a prediction from form to result."""

from __future__ import annotations

import contextlib
import io
import json
from itertools import pairwise

import nbformat
import numpy as np
import pytest
from PIL import Image

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
EARLY = [one for one in shipped() if not one.is_exercise and one.number < "07"]
NAMED = ("radio", "radiogroup", "button", "slider")
HEADINGS = "return [...document.querySelectorAll('.jp-Notebook :is(h1, h2, h3, h4)')].map(one => one.tagName[1])"
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


def test_no_button_says_that_an_empty_lesson_passes(lab):
    lab.open_notebook(str(LESSON.own))
    tools = lab.browser.run("return jupyterapp.shell.currentWidget.toolbar.node.innerText")
    assert "Notebook" in tools
    assert "Validate" not in tools


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


def seen_by_a_screen_reader(lab):
    """(role, name) of each thing on the page that is not ignored, from the browser's accessibility tree."""
    nodes = lab.browser.devtools("Accessibility.getFullAXTree")["nodes"]
    value = {"value": ""}
    return [(n.get("role", value)["value"], n.get("name", value)["value"]) for n in nodes if not n["ignored"]]


def test_a_lesson_by_keyboard_and_for_a_screen_reader(lab):
    lab.open_notebook(str(LESSON.own))
    for text in ("import numpy as np", "predict(", "draw_grid("):
        lab.run_cell(cell_with(lab, text))
    asks, draws = cell_with(lab, "predict("), cell_with(lab, "draw_grid(")
    until(lambda: lab.element(asks, "input") and lab.element(draws, "details"), "the form and the picture's words")
    seen = seen_by_a_screen_reader(lab)
    assert not [role for role, name in seen if role in ("radio", "radiogroup", "button", "slider") and not name]
    (question,) = [name for role, name in seen if role == "radiogroup" and name.startswith("Can a GPU do these ten")]
    # The keyboard alone: Space chooses, Tab leads to the button, Enter commits.
    lab.browser.type(lab.element(asks, "input"), " \ue004\ue004")
    focused = "return document.activeElement"
    assert lab.browser.run(f"{focused}.textContent") == "Commit"
    lab.browser.type(lab.browser.run(focused), "\ue007")
    until(lambda: "You predicted yes" in lab.output(asks), "the prediction in the form's place")
    assert question in lab.output(asks)
    # A picture's words are folded: Enter opens them, and then a screen reader reads them.
    words = lab.browser.run("return arguments[0].textContent", lab.element(draws, "details")).removeprefix("In words")
    assert "1 024 threads" in words.replace("\u2009", " ").replace("\u202f", " ")
    assert ("StaticText", words) not in seen
    lab.browser.type(lab.element(draws, "summary"), "\ue007")
    until(lambda: ("StaticText", words) in seen_by_a_screen_reader(lab), "the picture's words")


def by_tab(lab, text):
    """Press Tab until the focus is on the button with this text; return the button."""
    focused = "return document.activeElement"
    for _ in range(9):
        found = lab.browser.run(focused)
        if lab.browser.run(f"{focused}.textContent") == text:
            return found
        lab.browser.type(found, "\ue004")
    raise AssertionError(f"nine times Tab, and no {text}")


@pytest.mark.thorough
@pytest.mark.parametrize("lesson", EARLY, ids=lambda one: one.own.stem)
def test_each_early_lessons_first_prediction_by_keyboard(lab, lesson):
    lab.open_notebook(str(lesson.own))
    asks = cell_with(lab, "predict(")
    for cell in (cell_with(lab, "from warplab import"), asks):
        lab.run_cell(cell)
    until(lambda: lab.element(asks, "input"), "the form")
    unnamed = [role for role, name in seen_by_a_screen_reader(lab) if role in NAMED and not name.strip()]
    assert not unnamed, unnamed
    field = lab.element(asks, "input")
    lab.browser.type(field, " \ue004" if lab.element(asks, "input[type=radio]") else "4\ue004")
    lab.browser.type(by_tab(lab, "Commit"), "\ue007")
    until(lambda: "You predicted" in lab.output(asks), "the prediction in the form's place")
    headings = [int(level) for level in lab.browser.run(HEADINGS)]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings)), headings


def test_a_prediction_from_the_form_to_the_comparison(lab):
    write("lesson.ipynb", *PREDICTION)
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


def write(name, *sources):
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}  # or JupyterLab would ask for one
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), own_folder() / name)


def test_cuda_cells_are_coloured_as_c(lab):
    write("cuda.ipynb", "%%cuda\n__global__ void add() {}", "x = 1")

    def kinds():
        return lab.browser.run("return jupyterapp.shell.currentWidget.content.widgets.map(one => one.model.mimeType)")

    def rewrite(cell, text):
        script = (
            "jupyterapp.shell.currentWidget.content.widgets[arguments[0]].model.sharedModel.setSource(arguments[1])"
        )
        lab.browser.run(script, cell, text)

    lab.open_notebook("cuda.ipynb")
    until(lambda: kinds() == ["text/x-c++src", "text/x-ipython"], "the languages of the cells")
    rewrite(0, "y = 2")
    rewrite(1, "%%cuda\n")
    until(lambda: kinds() == ["text/x-ipython", "text/x-c++src"], "the other languages")


THEMED = """
from matplotlib import pyplot as plt
from warplab.draw.style import BLUE, closed
def drawn(cmap=None):
    figure, ax = plt.subplots(figsize=(2, 1))
    figure.subplots_adjust(0, 0, 1, 1)
    ax.axis("off")
    ax.barh([0.5], [1], 0.5, left=1, color=BLUE)
    ax.set(xlim=(0, 3), ylim=(0, 1))
    if cmap:
        ax.imshow([[0, 1]], cmap, extent=(0, 1, 0, 0.2), aspect="auto")
        ax.set(xlim=(0, 3), ylim=(0, 1))
    return closed(figure)
"""


def test_pictures_fit_the_dark_theme_and_photographs_stay(lab):
    shown = ("drawn()", "sliders(lambda n: drawn(), n=[1, 2])", "drawn('gray')")
    write("themes.ipynb", f"from warplab import sliders{THEMED}", *shown)
    lab.open_notebook("themes.ipynb")
    for cell in range(4):
        lab.run_cell(cell)

    def colours(cell):
        """The page beside the picture, the picture's corner and its bar, each 0 to 255."""
        until(lambda: lab.element(cell, "img"), "a picture")
        box = lab.browser.run(
            "arguments[0].scrollIntoView({ block: 'center' });"
            "const box = arguments[0].getBoundingClientRect(); return [box.left, box.top, box.width, box.height]",
            lab.element(cell, "img"),
        )
        pixels = np.asarray(Image.open(io.BytesIO(lab.browser.picture())).convert("RGB")).astype(int)
        left, top, width, height = map(round, box)
        return [pixels[top + height // 2, left + x] for x in (width + 40, width // 20, width // 2)]

    def unlike(one, other):
        return int(np.abs(one - other).max())

    for cell in (1, 2, 3):
        page, corner, bar = colours(cell)
        assert unlike(page, corner) < 3, (cell, page, corner)
        assert unlike(bar, (0x00, 0x72, 0xB2)) < 3
    lab.theme("JupyterLab Dark")
    try:
        for cell in (1, 2):
            page, corner, bar = colours(cell)
            assert max(page) < 0x20
            assert unlike(page, corner) < 3, (cell, page, corner)
            assert unlike(bar, (0x4B, 0xAD, 0xE5)) < 4  # lighter, still blue
        page, corner, bar = colours(3)
        assert min(corner) == 255
        assert unlike(bar, (0x00, 0x72, 0xB2)) < 3
    finally:
        lab.theme("JupyterLab Light")


def spoken(lab, role):
    """The names that a screen reader says of the parts with a role."""
    nodes = lab.browser.devtools("Accessibility.getFullAXTree")["nodes"]
    return [n["name"]["value"] for n in nodes if n.get("role", {}).get("value") == role and not n["ignored"]]


def test_forms_and_sliders_have_names_and_values(lab):
    number = 'predict("98/ways", "How many ways?", unit="ways per warp")'
    choice = 'predict("98/faster", "Which is <faster>?", ["rows", "columns"])'
    slider = "sliders(lambda stride, kind: draw_grid(stride, 8, 29), stride=range(2, 9, 3), kind=['plain', 'other'])"
    write("names.ipynb", "from warplab import draw_grid, predict, sliders", number, choice, slider)
    lab.open_notebook("names.ipynb")
    for cell in range(4):
        lab.run_cell(cell)
    until(lambda: lab.element(3, ".noUi-handle[aria-label]"), "a slider with a name")
    assert "How many ways? (ways per warp)" in spoken(lab, "textbox")
    assert "Which is <faster>?" in spoken(lab, "radiogroup")
    assert spoken(lab, "radio") == ["rows", "columns"]
    assert "kind" in spoken(lab, "group")
    assert spoken(lab, "slider") == ["stride"]

    def value():  # the protocol's tree holds the number behind a value's text, not the text
        handle = lab.element(3, ".noUi-handle")
        return lab.browser.run("return arguments[0].getAttribute('aria-valuetext')", handle)

    until(lambda: value() == "2", "the first value")
    lab.browser.type(lab.element(3, ".noUi-handle"), "\ue014")  # the arrow to the right
    until(lambda: value() == "5", "the value that was moved to")


def test_the_progress_page_shows_what_is_next_and_leads_there(lab):
    lab.open_notebook("progress.ipynb")
    cell = cell_with(lab, "progress()")
    assert "Next:" in lab.output(cell)  # saved, before anything is run
    record.keep("exercises", EXERCISE.path.stem, {"problems": {"1": [1, 1]}})
    lab.run_cell(cell)
    until(lambda: "1 of " in lab.output(cell), "the point that is kept")
    follow(lab, cell, "")
    until(lambda: len(lab.browser.run(TABS)) == 2, "the tab of what is next")
