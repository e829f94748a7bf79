"""`python -m warplab grade`: bad use, the summary, the table, the feedback pages. Nothing is executed here."""

from __future__ import annotations

import csv
import math
import sys
from datetime import datetime

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbgrader.converters import Autograde
from nbgrader.preprocessors import DeduplicateIds, OverwriteCells
from traitlets.utils.importstring import import_item

from tests.support.class_harness import CANARY, RIGHT, TINY, answered, hand_in, tiny_cell, tiny_course, tiny_source
from tests.support.exercise_answers import cells_by_id
from warpcourse.grading.course import feedback, feedback_page, grade_command, summary, workers
from warpcourse.grading.course.autograde import OverwriteTests, RestoreNames
from warpcourse.grading.course.gradebook import Book, Standing
from warpcourse.grading.course.ledger import Ledger, records
from warpcourse.grading.course.nbgrader_course import Course
from warpcourse.grading.judge import judge
from warpcourse.grading.judge.hidden_tests import without_hidden_tests
from warpcourse.grading.sandbox.isolation import SWITCH, LimitsOnly
from warpcourse.grading.sandbox.preflight import Finding
from warpcourse.processes.child import Child
from warplab.__main__ import main


@pytest.fixture
def course(tmp_path):
    root = tiny_course(tmp_path)
    hand_in(root, "ada", answered(root, RIGHT))
    return root


def refused(capsys, course, *arguments: str) -> str:
    assert main(["grade", *arguments, "--course", str(course)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("error: ") or "error: " in said.err
    return said.err


def test_bad_use_is_named(course, capsys, tmp_path):
    assert f"choose one of this course: {TINY}" in refused(capsys, course, "99_nothing")
    assert "no submission of 'eve'" in refused(capsys, course, TINY, "--student", "eve")
    assert "holds no nbgrader_config.py" in refused(capsys, tmp_path / "grading", TINY)
    with Ledger(course / "grading" / "ledger"):
        assert "another grading of this course is running" in refused(capsys, course, TINY)
    (course / "grading" / "secret").write_text("\n")
    assert "is empty" in refused(capsys, course, TINY)
    with pytest.raises(SystemExit):
        main(["grade", TINY, "--workers", "0"])
    assert "must be 1 or more" in capsys.readouterr().err


def test_a_cluster_without_dask_is_refused_and_the_command_that_installs_it_named(course, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "distributed"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not installed
    said = refused(capsys, course, TINY, "--scheduler", "tcp://127.0.0.1:9").splitlines()[-1]
    assert said.startswith("error: grading on a cluster needs distributed, which is not installed; run `make setup-clu")
    assert "pip install -r requirements-cluster.txt" in said
    assert not list(records(course / "grading" / "ledger"))  # nothing was graded, nothing counts as tried


def test_progress_tells_how_much_is_left(capsys, monkeypatch):
    monkeypatch.setattr(grade_command.ProgressLine, "EVERY", 0.0)
    progress = grade_command.ProgressLine(3)
    progress.started -= 100  # the first submission took that long
    for status in ("graded", "infra_error", "timeout"):
        progress({"status": status})
    progress.end()
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "1/3 graded, about 3 min 20 s left",
        "2/3 graded, about 0 min 50 s left, the grader failed on 1",
        "3/3 graded, done, the grader failed on 1",
    ]


@pytest.mark.parametrize("given", [TINY, f"exercises/{TINY}", f"exercises/{TINY}/", f"{TINY}/{TINY}.ipynb"])
def test_an_assignment_is_named_by_its_folder_too(tmp_path, capsys, monkeypatch, given):
    assert "nothing has been handed in" in refused(capsys, tiny_course(tmp_path), given)
    folder = tmp_path / "exercises" / TINY
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert "nothing has been handed in" in refused(capsys, tmp_path, ".")


def test_an_assignment_without_submissions_is_named(tmp_path, capsys):
    assert "nothing has been handed in" in refused(capsys, tiny_course(tmp_path), TINY)


@pytest.fixture
def looked(monkeypatch):
    """Let the first judge say what its `look` would; it is not started."""

    def say(sandbox, findings=()):
        monkeypatch.setattr(judge, "find", lambda: sandbox)
        monkeypatch.setattr(judge, "preflight", lambda sandbox: list(findings))
        monkeypatch.setattr(workers.JudgeProcess, "look", lambda self: judge.Judge().look())

    return say


def test_the_secret_is_drawn_once_and_for_its_owner_only(course, capsys, monkeypatch, looked):
    monkeypatch.delenv("WARPLAB_GRADING_SEED", raising=False)
    looked(LimitsOnly("a test"))
    for _ in range(2):
        refused(capsys, course, TINY, "--require-sandbox")
        secret = course / "grading" / "secret"
        assert len(secret.read_text().strip()) == 64
        assert secret.stat().st_mode & 0o777 == 0o600
        before = secret.read_text()
    assert secret.read_text() == before


def test_without_a_sandbox_it_refuses_or_warns_aloud(course, capsys, looked):
    looked(LimitsOnly("bubblewrap is not installed"))
    told = refused(capsys, course, TINY, "--require-sandbox")
    assert "bubblewrap is not installed" in told
    arguments = grade_command._parser().parse_args([TINY])
    grade_command._executor(arguments, 1)
    told = capsys.readouterr().err
    assert "*** WARNING ***" in told
    assert "NOT SANDBOXED" in told


def test_a_sandbox_that_leaks_is_none(course, capsys, looked):
    class Leaky(LimitsOnly):
        kind = "bubblewrap"

    looked(Leaky("a test"), [Finding("no network", False, "reached a socket outside"), Finding("a user", True, "yes")])
    told = refused(capsys, course, TINY, "--require-sandbox")
    assert "reached a socket outside" in told
    assert "a user" not in told


def test_the_process_that_grades_decides_whether_there_is_a_sandbox(course, capsys, monkeypatch):
    """Not the command's, in whose environment bubblewrap may work when it does not in a judge's."""
    monkeypatch.setattr(workers, "Child", lambda command, more: Child(command, {**more, SWITCH: "limits"}))
    told = refused(capsys, course, TINY, "--require-sandbox")
    assert "WARPLAB_SANDBOX=limits switches bubblewrap off" in told


def standing(student: str, *points: float, late: float = 0.0, penalty: float = 0.0) -> Standing:
    scores = {"test-one": (points[0], 1.0), "test-two": (points[1], 2.0)}
    return Standing(student, scores, {}, penalty, late, datetime(2026, 1, 2, 12, 30) if late else None)


def record(status: str = "graded", reason: str = "", notes: tuple[str, ...] = (), kind="", **failures: str) -> dict:
    named = {name.replace("_", "-"): text for name, text in failures.items()}
    more = {"sandbox": "bubblewrap" if status == "graded" else "", "kinds": dict.fromkeys(named, kind)}
    return {"status": status, "reason": reason, "notes": list(notes), "failures": named, **more}


RECORDS = {
    "ada": record(),
    "bob": record(kind="wrong result", test_two="double(10) is 10, expected 20"),
    "cem": record(kind="wrong result", test_one="double(2) is 2", test_two="double(10) is 10, expected 20"),
    "dan": record("timeout", "A cell did not end.", test_one="too late", test_two="too late"),
    "=eve": record("infra_error", "=the grader broke"),
}
STANDINGS = {
    "ada": standing("ada", 1, 0, late=5000, penalty=0.5),
    "bob": standing("bob", 1, 0),
    "cem": standing("cem", 1, 0),
    "dan": standing("dan", 1, 0),
}
STANDINGS["dan"].needs_manual_grade = True


def test_the_summary_tells_points_failures_statuses_and_lateness():
    text = summary.text(TINY, tiny_source(), RECORDS, STANDINGS, ["fay"])
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[:3] == [
        f"{TINY}: 5 submissions",
        "3 graded, 1 timeout, 1 infra_error",
        "points: mean 0.9, median 1, of 3",
    ]
    assert "1. Double 1.00 3 0% 0%" in lines
    assert "solved by nobody: test-two" in lines
    assert "solved by everybody: test-one" in lines
    at = lines.index("most common failures, by number of students")
    assert lines[at + 1 : at + 4] == [
        "2 in 1. Double: the result is wrong (double(10) is 10, expected 20)",
        "1 in the whole notebook: timeout (A cell did not end.)",
        "",
    ]
    assert "dan: timeout. A cell did not end." in lines
    assert "to be graded by hand (nbgrader formgrader): dan" in lines
    assert "due" not in text
    assert "ada: late by 1 h 23 min, penalty 0.5" in lines
    assert "nothing handed in: fay" in lines


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, "1 s"),
        (42.0, "42 s"),
        (59.5, "1 min"),
        (60.0, "1 min"),
        (3599.0, "59 min"),
        (5000.0, "1 h 23 min"),
        (200_000.0, "2 d 7 h"),
        (1_234_567.5, "14 d 6 h"),
    ],
)
def test_who_is_late_is_never_late_by_nothing(tmp_path, seconds, told):
    late, records = {"ada": standing("ada", 1, 0, late=seconds)}, {"ada": RECORDS["ada"]}
    assert f"ada: late by {told}\n" in summary.text(TINY, tiny_source(), records, late, []) + "\n"
    summary.write_csv(tmp_path / "class.csv", tiny_source(), records, late)
    with open(tmp_path / "class.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["seconds_late"] == str(math.ceil(seconds))


def test_the_commonest_failures_are_ten():
    records = {
        f"student{number:02}": record(test_one=f"{number % 11} is wrong", test_two=f"{number % 12} is wrong")
        for number in range(30)
    }
    standings = {name: standing(name, 0, 0) for name in records}
    lines = summary.text(TINY, tiny_source(), records, standings, []).splitlines()
    at = lines.index("  most common failures, by number of students")
    shown = dict(reversed(line.split(None, 1)) for line in lines[at + 1 : at + 1 + summary.COMMONEST])
    students = {m: len({n for n in range(30) if m in (n % 11, n % 12)}) for m in range(12)}
    commonest = sorted(students, key=lambda m: -students[m])
    assert {int(text.split()[3]): int(count) for text, count in shown.items()} == {
        m: students[m] for m in commonest[: summary.COMMONEST]
    }
    assert lines[at + 1 + summary.COMMONEST] == "        and 2 more, each of at most 3 students"


def test_a_due_date_without_a_time_of_handing_in_is_mentioned():
    due = datetime(2026, 1, 2, 12)
    told = "  due 2026-01-02 12:00:00 UTC; never late, for lack of a timestamp.txt from nbgrader: "
    assert f"{told}bob, cem, dan (" in summary.text(TINY, tiny_source(), RECORDS, STANDINGS, [], due)
    undated = {name: STANDINGS[name] for name in ("bob", "cem")}
    records = {name: RECORDS[name] for name in undated}
    assert f"{told}all (" in summary.text(TINY, tiny_source(), records, undated, [], due)
    dated = {"ada": STANDINGS["ada"]}
    assert "due" not in summary.text(TINY, tiny_source(), {"ada": RECORDS["ada"]}, dated, [], due)


def test_the_table_has_a_row_a_student_and_no_formula(tmp_path):
    summary.write_csv(tmp_path / "class.csv", tiny_source(), RECORDS, STANDINGS)
    with open(tmp_path / "class.csv", newline="", encoding="utf-8") as file:
        rows = {row.pop("student"): row for row in csv.DictReader(file)}
    assert list(rows) == ["'=eve", "ada", "bob", "cem", "dan"]
    assert rows["ada"] == {
        "status": "graded",
        "points": "0.5",
        "possible": "3",
        "late_penalty": "0.5",
        "seconds_late": "5000",
        "handed_in": "2026-01-02 12:30:00",
        "needs_hand_grading": "no",
        "sandbox": "bubblewrap",
        "reason": "",
        "test-one": "1",
        "test-two": "0",
    }
    assert rows["dan"]["needs_hand_grading"] == "yes"
    assert rows["'=eve"]["reason"] == "'=the grader broke"
    assert rows["'=eve"]["points"] == rows["'=eve"]["test-one"] == ""


def test_hidden_lines_are_taken_out_of_what_a_test_printed():
    notebook = tiny_source()
    cell = cells_by_id(notebook)["test-one"]
    trace = [f"----> 4 {CANARY} = 21", "AssertionError", "assert double(2) == 4"]
    cell.outputs = [
        nbformat.v4.new_output("error", ename="AssertionError", evalue=f"{CANARY} = 21\nis wrong", traceback=trace),
        nbformat.v4.new_output("display_data", data={"text/plain": f"x\n    assert double({CANARY}) == 42"}),
    ]
    mine = nbformat.v4.new_code_cell("### BEGIN HIDDEN TESTS\nmine = 1")  # a student's own cell, without an end
    notebook.cells.append(mine)
    shown, _ = feedback_page.HideHiddenTests()(notebook, {})
    assert CANARY not in nbformat.writes(shown)
    cell = cells_by_id(shown)["test-one"]
    assert cell.source == "assert double(2) == 4"
    assert cell.outputs[0].evalue == "is wrong"
    assert cell.outputs[0].traceback == ["", "AssertionError", "assert double(2) == 4"]
    assert shown.cells[-1].source == mine.source


@pytest.mark.parametrize("preprocessor", [OverwriteTests, OverwriteCells])
def test_nbgrader_warns_of_edited_tests_and_not_of_those_whose_hidden_part_is_put_back(
    course, monkeypatch, preprocessor
):
    opened = Course(course)
    Book(opened, opened.assignment(TINY)).close()
    reported = []
    monkeypatch.setattr(OverwriteCells, "report_change", lambda self, name, *rest: reported.append(name))
    notebook = answered(course, RIGHT)
    cells_by_id(notebook)["test-two"].source = "pass"
    resources = {"nbgrader": {"notebook": TINY, "assignment": TINY, "db_url": opened.db_url}}
    notebook, _ = preprocessor()(notebook, resources)
    assert reported == (["test-two"] if preprocessor is OverwriteTests else ["test-one", "test-two"])
    for name in ("test-one", "test-two"):
        assert CANARY in cells_by_id(notebook)[name].source
    names = opened.config.Autograde.sanitize_preprocessors
    swapped = f"{OverwriteTests.__module__}.OverwriteTests"
    restoring = f"{RestoreNames.__module__}.RestoreNames"
    ours = [OverwriteTests if name == swapped else import_item(name) for name in names if name != restoring]
    assert [OverwriteCells if item is OverwriteTests else item for item in ours] == Autograde().sanitize_preprocessors


def test_nbgrader_is_given_the_names_that_cells_have_lost(course, caplog):
    opened = Course(course)
    notebook = answered(course, RIGHT)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        del cell["id"]
    names = [import_item(name) for name in opened.config.Autograde.sanitize_preprocessors]
    assert names.index(RestoreNames) < min(names.index(other) for other in (DeduplicateIds, OverwriteTests))
    resources = {"nbgrader": {"notebook": TINY, "assignment": TINY, "db_url": opened.db_url}}
    restored, _ = RestoreNames(config=opened.config)(notebook, resources)
    assert {name: cell.source for name, cell in cells_by_id(restored).items()} == {
        name: cell.source for name, cell in cells_by_id(answered(course, RIGHT)).items()
    }
    assert "lost the names that nbgrader gives to cells" in caplog.text
    resources["nbgrader"]["assignment"] = "not of this course"
    assert RestoreNames(config=opened.config)(tiny_source(), resources)[0] == tiny_source()


@pytest.mark.parametrize(
    ("source", "without"),
    [
        ("a\n### BEGIN HIDDEN TESTS\nb\n### END HIDDEN TESTS\nc", "a\nc"),
        ("a\n### BEGIN HIDDEN TESTS\nb", "a"),
        ("a\n### END HIDDEN TESTS\nb", "a\nb"),
        ("no marks", "no marks"),
    ],
)
def test_hidden_regions(source, without):
    assert without_hidden_tests(source) == without


def test_a_page_lists_tests_by_their_names(course):
    notebook = answered(course, RIGHT)
    cells = cells_by_id(notebook)
    cells["test-one"].source = "# 1 point: two <b>twice</b>.\nassert double(2) == 4"
    cells["test-two"].source = f"### BEGIN HIDDEN TESTS\n# {CANARY}\n### END HIDDEN TESTS\nassert double(2) == 4"
    notebook.cells.append(tiny_cell("essay", "# mine", 1, grade=True, solution=True))
    (course / "page.ipynb").write_text(nbformat.writes(notebook))
    page = feedback.Page("ada", TINY, course / "page.ipynb", course / "page.html", standing("ada", 1, 0))
    page.standing.scores["essay"] = (0.0, 1.0)
    page.standing.comments.update(double="Twice.", essay=None)
    given = (str(course), page.student, page.assignment, str(page.notebook), page.shown())
    shown = BeautifulSoup(feedback_page.render(*given), features="html.parser")
    assert shown.find("meta", {"name": "viewport"})  # a phone would show it 980 pixels wide
    toc = shown.find(id="toc")
    assert [" ".join(item.text.split()) for item in toc.find_all("li")] == [
        "Comment on double",
        "test-one: two <b>twice</b> (Score: 1.0 / 1.0)",
        "test-two (Score: 0.0 / 2.0)",
        "Coding free-response: essay (Score: 0.0 / 1.0)",
    ]
    assert [item.get("class") for item in toc.find_all("li")] == [None, ["all"], ["none"], ["none"]]
    assert [link["href"] for link in toc.find_all("a")] == ["#comment-double", "#test-one", "#test-two", "#essay"]


@pytest.mark.parametrize("answer", [RIGHT, "from IPython.display import Image"])
def test_pages_are_nbgraders_own(course, monkeypatch, answer):
    """The way around nbconvert's second parsing gives the same page; one with images takes the whole way."""
    notebook = answered(course, answer)
    picture = nbformat.v4.new_output("display_data", data={"image/png": "iVBORw0KGgo="})
    notebook.cells.append(tiny_cell("own", "show()"))
    notebook.cells[-1].metadata.pop("nbgrader")
    notebook.cells[-1].outputs = [picture] if "Image" in answer else []
    (course / "page.ipynb").write_text(nbformat.writes(notebook))
    page = feedback.Page("ada", TINY, course / "page.ipynb", course / "page.html", standing("ada", 1, 0))
    page.standing.comments["double"] = "Well done."
    given = (str(course), page.student, page.assignment, str(page.notebook), page.shown())
    ours = feedback_page.render(*given)
    assert "Well done." in ours
    assert ("<img" in ours) == ("Image" in answer)
    assert ours.index("Content-Security-Policy") < ours.index("<style")
    assert "<script" not in ours
    monkeypatch.setattr(feedback_page, "_may_have_images", lambda notebook: True)
    whole = feedback_page.render(*given)
    assert BeautifulSoup(ours, features="html.parser") == BeautifulSoup(whole, features="html.parser")
