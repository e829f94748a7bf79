"""Which notebook a learner means, and the check from a cell."""

import nbformat
import pytest

from warplab.desk import check_cell, copies, own_exercise
from warplab.paths import COURSE

SHIPPED = COURSE / "exercises" / "01_vector_multiply"


@pytest.fixture
def copied(mine):
    copies.refresh()
    return mine / "exercises" / "01_vector_multiply" / "exercise_01_vector_multiply.ipynb"


@pytest.mark.parametrize("argument", ["01", "1", "01_vector_multiply"])
def test_a_number_is_the_learners_copy(copied, argument, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert own_exercise.meant(argument) == copied


def test_without_a_copy_a_number_is_the_courses(mine):
    assert own_exercise.meant("01") == SHIPPED / "01_vector_multiply.ipynb"


def test_the_courses_folder_is_the_copy_unless_somebody_wrote_into_it(copied, capsys, tmp_path, monkeypatch):
    assert own_exercise.meant(str(SHIPPED)) == copied
    assert f"Checking your copy, {copied}." in capsys.readouterr().err
    # A course whose own notebook has an answer, from before there were copies.
    folder = tmp_path / "course" / "exercises" / "01_vector_multiply"
    folder.mkdir(parents=True)
    notebook = nbformat.read(SHIPPED / "01_vector_multiply.ipynb", as_version=4)
    next(cell for cell in notebook.cells if cell.id == "multiply").source = "mine"
    nbformat.write(notebook, folder / "01_vector_multiply.ipynb")
    monkeypatch.setattr(own_exercise, "COURSE", tmp_path / "course")
    assert own_exercise.meant(str(folder)) == folder


def test_other_paths_are_themselves(copied, tmp_path):
    for path in (copied, copied.parent, tmp_path / "nothing.ipynb", tmp_path):
        assert own_exercise.meant(str(path)) == path


def test_the_cell_shows_the_same_report(copied, capsys):
    check_cell.check("01")
    out = capsys.readouterr().out
    assert "Checking exercise_01_vector_multiply.ipynb as it was saved at " in out
    assert "total                         0 / 25" in out
    assert "Not written yet: the answer cell 'multiply'" in out


def test_the_cell_does_nothing_while_the_notebook_is_run_by_a_program(copied, capsys, monkeypatch):
    monkeypatch.setattr(check_cell, "_a_person_runs_this", lambda: False)
    monkeypatch.setattr(check_cell.subprocess, "Popen", None)
    check_cell.check("01")
    assert capsys.readouterr().out == "Run this cell by itself to see your points.\n"


def test_the_cell_in_a_notebook_that_a_program_runs(copied):
    """What tells the two apart: a program cannot be asked anything, so the check does not start itself again."""
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell('from warplab import check\n\ncheck("01")')])
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(COURSE)}}).execute()
    assert "".join(o.text for o in notebook.cells[0].outputs) == "Run this cell by itself to see your points.\n"


def test_an_exercise_that_is_not_there_is_named(copied):
    with pytest.raises(ValueError, match="there is no exercise '77'; give one of 01_vector_multiply"):
        check_cell.check("77")
