"""The lessons: each runs in the simulator, its tasks can be solved, and what is committed is clean."""

import copy
import importlib.util
import os
import re
from statistics import median

import nbformat
import pytest

from tests.support.lesson_answers import ANSWERS
from warplab.paths import COURSE

CODE_CELLS = {
    "00_start_here": 14,
    "01_vector_multiply": 57,
    "02_memory_access": 58,
    "03_warp_divergence": 59,
    "04_matrix_multiply": 60,
    "05_tensor_cores": 65,
}
PICTURES = {
    "00_start_here": 2,
    "01_vector_multiply": 12,
    "02_memory_access": 21,
    "03_warp_divergence": 16,
    "04_matrix_multiply": 16,
    "05_tensor_cores": 10,
}
MOST_BYTES = 400_000


def _load_tool():
    spec = importlib.util.spec_from_file_location("execute_notebooks", COURSE / "tools" / "execute_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = _load_tool()


def read(name):
    return nbformat.read(COURSE / "notebooks" / f"{name}.ipynb", as_version=4)


def text_of(cell):
    return "\n".join(text for output in cell.outputs for text in tool.texts(output).values())


@pytest.fixture(scope="module", params=CODE_CELLS)
def committed(request):
    """(name, notebook as it is in the repository)."""
    return request.param, read(request.param)


@pytest.fixture(scope="module", autouse=True)
def _in_the_simulator():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPLAB_BACKEND", "simulator")
        yield


def pictures(notebook):
    return [o for cell in tool.code_cells(notebook) for o in cell.outputs if "image/png" in o.get("data", {})]


def test_every_lesson_is_tested():
    assert {path.stem for path in (COURSE / "notebooks").glob("*.ipynb")} == set(CODE_CELLS)
    assert set(ANSWERS) == set(CODE_CELLS)


@pytest.mark.parametrize("name", CODE_CELLS)
def test_a_lesson_runs_in_the_simulator(name):
    """From the first cell to the last, all tasks unsolved. One test, so that the lesson runs once."""
    notebook = tool.execute(read(name))
    counts = [cell.execution_count for cell in tool.code_cells(notebook)]
    assert counts == list(range(1, CODE_CELLS[name] + 1))
    assert len(pictures(notebook)) == PICTURES[name]
    check_first_result(notebook)
    check_times(notebook)
    for cell in notebook.cells:
        if "check" in cell.metadata.get("tags", []):
            assert re.search(r"not written yet|^None: ", text_of(cell)), (name, text_of(cell))


def check_first_result(notebook):
    """Within three code cells; the line that names the backend does not count."""
    first = "\n".join(text_of(cell) for cell in tool.code_cells(notebook)[:3])
    assert [line for line in first.splitlines() if line and not line.startswith("Warp Lab runs kernels")]


def check_times(notebook):
    """Every line with a rate or a time names the GPU it is from, or is arithmetic on a data sheet."""
    for cell in tool.code_cells(notebook):
        label = ""
        for line in text_of(cell).splitlines():
            label = line if line.startswith("recorded on") else label
            if re.search(r"\d\s?(µs|ms|s|GB/s)\b", line) and "recorded on NVIDIA" not in line + label:
                assert re.search(r"CARDS|predict\(|Claim", cell.source), line


def test_tasks_are_those_with_answers():
    for name, answers in ANSWERS.items():
        cells = read(name).cells
        tagged = [cell.id for cell in cells if "your-turn" in cell.metadata.get("tags", [])]
        checks = [cell.id for cell in cells if "check" in cell.metadata.get("tags", [])]
        assert tagged == list(answers)
        assert checks == [check_of(task) for task in tagged]


@pytest.mark.parametrize("name", ANSWERS)
def test_checks_accept_the_right_answer_and_reject_wrong_ones(name):
    """One run: right answers stand in their places, each wrong one follows at the end with its check below it."""
    notebook = read(name)
    cells = {cell.id: cell for cell in notebook.cells}
    wrong = []
    for task, answers in ANSWERS[name].items():
        cells[task].source = answers.right
        for source, reason in answers.wrong.items():
            again = copy.deepcopy(cells[check_of(task)])
            again.id = f"wrong-{len(wrong)}"
            notebook.cells += [nbformat.v4.new_code_cell(source), again]
            wrong.append((source, reason, again))
    tool.execute(notebook)
    for task in ANSWERS[name]:
        said = text_of(cells[check_of(task)])
        assert re.search(r"right for \d+|^5: right$", said.strip()), (task, said)
        assert not re.search("look at|something else", said), (task, said)
    for source, reason, check in wrong:
        assert reason in text_of(check), (source, text_of(check))
    if name == "01_vector_multiply":
        assert "the claim: 750,000 GB/s" in text_of(cells["check-rate"])


def check_of(task):
    return task.replace("your-turn", "check")


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


def test_outputs_below_a_predict_are_folded(committed):
    """An answer in sight is no prediction. Of the cells up to the next text, all that show something are folded."""
    _, notebook = committed
    text, after_predict = "", []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and "**Predict:**" in cell.source:
            below = notebook.cells[place + 1 :]
            end = next((k for k, c in enumerate(below) if c.cell_type != "code"), len(below))
            after_predict.append([c for c in below[:end] if c.outputs])
        text += cell.source
    assert after_predict
    assert "Outputs below a **Predict** are folded" in text
    for cells in after_predict:
        assert cells
        for cell in cells:
            assert cell.metadata.get("jupyter", {}).get("outputs_hidden"), cell.source


def test_links_to_files_lead_somewhere(committed):
    _, notebook = committed
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links
    assert not [link for link in links if not (COURSE / "notebooks" / link).exists()]


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
    name, notebook = committed
    assert len(pictures(notebook)) == PICTURES[name]


def test_committed_outputs_name_the_device(committed):
    _, notebook = committed
    about = notebook.metadata.warplab
    assert set(about) == {"backend", "device", "date"}
    assert about.device in "\n".join(text_of(cell) for cell in tool.code_cells(notebook))


def test_committed_outputs_show_no_path_of_a_machine(committed):
    _, notebook = committed
    for cell in tool.code_cells(notebook):
        for output in cell.outputs:
            for text in tool.texts(output).values():
                assert not tool.ABSOLUTE_PATH.search(text), text


def test_committed_lessons_are_small(committed):
    name, _ = committed
    assert os.path.getsize(COURSE / "notebooks" / f"{name}.ipynb") < MOST_BYTES


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
