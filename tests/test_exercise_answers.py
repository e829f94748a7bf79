"""Tables of answers to exercises: what does not fit is refused with the file, the entry and what is wrong."""

import re

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.support.exercise_answers import answers_and_tests, cells_by_id, read_answers, source_notebook
from warpcourse.paths import COURSE

MARKS = {"nbgrader": {"grade_id": "double", "solution": True, "grade": False}}
CELL = "### BEGIN SOLUTION\ny = x + x\n### END SOLUTION\n"
NAMED = "[[wrong]]\nname = 'a'\n"
LOST = f"{NAMED}loses = ['t']\n"
WRONG = f"{LOST}reason = 'r'\n"


def read(tmp_path, text: str, problem: str = "double"):
    (tmp_path / f"{problem}.toml").write_text(text)
    return read_answers(tmp_path, new_notebook(cells=[new_code_cell(CELL, metadata=MARKS)]))


def test_an_entry_is_read(tmp_path):
    (answer,) = read(tmp_path, f"{WRONG}replace = [['x + x', 'x']]")
    assert (answer.id, answer.cell, answer.loses, answer.reason) == ("double/a", "y = x\n", {"t"}, "r")


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("[[wrong]]\nloses = ['t']\nreason = 'r'\nanswer = 'x'", "without a name: lacks, or has too much: name"),
        (WRONG, "a: has to have either"),
        (f"{WRONG}answer = 'x'\nreplace = [['x + x', 'x']]", "a: has to have either"),
        (f"{WRONG}replace = ['x + x', 'x']", "a: `replace` is no list of pairs"),
        (f"{WRONG}replace = []", "a: `replace` is no list of pairs"),
        (f"{WRONG}replace = [['z', 'x']]", "a: stands 0 times"),
        (f"{WRONG}replace = [['x', 'z']]", "a: stands 2 times"),
        (f"{WRONG}answer = 'x'\nthorough = 'no'", "a: `thorough` is no bool"),
        (f"{WRONG}answer = 'x'\nothers = 1", "a: lacks, or has too much: others"),
        (f"{NAMED}loses = 't'\nreason = 'r'\nanswer = 'x'", "a: `loses` is no list"),
        (f"{LOST}reason = '.'\nanswer = 'x'", "a: `reason` matches any message"),
        ("[[wrnog]]\nname = 'a'", r"double\.toml: has more than"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, text, refused):
    with pytest.raises(AssertionError, match=refused):
        read(tmp_path, text)


def test_a_table_of_no_problem_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="the exercise has no cell treble"):
        read(tmp_path, f"{WRONG}answer = 'x'", "treble")


@pytest.mark.parametrize("topic", sorted(path.stem for path in (COURSE / "solutions").glob("*/*.ipynb")))
def test_a_mean_per_request_is_limited_in_all_too(topic):
    """Lanes that take turns make more requests, which lowers their mean."""
    notebook = source_notebook(topic)
    cells = cells_by_id(notebook)
    for problem, tests in answers_and_tests(notebook).items():
        text = "".join(cells[test].source for test in tests)
        if '"sectors_per_' in text:
            assert re.search('"global_(load|store)_(requests|sectors)"', text), problem
