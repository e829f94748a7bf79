"""From a learning platform's archive to what it imports: odd classes of Moodle and Canvas, and hostile archives."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.class_harness import TINY, tiny_course
from tests.support.grading_harness import HereWorkers
from tests.support.odd_class import NAME, POINTS, REASONS, canvas, moodle, zipped
from warpcourse.grading.course import archives, collect_command, grade_command
from warplab.__main__ import main


@pytest.fixture
def course(tmp_path):
    return tiny_course(tmp_path / "course")


@pytest.mark.parametrize("platform", [moodle, canvas])
def test_an_odd_class_goes_from_archive_to_gradebook_in_two_commands(
    course, tmp_path, capsys, platform, zygotes, monkeypatch
):
    monkeypatch.setattr(grade_command, "_executor", lambda arguments, waiting: HereWorkers(zygotes))
    at = ["--course", str(course)]
    collect = ["collect", TINY, *platform(course, tmp_path), *at]
    assert main(collect) == 1
    told = capsys.readouterr().out
    assert f"{TINY}: 9 of 11 collected" in told
    assert "nothing to grade: s4@uni.edu, s8@uni.edu\n" in told
    assert "nothing handed in: s9@uni.edu\n" in told
    assert "is it the right notebook?" not in told  # a platform's prefix is no part of a name
    assert "_assignsubmission_" not in told
    for number, reason in REASONS.items():
        report = (course / "grading" / "collected" / TINY / f"s{number}@uni.edu.txt").read_text()
        assert reason in report, number
        assert f"  s{number}@uni.edu: {report.splitlines()[0]}\n" in told
    assert main(["grade", TINY, "--csv", platform.__name__, *at]) == 0
    said = capsys.readouterr()
    assert "nothing to grade: s4@uni.edu, s8@uni.edu\n" in said.out  # they did hand in something
    assert "nothing handed in: s9@uni.edu\n" in said.out
    assert "12@uni.edu: student_crash. The file is empty: it has 0 bytes. Open it in JupyterLab" in said.out
    assert "3 points are written as 30" in said.err
    made = course / "grading" / "collected" / f"{TINY}-{platform.__name__}"
    rows = list(csv.DictReader(io.StringIO(made.with_suffix(".csv").read_text(encoding="utf-8"), newline="")))
    column = "Grade" if platform is moodle else "90 Tiny (8)"
    grades = {str(n): row[column] for n, row in enumerate(rows[-12:], 1)}
    assert grades == {n: "" if points is None else f"{10 * points:.2f}" for n, points in POINTS.items()}
    pages = zipfile.ZipFile(made.with_suffix(".zip")).namelist()
    if platform is moodle:
        assert rows[0]["Identifier"] == "Participant 1"
        assert "no notebook" in rows[7]["Feedback comments"]
        assert "Zoë Nº 1_1_assignsubmission_file_/90_tiny.html" in pages
        assert "Zoë Nº 8_8_assignsubmission_file_/collected.txt" in pages
    else:
        assert list(rows[0]) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", column]
        assert (rows[1]["Student"], rows[1][column]) == ("    Points Possible", "30")
        assert {"zoe_1_900_90_tiny.html", "zoe_LATE_11_900_90_tiny.html", "zoe_10_901_90_tiny.html"} <= {*pages}
    assert sum(name.endswith("90_tiny.html") for name in pages) == 9
    before = sorted(path for path in (course / "grading" / "submitted").rglob("*"))
    assert main(collect) == 1  # again: nothing changes, nothing is graded again
    assert sorted(path for path in (course / "grading" / "submitted").rglob("*")) == before
    assert not (course / "grading" / "collected" / TINY / "replaced").exists()
    capsys.readouterr()
    assert main(["grade", TINY, "--student", "s1@uni.edu", *at]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[0] == "  s1@uni.edu: 3 of 3"
    assert "mean" not in told
    assert "nothing handed in" not in told
    assert main(["grade", TINY, "--student", "s1@uni.edu", "--csv", "x.csv", *at]) == 2
    assert "leave out --student" in capsys.readouterr().err


def submitted(course: Path, student: str) -> bytes:
    return (course / "grading" / "submitted" / student / TINY / NAME).read_bytes()


def test_a_later_archive_counts_and_what_it_replaces_is_kept(course, tmp_path, capsys):
    for name, content in (("old", b'"double" 1'), ("new", b'"double" 2')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ada.ipynb").write_bytes(content)
    at = ["--course", str(course)]
    assert main(["collect", TINY, str(tmp_path / "new"), str(tmp_path / "old"), *at]) == 0
    assert submitted(course, "ada") == b'"double" 1'
    assert main(["collect", TINY, str(tmp_path / "new"), *at]) == 0
    assert submitted(course, "ada") == b'"double" 2'
    replaced = course / "grading" / "collected" / TINY / "replaced" / "ada" / "1" / NAME
    assert replaced.read_bytes() == b'"double" 1'
    assert "It replaces what was handed in before." in capsys.readouterr().out


def test_folders_zips_and_links_of_students_are_sorted_by_name(course, tmp_path, capsys):
    source = tmp_path / "class"
    (source / "zoe\u0308").mkdir(parents=True)
    (source / "zoe\u0308" / NAME).write_bytes(b"1")
    (source / "bob.zip").write_bytes(zipped(("deep/other.ipynb", b"3"), (f"deep/Copy of {NAME}", b"2")))
    (source / "eve").symlink_to(course / "solutions")
    (source / "fay.zip").write_bytes(b"PK\3\4 no more")
    packed = tmp_path / "class.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(source, "2026/class")
    for given in (source, packed):
        assert main(["collect", TINY, str(given), "--course", str(course)]) == 1
        assert submitted(course, "zo\u00eb") == b"1"
        assert submitted(course, "bob") == b"2"
        told = capsys.readouterr().out
        assert "eve: eve is a link or a device" in told or "class/eve is a link or a device" in told
        assert "fay.zip cannot be read (File is not a zip file)" in told


def test_no_id_of_a_roster_leads_out_of_the_class(course, tmp_path, capsys):
    moodle(course, tmp_path)
    header = "Identifier,ID number,Email address,Grade,Last modified (grade)\n"
    rows = "Participant 1,../../evil,,,\nParticipant 6,..,six@uni.edu,,\n"
    (tmp_path / "roster.csv").write_text(header + rows)
    archive, *roster = str(tmp_path / "class.zip"), "--roster", str(tmp_path / "roster.csv")
    assert main(["collect", TINY, archive, *roster, "--course", str(course)]) == 1
    assert "/../evil: Could not be collected: The name of the student's folder holds '/'" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*evil*"))
    assert submitted(course, "six@uni.edu")
    assert not (course / "grading" / TINY).exists()


def test_no_archive_takes_memory_time_or_files(course, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(collect_command, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(collect_command, "Handed", functools.partial(collect_command.Handed, left=1 << 20))
    monkeypatch.setattr(archives, "MAX_ENTRIES", 50)
    deep = zipped((NAME, b"1"))
    for _ in range(4):
        deep = zipped(("inner.zip", deep))
    locked = bytearray(zipped((NAME, b"1")))
    for place in (6, locked.index(b"PK\1\2") + 8):
        locked[place] |= 1  # "encrypted"
    hostile = {
        "bomb": zipped((NAME, bytes(2 << 20))),
        "many": zipped(*((f"{n}.ipynb", b"") for n in range(60))),
        "deep": deep,
        "locked": bytes(locked),
        "sevenzip": b"7z\xbc\xaf\x27\x1c",
    }
    (tmp_path / "class.zip").write_bytes(
        zipped(*((f"{n}/x.zip", data) for n, data in hostile.items()), ("ok/" + NAME, b"1"))
    )
    assert main(["collect", TINY, str(tmp_path / "class.zip"), "--course", str(course)]) == 1
    told = capsys.readouterr().out
    for name, reason in {
        "bomb": "unpacked, a student's files have more than 1 MiB",
        "many": "cannot be read (more than 50 files)",
        "deep": "in at most 3 others",
        "locked": "it has a password",
        "sevenzip": "is no archive that can be opened",
    }.items():
        assert reason in next(line for line in told.splitlines() if line.startswith(f"  {name}: ")), name
    assert submitted(course, "ok") == b"1"
    assert os.listdir(course / "grading" / "submitted") == ["ok"]


def test_bad_use_is_named(course, tmp_path, capsys):
    def refused(*arguments: str) -> str:
        assert main([*arguments, "--course", str(course)]) == 2
        return capsys.readouterr().err

    (tmp_path / "x.csv").write_text("name,points\n")
    (tmp_path / "g.csv").write_text("Student,ID,Section,A (1),B (2)\n")
    (tmp_path / "class").mkdir()
    assert "cannot be read as a zip or a tar" in refused("collect", TINY, str(tmp_path / "x.csv"))
    assert "lacks the columns" in refused("collect", TINY, str(tmp_path / "class"), "--roster", str(tmp_path / "x.csv"))
    assert "A (1), B (2)" in refused("collect", TINY, str(tmp_path / "class"), "--roster", str(tmp_path / "g.csv"))
    assert "no assignment '99'" in refused("collect", "99", str(tmp_path / "class"))
    assert f"`collect {TINY} ARCHIVE --roster FILE`" in refused("grade", TINY, "--csv", "moodle")
    assert json.dumps(sorted(os.listdir(course / "grading"))).count("submitted") == 0
