"""Which notebook a learner means, and the check from a cell."""

import re
import subprocess
import sys

import nbformat
import pytest
from nbgrader.utils import is_solution

from warpcourse.desk import check_cell, copies, own_exercise
from warpcourse.desk.course_order import shipped
from warpcourse.paths import COURSE

FIRST = next(iter(own_exercise.exercises()), None)
if FIRST is None:
    pytest.skip("the course has no lab with an exercise", allow_module_level=True)
NUMBER, NAME = FIRST.number, FIRST.path.stem
SHIPPED = (COURSE / FIRST.path).parent


@pytest.fixture
def copied(mine):
    copies.refresh()
    return mine / FIRST.own


@pytest.mark.parametrize("argument", [NUMBER, NUMBER.lstrip("0"), NAME])
def test_a_number_is_the_learners_copy(copied, argument, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert own_exercise.meant(argument) == copied


def test_without_a_copy_a_number_is_the_courses(mine, capsys):
    """And where the copy would be, and what lays it there, is said."""
    assert own_exercise.meant(NUMBER) == COURSE / FIRST.path
    said = capsys.readouterr().err
    assert f"There is no {mine / FIRST.own} yet (make lab lays it there)" in said
    assert f"exercise_{NAME}.ipynb" in said


def test_the_courses_folder_is_the_copy_unless_somebody_wrote_into_it(copied, capsys, tmp_path, monkeypatch):
    assert own_exercise.meant(str(SHIPPED)) == copied
    assert f"Checking your copy, {copied}." in capsys.readouterr().err
    # A course whose own notebook has an answer, from before there were copies.
    folder = tmp_path / "course" / "exercises" / NAME
    folder.mkdir(parents=True)
    notebook = nbformat.read(COURSE / FIRST.path, as_version=4)
    next(cell for cell in notebook.cells if is_solution(cell)).source = "mine"
    nbformat.write(notebook, folder / f"{NAME}.ipynb")
    monkeypatch.setattr(own_exercise, "COURSE", tmp_path / "course")
    assert own_exercise.meant(str(folder)) == folder


def test_other_paths_are_themselves(copied, tmp_path):
    for path in (copied, copied.parent, tmp_path / "nothing.ipynb", tmp_path):
        assert own_exercise.meant(str(path)) == path


def test_the_cell_shows_the_same_report(copied, capsys):
    check_cell.check(NUMBER)
    out = capsys.readouterr().out
    assert f"Checking exercise_{NAME}.ipynb as it was saved at " in out
    assert re.search(r"total +0 / \d\d\n", out)
    assert "Not written yet: the answer cell" in out


def test_the_cell_does_nothing_while_the_notebook_is_run_by_a_program(copied, capsys, monkeypatch):
    monkeypatch.setattr(check_cell, "_a_person_runs_this", lambda: False)
    monkeypatch.setattr(check_cell.subprocess, "Popen", None)
    check_cell.check(NUMBER)
    assert capsys.readouterr().out == "Run this cell by itself to see your points.\n"


def test_the_cell_in_a_notebook_that_a_program_runs(copied):
    """What tells the two apart: a program cannot be asked anything, so the check does not start itself again."""
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(f'from warplab import check\n\ncheck("{NUMBER}")')]
    )
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(COURSE)}}).execute()
    assert "".join(o.text for o in notebook.cells[0].outputs) == "Run this cell by itself to see your points.\n"


def test_a_number_without_an_exercise_is_named(copied, capsys):
    assert own_exercise.main(["77"]) == 2
    assert f"error: there is no exercise 77; give one of {NAME}" in capsys.readouterr().err
    for lesson in {one.number for one in shipped()} - {one.number for one in own_exercise.exercises()}:
        assert own_exercise.main([lesson]) == 2
        assert f"no exercise {lesson}: lab {lesson} has a lesson only; give one of" in capsys.readouterr().err


@pytest.mark.skipif(not (COURSE / ".venv/bin/python").exists(), reason="the course has no Python of its own here")
def test_a_python_without_the_packages_hands_over_to_the_courses():
    command = [sys.executable, "-S", "-m", "warplab", "check", "77"]
    done = subprocess.run(command, cwd=COURSE, capture_output=True, text=True)
    assert (done.returncode, done.stderr.partition(";")[0]) == (2, "error: there is no exercise 77")


def test_an_exercise_that_is_not_there_is_named(copied):
    with pytest.raises(ValueError, match="there is no exercise 77; give one of "):
        check_cell.check("77")


SEVERAL = sorted({one.number for one in own_exercise.exercises() if len(own_exercise.names(one.number)) > 1})


@pytest.mark.skipif(not SEVERAL, reason="no lab has several exercises")
def test_the_number_of_a_lab_with_several_exercises_stands_for_all(mine, monkeypatch):
    copies.refresh()
    checked = []
    monkeypatch.setattr(own_exercise.check_command, "main", lambda given: checked.append(given) or len(checked) % 3)
    wanted = [one for one in own_exercise.exercises() if one.number == SEVERAL[0]]
    assert own_exercise.main(["--json", SEVERAL[0]]) == 2
    assert checked == [["--json", str(mine / one.own)] for one in wanted]
    checked.clear()
    own_exercise.main([wanted[1].path.stem])
    assert checked == [[str(mine / wanted[1].own)]]
