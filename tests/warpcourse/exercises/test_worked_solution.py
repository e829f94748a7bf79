"""After full marks: the worked solution in the learner's folder, without tests, and the points kept."""

import nbformat
import pytest

from tests.support.sample import SAMPLE, SAMPLE_COURSE, sample_release, sample_source
from warpcourse.exercises import check_command, release, score, worked_solution
from warpcourse.learner import record
from warpcourse.paths import COURSE


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPLAB_MINE", str(tmp_path / "mine"))
    return tmp_path / "mine"


@pytest.mark.parametrize("topic", release.topics())
def test_a_worked_solution_has_the_answers_and_no_test(mine, topic):
    path = worked_solution.write(topic)
    assert path.parent == mine / "solutions"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert not any(mark in text for mark in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS"))
    source = nbformat.read(COURSE / "solutions" / topic / path.name.removeprefix("solution_"), as_version=4)
    answers = [cell.id for cell in source.cells if score.is_solution(cell)]
    assert answers
    assert [cell.id for cell in notebook.cells if cell.id in answers] == answers
    assert not any("nbgrader" in cell.metadata for cell in notebook.cells)


def test_without_solutions_there_is_none(mine, tmp_path):
    assert worked_solution.write("01_topic", course=tmp_path) is None


def test_a_folder_that_cannot_be_written_stops_nothing(mine):
    mine.write_text("a file where the folder should be")
    assert worked_solution.write(SAMPLE, course=SAMPLE_COURSE) is None


@pytest.fixture
def sample_is_the_course(monkeypatch):
    monkeypatch.setattr(check_command, "COURSE", SAMPLE_COURSE)
    monkeypatch.setattr(check_command.worked_solution, "write", lambda topic: f"solution_{topic}.ipynb")


def check(tmp_path, notebook, capsys):
    nbformat.write(notebook, tmp_path / f"{SAMPLE}.ipynb")
    code = check_command.main([str(tmp_path / f"{SAMPLE}.ipynb"), "--course", str(SAMPLE_COURSE)])
    return code, capsys.readouterr().out, record.entry("exercises", SAMPLE).get("problems", {})


def test_the_best_points_are_kept_and_full_marks_show_the_solution(mine, tmp_path, capsys, sample_is_the_course):
    code, out, kept = check(tmp_path, sample_source(), capsys)
    assert code == 0
    assert f"Full marks. A worked solution to compare yours with: solution_{SAMPLE}.ipynb" in out
    assert len(kept) == 6
    assert all(points == possible for points, possible in kept.values())
    code, out, again = check(tmp_path, sample_release(), capsys)
    assert code == 1
    assert "worked solution" not in out
    assert again == kept


def test_a_notebook_of_another_course_keeps_nothing(mine, tmp_path, capsys):
    _, _, kept = check(tmp_path, sample_release(), capsys)
    assert kept == {}
