"""The lessons: each runs in the simulator, its tasks can be solved, and what is committed is clean."""

import ast
import copy
import json
import os
import re
from statistics import median

import nbformat
import pytest

from tests.support.lesson_answers import answers
from tools import execute_notebooks as tool
from tools import pictures_page
from warpcourse.bench.lab import labs
from warpcourse.learner import record
from warpcourse.paths import COURSE

LABS = [lesson for lab in labs() for lesson in lab.lessons]
RUN_HERE = [lab for lab in LABS if not lab.needs_gpu]
MOST_BYTES = 400_000
QUICK = 100.0  # seconds of processor time


def read(lab):
    return nbformat.read(lab.notebook, as_version=4)


def text_of(cell):
    return "\n".join(text for output in cell.outputs for text in tool.texts(output).values())


@pytest.fixture(scope="module", params=LABS, ids=lambda lab: lab.slug)
def committed(request):
    """(lab, notebook as it is in the repository)."""
    return request.param, read(request.param)


@pytest.fixture(scope="module", autouse=True)
def _in_the_simulator():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPLAB_BACKEND", "simulator")
        yield


def pictures(notebook):
    return [o for cell in tool.code_cells(notebook) for o in cell.outputs if "image/png" in o.get("data", {})]


def estimates(said):
    """Return the lines of pictures that show estimates, which are the same in every run, whatever the inputs."""
    return [line for line in said.splitlines() if "An estimate by arithmetic" in line]


def tagged(notebook, tag):
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def quick(lab):
    """Return the mark of a lesson that `make test` runs: one whose recorded run takes at most QUICK."""
    times = lab.folder / "times.json"
    seconds = json.loads(times.read_text())["lesson"]["processor"] if times.exists() else 0
    return pytest.mark.always if seconds <= QUICK else pytest.mark.thorough


@pytest.mark.parametrize(
    ("lab", "wrong"),
    [
        *(pytest.param(lab, False, marks=quick(lab), id=f"right-{lab.slug}") for lab in RUN_HERE),
        *(pytest.param(lab, True, marks=pytest.mark.thorough, id=f"wrong-{lab.slug}") for lab in RUN_HERE),
    ],
)
def test_a_lesson_runs_and_its_checks_tell_right_from_wrong(lab, wrong):
    """One run, as it takes long: from the first cell to the last, all tasks unsolved, and then each answer with the
    check of its task below it; wrong ones only where there is time."""
    notebook = read(lab)
    cells = {cell.id: cell for cell in notebook.cells}
    tried = [
        (source, reason, known.shows, try_at_the_end(notebook, cells[check_of(task)], source))
        for task, known in answers(lab).items()
        for source, reason in [
            *((source, None) for source in (known.right, *(known.also if wrong else ()))),
            *(known.wrong.items() if wrong else ()),
        ]
    ]
    appended = 2 * len(tried)
    tool.execute(notebook)
    counts = [cell.execution_count for cell in tool.code_cells(notebook)]
    assert counts == list(range(1, lab.code_cells + appended + 1))
    for source, reason, shows, check in tried:
        said = text_of(check)
        if reason is None:
            assert re.search(r"right for \d+|^5: right$", said, re.MULTILINE), (source, said)
            assert not re.search("look at|something else", said), (source, said)
            assert shows in said, (source, said)
        else:
            assert reason in said, (source, said)
    lesson = copy.copy(notebook)
    lesson.cells = notebook.cells[: len(notebook.cells) - appended]
    check_first_result(lesson)
    check_times(lesson)
    for task, cell in zip(tagged(lesson, "your-turn"), tagged(lesson, "check"), strict=True):
        to_repair = re.search(r"^ +out\[\w+\] = ", task.source, re.MULTILINE)
        wanted = "look at" if to_repair else r"not written yet|^None: "
        assert re.search(wanted, text_of(cell)), text_of(cell)
    for cell in tagged(lesson, tool.REVEAL):
        assert cell.outputs, cell.source
    said = pictures_page.section(lab, lesson)
    kept = pictures_page.sections().get(lab.slug, said)
    # If they differ: python -m tools.pictures_page writes docs/pictures.md anew.
    assert pictures_page.cells(said) == pictures_page.cells(kept)
    assert estimates(said) == estimates(kept), "by the model as it is"
    assert len(pictures_page.cells(said)) == said.count("\n- `"), "each has words"
    assert len(pictures(tool.conceal(lesson))) == lab.pictures


def try_at_the_end(notebook, check, source):
    """Append an answer and the check of its task; return the check's cell."""
    answer, again = nbformat.v4.new_code_cell(source), copy.deepcopy(check)
    again.id = f"again-{len(notebook.cells)}"
    notebook.cells += [answer, again]
    return again


def check_of(task):
    return task.replace("your-turn", "check")


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.slug)
def test_tasks_are_those_with_answers(lab):
    notebook = read(lab)
    tasks = [cell.id for cell in tagged(notebook, "your-turn")]
    assert tasks == list(answers(lab))
    assert [cell.id for cell in tagged(notebook, "check")] == [check_of(task) for task in tasks]
    assert all(known.wrong for known in answers(lab).values())


def check_first_result(notebook):
    """Within three code cells; the line that names the backend does not count."""
    first = "\n".join(text_of(cell) for cell in tool.code_cells(notebook)[:3])
    assert [line for line in first.splitlines() if line and not line.startswith("Warp Lab runs kernels")]


def check_times(notebook):
    """Every line with a rate or a time names the GPU it is from, or is arithmetic on a data sheet.

    The words of a picture say no more than it does; its axes and legend say whence its times are.
    """
    for cell in tool.code_cells(notebook):
        label = ""
        said = [output for output in cell.outputs if "In words" not in output.get("data", {}).get("text/html", "")]
        for line in "\n".join(text for output in said for text in tool.texts(output).values()).splitlines():
            label = line if line.startswith("recorded on") else label
            if "recorded on NVIDIA" not in line + label and re.search(r"\d\s?(µs|ms|s|GB/s)\b", line):
                assert re.search(r"CARDS|LINKS|roofline\(|Claim", cell.source), line


def test_cells_are_short(committed):
    _, notebook = committed
    lines = [len(cell.source.splitlines()) for cell in tool.code_cells(notebook)]
    assert median(lines) < 8
    assert max(lines) <= 15


def test_every_task_has_three_hints(committed):
    _, notebook = committed
    tasks = sum("your-turn" in cell.metadata.get("tags", []) for cell in notebook.cells)
    for level in (1, 2, 3):
        hints = sum(cell.source.count(f"<details><summary>Hint {level}") for cell in notebook.cells)
        assert hints == tasks


def called(cell, name):
    """The keys that a cell gives to `name`, such as predict("01/requests", ...); in a loop, an x for what varies."""
    source = "\n".join(line for line in cell.source.splitlines() if not line.startswith("%"))
    try:
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    except SyntaxError:  # CUDA C++
        return []
    return [text_in(call.args[0]) for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def text_in(node):
    """The text of a literal, with an x for each value in an f-string."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_in(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "x"
    assert isinstance(node, ast.Constant), (
        f"write the key out, in place of {ast.unparse(node)}: the progress page reads it"
    )
    return node.value


def test_predictions_are_compared_later_in_cells_that_show_nothing_before_they_run(committed):
    """An answer in sight is no prediction: what carries the tag `reveal` is saved without outputs."""
    lab, notebook = committed
    cells = tool.code_cells(notebook)
    asked = [(key, place) for place, cell in enumerate(cells) for key in called(cell, "predict")]
    compared = [(key, place) for place, cell in enumerate(cells) for key in called(cell, "compare")]
    assert sorted(key for key, _ in asked) == sorted({key for key, _ in compared})
    assert len(dict(asked)) == len(asked), "a key is asked twice"
    for key, place in compared:
        assert record.check_key(key).startswith(f"{lab.number:02}/"), key
        assert dict(asked)[key] < place, f"{key} is compared before it is asked"
        assert tool.REVEAL in cells[place].metadata.get("tags", []), key
    for cell in tagged(notebook, tool.REVEAL):
        assert cell.outputs == [], cell.source


def test_what_is_kept_of_tasks_names_the_lab_and_no_task_twice(committed):
    lab, notebook = committed
    keys = [key for cell in tool.code_cells(notebook) for key in re.findall(r'\battempt\("(.*?)"\)', cell.source)]
    assert all(record.check_key(key).startswith(f"{lab.number:02}/") for key in keys)
    assert len(set(keys)) == len(keys)


def test_outputs_below_a_predict_are_folded(committed):
    """A lesson that asks in its text: of the cells up to the next text, all that show something are folded."""
    _, notebook = committed
    text, after_predict = "", []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and "**Predict:**" in cell.source:
            below = notebook.cells[place + 1 :]
            end = next((k for k, c in enumerate(below) if c.cell_type != "code"), len(below))
            after_predict.append([c for c in below[:end] if c.outputs])
        text += cell.source
    assert after_predict or any(called(cell, "predict") for cell in tool.code_cells(notebook))
    assert ("Outputs below a **Predict** are folded" in text) == bool(after_predict)
    for cells in after_predict:
        assert cells
        for cell in cells:
            assert cell.metadata.get("jupyter", {}).get("outputs_hidden"), cell.source


def test_links_to_files_lead_somewhere(committed):
    _, notebook = committed
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links
    assert not [link for link in links if not leads_somewhere(link)]


def test_no_sum_of_money_becomes_a_formula(committed):
    for cell in committed[1].cells:
        if cell.cell_type == "markdown":
            for formula in re.findall(r"\$([^$]+)\$", re.sub(r"`[^`]*`|\$\$.*?\$\$", "", cell.source, flags=re.DOTALL)):
                assert formula == formula.strip(), f"a formula of JupyterLab's: {formula}"


def leads_somewhere(link):
    """Whether there is such a file. A lesson may name one that has been taken out; then its number is nobody else's."""
    lesson = re.fullmatch(r"(\d\d)_\w+\.ipynb", link)
    if lesson and int(lesson[1]) not in {lab.number for lab in LABS}:
        return True
    return (COURSE / "notebooks" / link).exists()


def test_committed_outputs_are_those_of_one_clean_run(committed):
    _, notebook = committed
    cells = tool.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in notebook.cells:
        assert "execution" not in cell.metadata
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"


def test_committed_lessons_have_their_pictures(committed):
    lab, notebook = committed
    assert len(tool.code_cells(notebook)) == lab.code_cells
    assert len(pictures(notebook)) == lab.pictures
    drawn = [picture for picture in pictures(notebook) if picture.metadata.get("needs_background") == "light"]
    assert drawn or not lab.pictures  # or a dark theme leaves charts as they are


def test_committed_outputs_name_the_device(committed):
    _, notebook = committed
    about = notebook.metadata.warplab
    assert set(about) == {"backend", "device", "date"}
    shown = "\n".join(text_of(cell) for cell in tool.code_cells(notebook))
    measured = "measured on" in shown  # a lesson may measure nothing
    assert about.backend == "simulator" or about.device in shown or not measured
    assert not tool.BANNER.search(shown), "the saved output says what this machine has; the reader's has something else"


def test_committed_outputs_show_no_path_of_a_machine(committed):
    _, notebook = committed
    for cell in tool.code_cells(notebook):
        for output in cell.outputs:
            for text in tool.texts(output).values():
                assert not tool.ABSOLUTE_PATH.search(text), text


def test_committed_lessons_are_small(committed):
    lab, _ = committed
    assert os.path.getsize(lab.notebook) < MOST_BYTES


def notebook_of(tmp_path, *sources):
    path = tmp_path / "lesson.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources]), path)
    return path


def test_the_tool_writes_outputs_and_device(tmp_path, capsys):
    path = notebook_of(tmp_path, "6 * 7")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata["jupyter"] = {"outputs_hidden": True}
    nbformat.write(notebook, path)
    assert tool.main([str(path)]) == 0
    notebook = nbformat.read(path, as_version=4)
    assert notebook.cells[0].outputs[0].data["text/plain"] == "42"
    assert notebook.metadata.warplab.device == "simulator"
    assert notebook.cells[0].metadata == {"jupyter": {"outputs_hidden": True}}  # a folded output stays folded
    assert "Running on simulator.\nlesson.ipynb ... 1 code cells" in capsys.readouterr().out


def test_the_tool_saves_no_answer_no_banner_and_no_widget(tmp_path):
    slider = (
        "from IPython.display import display\n"
        f"display({{{tool.WIDGET!r}: {{'model_id': '1'}}, 'text/plain': 'Slider()'}}, raw=True)"
    )
    picture = slider.replace("'text/plain'", "'text/html': 'picture', 'text/plain'")
    path = notebook_of(tmp_path, "print('42')", "from warplab import cuda; cuda", slider, picture, "print(6 * 7)")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata["tags"] = ["reveal"]
    nbformat.write(notebook, path)
    assert tool.main([str(path)]) == 0
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].outputs == []
    assert cells[0].execution_count == 1
    assert "Warp Lab runs kernels" not in str(cells[1].outputs)
    assert cells[2].outputs == []
    assert [dict(output.data) for output in cells[3].outputs] == [{"text/html": "picture", "text/plain": "Slider()"}]
    assert cells[4].outputs[0].text == "42\n"


def test_the_tool_neither_shows_nor_keeps_predictions_of_whoever_runs_it(tmp_path):
    asks = "from warplab import compare, predict\npredict('01/a', 'How many?', answer=4)"
    path = notebook_of(tmp_path, asks, "predict('01/b', 'How many?')", "compare('01/b', 5)")
    record.keep("predictions", "01/b", {"answer": 4})
    before = record.read()
    assert tool.main([str(path)]) == 0
    assert record.read() == before
    cells = nbformat.read(path, as_version=4).cells
    assert "no prediction" in text_of(cells[2])
    assert "How many?" in text_of(cells[1])  # a reader without a kernel sees the question


def test_the_tool_only_checks_when_asked(tmp_path):
    path = notebook_of(tmp_path, "6 * 7")
    before = path.read_bytes()
    assert tool.main(["--check", str(path)]) == 0
    assert path.read_bytes() == before


def test_the_tool_cuts_the_path_of_the_checkout(tmp_path):
    path = notebook_of(tmp_path, f"print({str(COURSE / 'kernels' / 'x.cu')!r})")
    assert tool.main([str(path)]) == 0
    assert nbformat.read(path, as_version=4).cells[0].outputs[0].text == "kernels/x.cu\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; print('careful', file=sys.stderr)", "wrote to stderr:\ncareful"),
        ("print('/home/somebody/x.py')", "shows a path of this machine: /home/somebody/x.py"),
        ("import os; os._exit(1)", "died"),
    ],
)
def test_the_tool_keeps_a_notebook_that_failed_as_it_was(tmp_path, capsys, source, message):
    path = notebook_of(tmp_path, source, "6 * 7")
    before = path.read_bytes()
    assert tool.main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out
    assert message in out
    assert path.read_bytes() == before


def test_the_tool_names_a_notebook_that_does_not_exist(tmp_path, capsys):
    assert tool.main([str(tmp_path / "none.ipynb")]) == 2
    assert "no such notebook: " in capsys.readouterr().err
