"""What is done and what is next, from what was kept."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from tests.warpcourse.desk.conftest import lesson, ship
from warpcourse.desk import copies, lab_command, progress_page
from warpcourse.desk.progress import next_step, steps
from warpcourse.learner import record
from warpcourse.learner.predictions import predict


@pytest.fixture
def course(course, mine):
    """The small course, with predictions and tasks in its lessons and 5 points in its exercise."""
    for number in ("01", "02"):
        code = [
            f'predict("{number}/sectors", "How many sectors?", unit="sectors")',
            f'compare("{number}/sectors", 32)',
            f'predict(\n    "{number}/faster", "Which is faster?", ["rows", "columns"]\n)',
            f'with attempt("{number}/add"):\n    pass',
        ]
        extra = [new_code_cell(source, id=f"extra-{k}") for k, source in enumerate(code)]
        ship(course, f"notebooks/{number}_topic.ipynb", lesson(number, f"Title {number}", extra=extra))
    path = course / "exercises" / "01_topic" / "01_topic.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[-1].metadata["nbgrader"] = {"points": 5}
    nbformat.write(notebook, path)
    return course


@pytest.fixture
def clock(monkeypatch):
    """Each thing that is kept is a minute later than the one before."""
    minutes = iter(range(60))
    keep = record.keep

    def later(section, key, fields):
        problem = keep(section, key, fields)
        entries = record.read()
        entries[section][key]["at"] = f"2026-11-22T17:{next(minutes):02}:00+00:00"
        record._write(record.path(), entries)
        return problem

    monkeypatch.setattr(record, "keep", later)


def do_all_of(number):
    for name in ("sectors", "faster"):
        record.keep("predictions", f"{number}/{name}", {"answer": 4.0})
    record.keep("tasks", f"{number}/add", {"done": True})


def test_at_first_nothing_is_done_and_the_first_lesson_is_next(course):
    found = steps(course)
    assert [(str(step.notebook.own), step.predictions, step.tasks, step.possible) for step in found] == [
        ("notebooks/01_topic.ipynb", 2, 1, 0),
        ("exercises/01_topic/exercise_01_topic.ipynb", 0, 0, 5),
        ("notebooks/02_topic.ipynb", 2, 1, 0),
    ]
    assert next_step(found) is found[0]
    assert found[0].open == "2 predictions (sectors, faster) and 1 task (add)"


def test_what_is_done_counts_and_the_next_one_follows(course, clock):
    do_all_of("01")
    found = steps(course)
    assert found[0].is_done
    assert next_step(found) is found[1]
    record.keep("exercises", "01_topic", {"problems": {"1. A": [2.0, 5.0]}})
    found = steps(course)
    assert next_step(found) is found[1]
    assert found[1].open == "3 of 5 points to earn"
    record.keep("exercises", "01_topic", {"problems": {"1. A": [5.0, 5.0]}})
    found = steps(course)
    assert next_step(found) is found[2]
    do_all_of("02")
    assert next_step(steps(course)) is None
    assert "All is done." in str(progress_page.Progress(steps(course), course))


def test_what_was_left_out_holds_nobody_up_until_the_end(course, clock):
    record.keep("tasks", "01/add", {"done": True})
    record.keep("exercises", "01_topic", {"problems": {"1. A": [5.0, 5.0]}})
    assert next_step(steps(course)).notebook.own.name == "02_topic.ipynb"
    do_all_of("02")
    assert next_step(steps(course)).notebook.own.name == "01_topic.ipynb"


def test_a_check_of_what_is_not_written_yet_leads_nobody_away(course, clock):
    record.keep("tasks", "01/add", {"done": True})
    record.keep("exercises", "01_topic", {"problems": {"1. A": [0.0, 5.0]}})
    assert next_step(steps(course)).notebook.own.name == "01_topic.ipynb"


@pytest.mark.parametrize(("asked", "opened"), [("", "01"), ("02", "02"), ("2", "02"), ("03 02", "02"), ("all", "01")])
def test_the_lab_that_was_asked_for_opens(course, monkeypatch, asked, opened):
    monkeypatch.setenv("LABS", asked)
    monkeypatch.setattr(lab_command, "steps", lambda: steps(course))
    assert f"--LabApp.default_url=/lab/tree/notebooks/{opened}_topic.ipynb" in lab_command.options()


def test_a_result_is_shown_only_to_who_predicted_and_saw_it(course):
    record.keep("predictions", "01/sectors", {"answer": 4.0, "question": "How many sectors?", "unit": "sectors"})
    record.keep("predictions", "01/faster", {"seen": "columns"})
    (made,) = steps(course)[0].made
    assert (made.question, made.predicted, made.result) == ("How many sectors?", "4 sectors", "")
    record.keep("predictions", "01/sectors", {"seen": 32.0})
    (made,) = steps(course)[0].made
    assert made.result == "32 sectors"
    page = progress_page.Progress(steps(course), course)._repr_html_()
    assert "32 sectors" in page
    assert "columns" not in page


def test_predictions_that_are_asked_in_a_loop_count(course, capsys):
    """Their keys stand in the saved output, as `predict` writes it."""
    predict("02/stride-3", "How many?")
    predict("02/stride-8", "Which?", ["few", "many"])
    source = 'for stride in (3, 8):\n    predict(f"02/stride-{stride}", "How many?")'
    output = nbformat.v4.new_output("display_data", {"text/plain": capsys.readouterr().out})
    loop = new_code_cell(source, id="loop", outputs=[output])
    ship(course, "notebooks/02_topic.ipynb", lesson("02", "Title 02", extra=[loop]))
    assert steps(course)[2].open_predictions == ("stride-3", "stride-8")


def test_predictions_and_tasks_of_another_version_do_not_count(course):
    record.keep("tasks", "01/gone", {"done": True})
    record.keep("exercises", "01_topic", {"problems": {"old": [50, 50], "odd": "text"}})
    found = steps(course)
    assert (found[0].tasks, found[0].open_tasks) == (1, ("add",))
    assert (found[1].points, found[1].possible) == (5, 5)


def test_the_page_lies_in_the_learners_folder_and_is_brought_up_to_date(course, mine):
    copies.refresh(course)
    page = nbformat.read(mine / "progress.ipynb", as_version=4)
    shown = page.cells[1].outputs[0].data
    assert '<a href="notebooks/01_topic.ipynb"' in shown["text/html"]
    assert "0 of 2" in shown["text/html"]
    assert "0 of 2" in shown["text/plain"]
    record.keep("predictions", "01/sectors", {"answer": 4.0})
    copies.refresh(course)
    page = nbformat.read(mine / "progress.ipynb", as_version=4)
    assert "1 of 2" in page.cells[1].outputs[0].data["text/html"]


def test_a_page_that_the_learner_made_something_else_stays(course, mine):
    copies.refresh(course)
    path = mine / "progress.ipynb"
    page = nbformat.read(path, as_version=4)
    page.cells[0].source = "My diary"
    nbformat.write(page, path)
    before = path.read_bytes()
    copies.refresh(course)
    assert path.read_bytes() == before


def test_links_start_where_the_notebook_is(course, mine, monkeypatch):
    copies.refresh(course)
    monkeypatch.chdir(mine / "notebooks")
    monkeypatch.setattr(progress_page, "steps", lambda: steps(course))
    page = progress_page.progress()._repr_html_()
    assert '<a href="01_topic.ipynb"' in page
    assert '<a href="../exercises/01_topic/exercise_01_topic.ipynb"' in page


def test_the_command_prints_the_table(mine, capsys):
    assert progress_page.main([]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["predictions", "tasks", "points"]
    assert "\nNext: " in out
