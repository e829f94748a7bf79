"""`python -m warplab check`: points, messages and exit codes for right, wrong, damaged and foreign notebooks."""

from __future__ import annotations

import json
import subprocess
import sys

import nbformat
import pytest

from tests.support.exercise_answers import cells_by_id
from tests.support.sample import SAMPLE, SAMPLE_COURSE, sample_release, sample_source, sample_wrong
from tests.support.waiting import HANG
from warpcourse.exercises import check_command, release, score
from warpcourse.paths import COURSE

HERE = ("--course", str(SAMPLE_COURSE))


def answer(name: str) -> str:
    return next(wrong.cell for wrong in sample_wrong() if wrong.id == name)


def write(tmp_path, notebook, name=f"{SAMPLE}.ipynb"):
    nbformat.write(notebook, tmp_path / name)
    return str(tmp_path / name)


def check(path: str, capsys, *options: str) -> tuple[int, dict]:
    """Exit code, and by problem's number what --json says."""
    code = check_command.main([path, "--json", *HERE, *options])
    result = json.loads(capsys.readouterr().out)
    assert result["exercise"] == SAMPLE
    assert result["points"] == sum(problem["points"] for problem in result["problems"])
    assert result["possible"] == 25
    assert [problem["possible"] for problem in result["problems"]] == [4, 4, 4, 5, 4, 4]
    return code, {number: problem for number, problem in enumerate(result["problems"], 1)}


def test_blank_scores_nothing_and_the_table_says_why(tmp_path, capsys):
    folder = tmp_path / SAMPLE
    folder.mkdir()
    write(folder, sample_release())
    assert check_command.main([str(folder), *HERE]) == 1
    out = capsys.readouterr().out
    assert "total                         0 / 25" in out
    assert out.count("Not written yet: the answer cell") == 6


def test_solution_scores_everything_as_a_command(tmp_path):
    # Away from the course, from a renamed download.
    path = write(tmp_path, sample_source(), "solution (1).ipynb")
    command = [sys.executable, "-m", "warplab", "check", path, *HERE]
    done = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "total                         25 / 25" in done.stdout


def test_damaged_notebook(tmp_path, capsys, monkeypatch):
    """Edited, deleted and duplicated cells, answers that fail: each costs only its own points, with its reason."""
    notebook = sample_source()
    cells = cells_by_id(notebook)
    warns = "import sys\n\nprint('unused variable', file=sys.stderr)\n"  # as compilers do
    cells["multiply"].source = warns + answer("multiply/no_guard")
    cells["multiply-guard"].source = "pass"  # an edited test
    notebook.cells.remove(cells["any-grid-right"])  # a deleted test
    notebook.cells.append(nbformat.v4.new_code_cell("pass", metadata=cells["any-grid-frugal"].metadata))  # duplicated
    notebook.cells.remove(cells["multiply-cuda"])  # a deleted answer
    cells["multiply-float4"].source = "%%cuda\nthis is no C++"
    cells["multiply-reversed"].source = "import time\n\nwhile True:\n    time.sleep(0.01)"
    limit = score.Execute._get_timeout
    monkeypatch.setattr(
        score.Execute,
        "_get_timeout",
        lambda self, cell: 3 if cell and "while True" in cell.source else limit(self, cell),
    )
    code, problems = check(write(tmp_path, notebook), capsys, "--timeout", str(int(HANG)))
    assert code == 1
    assert [problem["points"] for problem in problems.values()] == [2, 4, 0, 0, 0, 4]
    assert problems[1]["message"].startswith("multiply: a load of a[")
    assert "past the end" in problems[1]["message"]
    assert problems[1]["message"].endswith("no failure: the answer cell 'multiply' printed a warning.\nunused variable")
    assert problems[2]["message"] == ""
    assert "answer cell 'multiply-cuda' is missing from the notebook" in problems[3]["message"]
    assert "There is no multiply_cuda, the name by which the tests call it" in problems[3]["message"]
    assert problems[4]["message"].startswith("The answer cell 'multiply-float4' fails.\n")
    assert "The cell did not end in time" in problems[5]["message"]


def test_every_exercise_of_this_course_is_found_without_an_option(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(score, "run", lambda notebook, folder, timeout: "Nothing ran.")
    for topic in release.topics():
        assert check_command.main([write(tmp_path, release.release_notebook(topic), "download.ipynb"), "--json"]) == 1
        result = json.loads(capsys.readouterr().out)
        assert (result["exercise"], result["points"]) == (topic, 0)


def test_a_notebook_that_lost_the_names_of_its_cells_is_found(tmp_path, capsys, monkeypatch):
    """As Colab and VS Code have saved them: the cells that run, and their order, are the same."""
    ran = []
    monkeypatch.setattr(score, "run", lambda notebook, folder, timeout: ran.append(notebook) or "Nothing ran.")
    notebook = sample_source()
    cells_by_id(notebook)["multiply"].source = answer("multiply/no_guard")
    check(write(tmp_path, notebook), capsys)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({"id": "a1b2"})
        del cell["id"]
    notebook.nbformat_minor = 0
    assert check_command.main([write(tmp_path, notebook, "download.ipynb"), *HERE]) == 1
    said = capsys.readouterr()
    assert SAMPLE in said.out
    assert "warning: The notebook has lost the names that nbgrader gives to cells" in said.err
    assert "Not written yet" not in said.out
    first, second = ([(score.cell_id(cell), cell.source) for cell in each.cells] for each in ran)
    assert first == second


def test_a_notebook_that_kills_its_process_keeps_what_came_before(tmp_path, capsys):
    notebook = sample_source()
    cells_by_id(notebook)["multiply-any-grid"].source = "import os\n\nos._exit(1)"
    code, problems = check(write(tmp_path, notebook), capsys)
    assert code == 1
    assert [problem["points"] for problem in problems.values()] == [4, 0, 0, 0, 0, 0]
    assert "notebook's Python process ended" in problems[2]["message"]


@pytest.mark.parametrize("hangs", [False, True])
def test_a_test_cell_that_never_ends_scores_nothing(tmp_path, capsys, monkeypatch, hangs):
    """Though it has no error: its process died in it, or does not even hear an interrupt."""
    end = "signal.signal(signal.SIGINT, signal.SIG_IGN), time.sleep(1e6)" if hangs else "os._exit(1)"
    notebook = sample_source()
    answer_cell = cells_by_id(notebook)["multiply-any-grid"]
    answer_cell.source += "\n\nimport os, signal, time\n\n"
    answer_cell.source += f'get_ipython().events.register("pre_run_cell", lambda info: ({end}))'
    limit = score.Execute._get_timeout
    monkeypatch.setattr(
        score.Execute,
        "_get_timeout",
        lambda self, cell: 3 if hangs and cell and score.cell_id(cell) == "any-grid-right" else limit(self, cell),
    )
    if hangs:
        monkeypatch.setattr(score.Execute, "iopub_timeout", property(lambda self: 1, lambda self, value: None))
    code, problems = check(write(tmp_path, notebook), capsys, "--timeout", str(int(HANG)))
    assert code == 1
    assert [problem["points"] for problem in problems.values()] == [4, 0, 0, 0, 0, 0]
    assert ("gave no answer for" if hangs else "Python process ended before") in problems[2]["message"]


@pytest.mark.parametrize(("start", "said"), [("os._exit(1)", "died before"), ("time.sleep(1e6)", "didn't respond in")])
def test_a_process_that_does_not_start_is_an_error_without_a_traceback(tmp_path, capsys, monkeypatch, start, said):
    (tmp_path / "sitecustomize.py").write_text(f"import os, time\n\n{start}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert check_command.main([write(tmp_path, sample_release()), *HERE, "--timeout", "1"]) == 2
    err = capsys.readouterr().err
    assert "error: nothing was checked, as the notebook's Python process did not start" in err
    assert said in err


def test_answers_written_into_the_only_copy(tmp_path, capsys):
    """Without solutions/ the release is the learner's own notebook: an answer in it is not "as it was given"."""
    notebook = sample_release()
    cells = cells_by_id(notebook)
    cells["multiply"].source = answer("multiply/no_guard")
    cells["cuda-fits"].source += "\n# edited"
    folder = tmp_path / "exercises" / SAMPLE
    folder.mkdir(parents=True)
    path = write(folder, notebook)
    assert check_command.main([path, "--json", "--course", str(tmp_path)]) == 1
    said = capsys.readouterr()
    first, second = json.loads(said.out)["problems"][:2]
    assert "past the end" in first["message"]
    assert "Not written yet: the answer cell" in second["message"]
    assert "the course's own cells cuda-fits were edited" in said.err


def test_locked_cells_come_from_the_release():
    given = sample_release()
    locked = [cell.source for cell in given.cells if score.is_locked(cell)]
    submitted = sample_release()
    del submitted.cells[:8]
    for cell in submitted.cells:
        cell.source = "edited"
    submitted.cells.insert(3, nbformat.v4.new_code_cell("mine"))
    assembled = score.assemble(submitted, given)
    assert [cell.source for cell in assembled.cells if score.is_locked(cell)] == locked
    assert len(locked) == 14
    assert sum(cell.source == "mine" for cell in assembled.cells) == 1
    assert submitted.cells[0].source == "edited"  # the argument is left alone


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.ipynb", None, "gone.ipynb does not exist"),
        ("notes.txt", "text", "its name does not end in .ipynb"),
        ("empty.ipynb", "", "is not a Jupyter notebook"),
        ("text.ipynb", "This is text.", "is not a Jupyter notebook"),
        ("list.ipynb", "[1, 2]", "is not a Jupyter notebook"),
        ("object.ipynb", '{"a": 1}', "is not a Jupyter notebook"),
        ("binary.ipynb", b"\x80\x81\x82", "is not a Jupyter notebook"),
        ("plain.ipynb", nbformat.writes(nbformat.v4.new_notebook()), "has no graded cells"),
    ],
)
def test_bad_input(tmp_path, capsys, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert check_command.main([str(tmp_path / name)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err


def test_folder_without_a_notebook_or_with_two(tmp_path, capsys):
    assert check_command.main([str(tmp_path)]) == 2
    assert "should hold one notebook, found: none" in capsys.readouterr().err
    for name in ("a.ipynb", "b.ipynb"):
        write(tmp_path, nbformat.v4.new_notebook(), name)
    assert check_command.main([str(tmp_path)]) == 2
    assert "found: a.ipynb, b.ipynb" in capsys.readouterr().err


def test_notebook_of_another_course(tmp_path, capsys):
    notebook = sample_source()
    for cell in notebook.cells:
        if score.cell_id(cell):
            cell.metadata.nbgrader.grade_id = f"other-{cell.id}"
        cell.source, cell.id = f"# another {cell.id}", f"other-{cell.id}"
    assert check_command.main([write(tmp_path, notebook), *HERE]) == 2
    assert f"is not an exercise of this course. Give the notebook of one ({SAMPLE})" in capsys.readouterr().err
