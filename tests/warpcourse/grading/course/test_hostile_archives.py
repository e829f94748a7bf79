"""Attacks on the way in and out: what a student hands in touches no other student's work, and nobody's spreadsheet.

Each row says what it tries; its archive holds the honest work of ada (1) and bob (2) besides.
"""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.class_harness import TINY, tiny_course
from tests.support.odd_class import NAME, zipped
from warpcourse.grading.course.nbgrader_course import Course
from warpcourse.grading.course.plain_text import on_terminal
from warpcourse.grading.course.platforms import Collected
from warplab.__main__ import main

HERE = "_assignsubmission_file_"
MOODLE = {f"Ada L_1{HERE}/{NAME}": b'"double" ada', f"Bob L_2{HERE}/{NAME}": b'"double" bob'}
FLAT = {f"Ada L_1{HERE}{NAME}": b'"double" ada', f"Bob L_2{HERE}{NAME}": b'"double" bob'}
CANVAS = {f"ada_1_101_{NAME}": b'"double" ada', f"bob_2_102_{NAME}": b'"double" bob'}
PLAIN = {f"1/{NAME}": b'"double" ada', f"2/{NAME}": b'"double" bob'}
EVIL = b'"double" evil'


@dataclass(frozen=True)
class Attack:
    """`files`: of the student 7. `collected`: of whom there is something afterwards. `told`: a part of the output."""

    name: str
    tries: str
    honest: dict[str, bytes]
    files: dict[str, bytes]
    collected: set[str] = field(default_factory=lambda: {"1", "2", "7"})
    told: str = ""


ATTACKS = [
    Attack(
        "name_with_a_number",
        "has a display name that ends as another student's folder does",
        MOODLE,
        {f"Bob L_2{HERE}_7{HERE}/{NAME}": EVIL},
    ),
    Attack(
        "name_with_a_number_beside_nothing",
        "has such a name where the other has handed in nothing",
        {f"Ada L_1{HERE}/{NAME}": b'"double" ada', f"Bob L_2{HERE}/read.me": b""},
        {f"Bob L_2{HERE}_7{HERE}/{NAME}": EVIL},
        {"1", "7"},
    ),
    Attack(
        "file_with_a_number",
        "hands in a file whose name is another student's in an archive without folders",
        FLAT,
        {f"Eve_7{HERE}Bob L_2{HERE}{NAME}": EVIL, f"Eve_7{HERE}{NAME}": EVIL},
        told=f"of nobody, and left out: Eve_7{HERE}Bob L_2{HERE}{NAME}",
    ),
    Attack(
        "name_in_a_flat_archive",
        "has a display name that ends so in an archive without folders",
        FLAT,
        {f"Bob L_2{HERE}_7{HERE}{NAME}": EVIL},
        {"1", "2"},
        told=f"of nobody, and left out: Bob L_2{HERE}_7",
    ),
    Attack(
        "folder_in_a_folder",
        "hands in a folder with another student's name, and a zip that holds one",
        MOODLE,
        {
            f"Eve_7{HERE}/Bob L_2{HERE}/{NAME}": EVIL,
            f"Eve_7{HERE}/a.zip": zipped((f"../../Bob L_2{HERE}/{NAME}", EVIL)),
        },
    ),
    Attack(
        "most_files_of_another_platform",
        "hands in so many files with Moodle's names that the class's folders seem to be Moodle's",
        PLAIN,
        {f"7/Bob L_2{HERE}{n}.ipynb": EVIL for n in range(9)},
    ),
    Attack(
        "most_files_of_moodle_in_canvas",
        "does so in an archive of Canvas, where each file has its student's name",
        CANVAS,
        {f"eve_7_{200 + n}_Bob L_2{HERE}{n}.ipynb": EVIL for n in range(9)},
    ),
    Attack(
        "most_files_of_canvas_in_moodle",
        "does so the other way round",
        MOODLE,
        {f"Eve_7{HERE}/bob_2_{200 + n}_{NAME}": EVIL for n in range(9)},
    ),
    Attack(
        "names_on_a_terminal",
        "gives files names that move the cursor and reverse the line",
        MOODLE,
        {f"Eve_7{HERE}/\x1b[2J\u202egrade.zip": b"PK\3\4", f"Eve_7{HERE}/{NAME}": EVIL},
        told="\\x1b[2J\\u202egrade.zip cannot be read",
    ),
]


@pytest.fixture
def course(tmp_path):
    return tiny_course(tmp_path / "course")


def handed_in(course: Path) -> dict[str, bytes]:
    folder = course / "grading" / "submitted"
    return {path.parts[-3]: path.read_bytes() for path in folder.glob(f"*/{TINY}/{NAME}")}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_a_student_reaches_only_what_is_their_own(course, tmp_path, capsys, attack, order):
    (tmp_path / "class.zip").write_bytes(zipped(*[*attack.honest.items(), *attack.files.items()][::order]))
    main(["collect", TINY, str(tmp_path / "class.zip"), "--course", str(course)])
    told, found = capsys.readouterr().out, handed_in(course)
    assert found.keys() == attack.collected, told
    assert {student: found[student] for student in found.keys() & {"1", "2"}} == {
        student: work
        for student, work in (("1", b'"double" ada'), ("2", b'"double" bob'))
        if student in attack.collected
    }
    assert found.get("7", EVIL) == EVIL
    assert attack.told in told
    assert on_terminal(told) == told


def test_honest_classes_of_all_kinds_stay_what_they_are(course, tmp_path, capsys):
    """One student alone, folders around the class, and names with digits and underscores."""
    odd = {f"Bob_2 Lee_2_2{HERE}/{NAME}": b'"double" bob', f"Ada 4711_1{HERE}/{NAME}": b'"double" ada'}
    one = {f"Ada L_1{HERE}/{NAME}": b'"double" ada', f"Ada L_1{HERE}/data.csv": b"1"}
    for kind, files in {
        "moodle": MOODLE | {"readme.txt": b""},
        "moodle ": FLAT,
        "canvas": CANVAS,
        "plain": PLAIN,
        "moodle  ": {f"class/2026/{name}": work for name, work in MOODLE.items()},
        "plain ": {f"class/2026/{name}": work for name, work in PLAIN.items()},
        "moodle   ": odd,
        "moodle    ": one,
    }.items():
        (tmp_path / "class.zip").write_bytes(zipped(*files.items()))
        assert main(["collect", TINY, str(tmp_path / "class.zip"), "--course", str(course)]) == 0
        assert f"class.zip: {kind.strip()}" in capsys.readouterr().out
        found = handed_in(course)
        assert found.items() >= {"1": b'"double" ada'}.items()
        assert kind == "moodle    " or found["2"] == b'"double" bob'


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\uff1d", "\t=", ";="])
def test_no_name_of_a_file_is_a_formula_in_a_worksheet(course, tmp_path, start):
    """Nor one of a student: notes on files go into Moodle's worksheet as feedback, names as the platform has them."""
    files = {f"Eve_7{HERE}/{start}cmd|calc.zip": b"PK\3\4", f"Eve_7{HERE}/{NAME}": EVIL}
    (tmp_path / "class.zip").write_bytes(zipped(*MOODLE.items(), *files.items()))
    roster = tmp_path / "roster.csv"
    head = "Identifier,Full name,Grade,Last modified (grade),Feedback comments"
    roster.write_text(f'{head}\nParticipant 7,"{start}cmd|calc",,-,\n')
    main(["collect", TINY, str(tmp_path / "class.zip"), "--roster", str(roster), "--course", str(course)])
    Collected.load(Course(course), TINY, "moodle").write_back(Course(course), TINY, {}, {})
    text = (course / "grading" / "collected" / f"{TINY}-moodle.csv").read_text(encoding="utf-8")
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    told = row["Feedback comments"]
    assert "cmd|calc.zip cannot be read" in told
    assert (row["Identifier"], row["Last modified (grade)"]) == ("Participant 7", "-")
    for text, separator in itertools.product((told, row["Full name"]), ";,|\t\n"):
        assert not any(piece.lstrip(" \t").startswith(tuple("=+-@\uff1d")) for piece in text.split(separator)), text
