"""The judge on KernelBench's tasks: the record and its page; one task is judged anew."""

from __future__ import annotations

import json

import pytest

from evidence.kernelbench import run as kernelbench
from evidence.kernelbench.tasks import PROBLEMS

RECORD = json.loads(kernelbench.RECORD.read_text(encoding="utf-8"))


def test_the_page_is_up_to_date():
    page = kernelbench.PAGE.read_text(encoding="utf-8")
    assert page == kernelbench.page(RECORD), "run: python -m evidence.kernelbench.run --page"


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.number)
def test_the_record_is_of_the_answers_that_there_are(problem):
    kept = RECORD["problems"][problem.file]
    answers = [answer.name for answer in kernelbench.answers(problem)]
    assert [*kept["answers"]] == answers
    assert len(answers) == 6
    assert [name for name, one in kept["answers"].items() if not one["expected"]] == []
    assert [name for name, one in kept["answers"].items() if one["right"]] == [kernelbench.RIGHT]
    assert kept["reference"]["apart"] == ""


def test_a_task_is_judged_as_recorded():
    (problem,) = (problem for problem in PROBLEMS if problem.number == "19")
    kept = RECORD["problems"][problem.file]["answers"]
    for answer in kernelbench.answers(problem):
        found = kernelbench.run(problem, answer)
        assert (found["right"], found["reason"]) == (kept[answer.name]["right"], kept[answer.name]["reason"])


def test_another_reason_than_the_expected_one_is_told(monkeypatch, tmp_path, capsys):
    (problem,) = (problem for problem in PROBLEMS if problem.number == "19")
    unlike = kernelbench.Answer("unlike", ".cu", "", "what nobody says")
    monkeypatch.setattr(kernelbench, "answers", lambda _: iter([unlike]))
    monkeypatch.setattr(kernelbench, "RECORD", tmp_path / "results.json")
    monkeypatch.setattr(kernelbench, "page", lambda _: "")
    monkeypatch.setattr(kernelbench, "PAGE", tmp_path / "README.md")
    assert kernelbench.main(["--only", problem.number]) == 1
    assert "not as expected: unlike" in capsys.readouterr().out
