"""Folders that students handed in: whatever is in them is read and copied, and the rest of the class is graded."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import tempfile
from collections import Counter
from datetime import datetime
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.class_harness import RIGHT, TINY, answered, hand_in, scores, tiny_course
from tests.support.grading_harness import HereWorkers
from warpcourse.grading.course import coordinator, feedback, grade_command, submissions, summary
from warpcourse.grading.course.gradebook import Standing, write_autograded
from warpcourse.grading.course.nbgrader_course import Course
from warpcourse.grading.course.outputs_left_out import without_outputs
from warpcourse.grading.course.submissions import (
    MAX_ENTRIES,
    MAX_NOTES,
    beside,
    problem_with_name,
    read,
    timestamp_text,
)

NOTEBOOK = f"{TINY}.ipynb"
# Names that the grader itself gives to files and folders, and names that are hard for somebody.
NAMES = st.sampled_from(
    [NOTEBOOK, f"{TINY}.html", "timestamp.txt", "feedback", ".new", f".{TINY}.new", "data", "a", "b.txt", "x.html"]
    + [
        "-rf",
        "a b",
        "a\nb",
        "\x1b[2J",
        "é",
        "\u202e",
        "a" * 255,
        "[a](javascript:1)",
        "*",
        "a.ipynb",
        ".hidden",
        "__pycache__",
    ]
    + [os.fsdecode(b"\xff\xfe"), "__pycache__", "..."]
)
LEAVES = st.sampled_from(
    ["file", "empty", "notebook", "sparse", "link", "broken link", "link to itself", "pipe", "socket"]
)
TREES = st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=8)
FOLDERS = st.dictionaries(NAMES, TREES, max_size=5)


def make(place: int, tree: dict) -> None:
    """Make files and folders in an open folder, by names that may be too long as a path."""
    for name, what in tree.items():
        if isinstance(what, dict):
            os.mkdir(name, dir_fd=place)
            inner = os.open(name, os.O_RDONLY, dir_fd=place)
            make(inner, what)
            os.close(inner)
        elif "link" in what:
            target = {"link": "/etc/passwd", "broken link": "nowhere", "link to itself": name}[what]
            os.symlink(target, name, dir_fd=place)
        elif what == "pipe":
            os.mkfifo(name, dir_fd=place)
        elif what == "socket":
            os.mknod(name, 0o140600, dir_fd=place)
        else:
            file = os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=place)
            os.write(
                file, {"notebook": nbformat.writes(nbformat.v4.new_notebook()).encode(), "file": b"x"}.get(what, b"")
            )
            if what == "sparse":
                os.ftruncate(file, 1 << 40)
            os.close(file)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    root = tiny_course(
        tmp_path_factory.mktemp("course"),
    )
    folder = root / "solutions" / TINY / "data"
    folder.mkdir()
    (folder / "given.csv").write_text("1")
    return Course(root)


numbers = itertools.count()


@settings(max_examples=int(os.environ.get("WARPLAB_EXAMPLES", "1000")))
@given(FOLDERS)
def test_odd_folders_are_read_and_copied(course, tree):
    """With WARPLAB_EXAMPLES=5000, thousands of them."""
    student = f"s{next(numbers)}"
    folder = course.submitted(student, TINY)
    folder.mkdir(parents=True)
    place = os.open(folder, os.O_RDONLY)
    make(place, tree)
    os.close(place)
    submission = read(student, folder)
    assert len(submission.notes) <= MAX_NOTES + 1
    for note in submission.notes:
        note.encode()
    assert read(student, folder) == submission
    assert not any("passwd" in path for path in submission.files)
    files = beside(submission.files, (NOTEBOOK, "data/given.csv"))
    assert files.items() <= submission.files.items()
    with tempfile.TemporaryDirectory() as elsewhere:  # as in a sandbox
        for path, content in {**files, "data/given.csv": b"1"}.items():
            (Path(elsewhere) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(elsewhere) / path).write_bytes(content)
    assignment = course.assignment(TINY)
    write_autograded(course, assignment, student, nbformat.v4.new_notebook(), submission.files)
    copy = course.autograded(student, TINY)
    assert {"data/given.csv", NOTEBOOK} <= {path.relative_to(copy).as_posix() for path in copy.rglob("*")}
    target = course.feedback(student, TINY) / f"{TINY}.html"
    page = feedback.Page(student, TINY, copy / NOTEBOOK, target, Standing(student, {}, {}, 0, 0, None))
    feedback._write(course, page, "page")
    assert target.read_text() == "page"
    for path in (folder, copy, target.parent):
        shutil.rmtree(path)


@pytest.mark.parametrize(
    ("secret", "dated", "believed"),
    [("ab" * 64, False, True), (None, False, False), ("of my own", False, False), ("ab" * 65, False, False)]
    + [(None, True, True)],
)
def test_a_time_of_handing_in_is_nbgraders_or_the_instructors_word(tmp_path, secret, dated, believed):
    files = {"timestamp.txt": "2026-01-01 10:00:00 UTC", "submission_secret.txt": secret}
    for name, text in files.items():
        if text is not None:
            (tmp_path / name).write_text(text)
    submission = read("ada", tmp_path, dated)
    told = "timestamp.txt did not come from nbgrader, so the time of handing in is unknown."
    when = datetime(2026, 1, 1, 10) if believed else None
    assert (submission.timestamp, submission.notes) == (when, () if believed else (told,))


def test_deep_and_long_folders_are_left_out(tmp_path):
    place = os.open(tmp_path, os.O_RDONLY)
    make(place, {"a.txt": "file"})
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=place)
        place = os.open("d" * 250, os.O_RDONLY, dir_fd=place)
    make(place, {"deep.txt": "file"})
    submission = read("ada", tmp_path)
    assert submission.files == {"a.txt": b"x"}
    assert submission.notes == (f"{'d' * 60}… has a path of more than 1000 bytes and was left out.",)


def test_endless_entries_are_one_reason(tmp_path):
    for number in range(40):
        (tmp_path / f"link{number:02}").symlink_to("nowhere")
    submission = read("ada", tmp_path)
    assert len(submission.notes) == MAX_NOTES + 1
    assert submission.notes[-1] == "20 more were left out."
    for number in range(MAX_ENTRIES):
        (tmp_path / f"{number}").symlink_to("nowhere")
    assert read("ada", tmp_path).unusable == (f"The submission has more than {MAX_ENTRIES} files and folders.", "limit")


@contextlib.contextmanager
def as_an_ordinary_user():
    """Root can read everything."""
    if os.geteuid():
        yield
        return
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        folder = Path(name) / "sub" / TINY
        folder.mkdir(parents=True)
        yield folder
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755)


def test_what_the_grader_may_not_read_is_named(folder):
    (folder / NOTEBOOK).write_bytes(b"{}")
    (folder / "private").mkdir()
    (folder / "private" / "x").write_bytes(b"x")
    (folder / "secret.txt").write_bytes(b"x")
    (folder / "private").chmod(0)
    (folder / "secret.txt").chmod(0)
    with as_an_ordinary_user():
        submission = read("ada", folder)
    assert submission.files.keys() == {NOTEBOOK}
    assert submission.unusable is None
    assert "private cannot be read (Permission denied)." in submission.notes


@pytest.mark.parametrize("closed", [NOTEBOOK, "."])
def test_a_notebook_that_the_grader_may_not_read_is_for_the_instructor_to_open(folder, closed):
    (folder / NOTEBOOK).write_bytes(b"{}")
    (folder / closed).chmod(0)
    with as_an_ordinary_user():
        reason, status = read("ada", folder).unusable
    assert status == "infra_error"
    assert f"chmod -R u+rwX {folder}" in reason
    assert "Permission denied" in reason


@pytest.mark.parametrize("which", ["folder", "student"])
@pytest.mark.parametrize("target", ["elsewhere", "itself", "nowhere"])
def test_no_link_is_followed_in_place_of_a_folder(tmp_path, which, target):
    course = Course(tiny_course(tmp_path))
    elsewhere = course.grading / "elsewhere" / TINY
    elsewhere.mkdir(parents=True)
    (elsewhere / NOTEBOOK).write_bytes(b"{}")
    folder = course.submitted("eve", TINY)
    place = folder if which == "folder" else folder.parent
    place.parent.mkdir(parents=True, exist_ok=True)
    leads_to = elsewhere if which == "folder" else elsewhere.parent
    place.symlink_to({"elsewhere": leads_to, "itself": place, "nowhere": place.with_name("none")}[target])
    assert course.students(TINY) == ["eve"]
    submission = read("eve", folder)
    assert (submission.files, timestamp_text(folder)) == ({}, b"")
    reason, status = submission.unusable
    assert (status, "is a link, which the grader does not follow" in reason) == ("student_crash", True)


def test_a_folder_that_becomes_a_link_while_it_is_read_is_not_followed(tmp_path, monkeypatch):
    """Between the look at a folder and its reading, it is replaced."""
    course = Course(tiny_course(tmp_path))
    folder = course.submitted("eve", TINY)
    (folder / "data").mkdir(parents=True)
    (folder / NOTEBOOK).write_bytes(b"{}")
    opened = submissions._opened

    def replacing(top, inside, flags):
        if inside == "data":
            (folder / "data").rmdir()
            (folder / "data").symlink_to("/etc")
        return opened(top, inside, flags)

    monkeypatch.setattr(submissions, "_opened", replacing)
    submission = read("eve", folder)
    assert submission.files == {NOTEBOOK: b"{}"}
    assert submission.notes == ("data cannot be read (Not a directory).",)


def test_a_file_in_place_of_a_folder_is_seen(tmp_path):
    course = Course(tiny_course(tmp_path))
    folder = course.submitted("eve", TINY)
    folder.parent.mkdir(parents=True)
    folder.write_bytes(b"{}")
    stray = folder.parent.with_name("notes.txt")
    stray.write_bytes(b"bring chalk")
    assert course.students(TINY) == ["eve", "notes.txt"]
    assert read("eve", folder).unusable == (
        f"{TINY} is no folder: put the folder with the notebook there.",
        "student_crash",
    )
    assert read("notes.txt", stray / TINY).unusable[1] == "infra_error"  # perhaps nobody's: no score


@pytest.mark.parametrize("name", ["ada", "Müller, Anna (12)", "o'brien", "a;=1+1", "日本"])
def test_names_of_students(name):
    assert problem_with_name(name) == ""


@pytest.mark.parametrize("name", ["<b>", 'a"b', "a\\b", "a\x1b[2J", "a\nb", os.fsdecode(b"\xff"), "a\u202eb"])
def test_names_that_pages_would_not_show_as_text(name):
    assert "Rename the folder" in problem_with_name(name)


def test_a_class_is_graded_whatever_one_submission_does(tmp_path, monkeypatch, capsys, zygotes):
    """One of each: a name, a folder that breaks the reading, one that breaks the copying, one the page."""
    monkeypatch.setattr(grade_command, "LocalWorkers", lambda count: HereWorkers(zygotes))
    root = tiny_course(tmp_path)
    right = answered(root, RIGHT)
    for student in ("ada", "breaks-copy", "breaks-page", "breaks-reading", "zoe", "<img src=x>", "1\n=1+1"):
        hand_in(root, student, right)

    def breaking(function, student):
        def broken(*arguments):
            if student in map(str, arguments) or any(getattr(a, "student", "") == student for a in arguments):
                raise KeyError(f"odd {student}\x1b[2J")
            return function(*arguments)

        return broken

    monkeypatch.setattr(coordinator, "read", breaking(read, "breaks-reading"))
    monkeypatch.setattr(coordinator, "write_autograded", breaking(write_autograded, "breaks-copy"))
    (root / "grading" / "feedback" / "breaks-page" / TINY / f"{TINY}.html" / "inner").mkdir(parents=True)
    assert grade_command.main([TINY, "--course", str(root), "--workers", "1"]) == 1
    told = capsys.readouterr()
    everyone = {student: values for student, values in scores(root).items()}
    assert everyone["ada"] == everyone["zoe"] == everyone["breaks-page"] == [1.0, 2.0]
    assert not {"breaks-reading", "<img src=x>"} & everyone.keys()
    assert "breaks-reading: infra_error. KeyError: 'odd breaks-reading" in told.out
    assert "breaks-copy: infra_error. KeyError: 'odd breaks-copy" in told.out
    assert "<img src=x>: infra_error. The name of the student's folder holds '<', '>'" in told.out
    assert "No feedback page for breaks-page" in told.err
    assert "\x1b" not in told.out + told.err
    assert "already graded" not in told.err
    assert told.err.splitlines()[-1].startswith("The grader failed on 1\\n=1+1, <img")
    # The remedies work.
    monkeypatch.undo()
    monkeypatch.setattr(grade_command, "LocalWorkers", lambda count: HereWorkers(zygotes))
    submitted = root / "grading" / "submitted"
    (submitted / "<img src=x>").rename(submitted / "img")
    shutil.rmtree(submitted / "1\n=1+1")
    shutil.rmtree(root / "grading" / "feedback" / "breaks-page")
    assert grade_command.main([TINY, "--course", str(root), "--workers", "1"]) == 0
    assert set(map(tuple, scores(root).values())) == {(1.0, 2.0)}
    assert len(scores(root)) == 6
    assert len(list((root / "grading" / "feedback").glob("*/*/*.html"))) == 6


def test_a_full_disk_is_not_blamed_on_a_student(tmp_path, monkeypatch, capsys):
    root = tiny_course(tmp_path)
    hand_in(root, "ada", answered(root, RIGHT))

    def full(*arguments):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(coordinator, "read", full)
    assert grade_command.main([TINY, "--course", str(root)]) == 2
    assert "ada" not in capsys.readouterr().err


@pytest.mark.parametrize(("held", "reads"), [(1 << 30, 1), (0, 3)])
def test_a_submission_is_read_once_unless_the_class_is_too_large_to_hold(tmp_path, monkeypatch, zygotes, held, reads):
    monkeypatch.setattr(grade_command, "LocalWorkers", lambda count: HereWorkers(zygotes))
    monkeypatch.setattr(coordinator, "HELD_BYTES", held)
    root = tiny_course(tmp_path)
    for student in ("ada", "zoe"):
        hand_in(root, student, answered(root, RIGHT))
    seen = Counter()

    def counted(student, folder, *more):
        seen[student] += 1
        return read(student, folder, *more)

    monkeypatch.setattr(coordinator, "read", counted)
    assert grade_command.main([TINY, "--course", str(root), "--workers", "1"]) == 0
    assert set(map(tuple, scores(root).values())) == {(1.0, 2.0)}
    assert seen.keys() == {"ada", "zoe"}
    assert min(seen.values()) >= reads
    assert held == 0 or max(seen.values()) == 1


def test_names_that_look_the_same_are_told():
    record = {"status": "graded", "reason": "", "notes": [], "failures": {}}
    told = summary.text(
        "x", nbformat.v4.new_notebook(), dict.fromkeys(["Zo\u00eb", "Zoe\u0308", "Zoe"], record), {}, []
    )
    assert "'Zo\\xeb' and 'Zoe\\u0308': names that differ only in their Unicode form" in told
    assert told.count("differ") == 1


def large(outputs: str, more: str = "") -> bytes:
    cell = f'{{"cell_type": "code", "source": "x = \\"outputs\\": [", {more}"metadata": {{"outputs": [1]}}, "outputs": '
    return f'{{"cells": [{cell}[{outputs}]}}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}'.encode()


PRINTED = '{"output_type": "stream", "text": [%s"]"]}' % ('"a \\" ] } line", ' * 10)


@pytest.mark.parametrize("outputs", ["", PRINTED, f"{PRINTED}, {PRINTED}, {{}}", '{"data": {"outputs": [[], [{}]]}}'])
def test_outputs_alone_are_left_out(outputs):
    shorter = json.loads(without_outputs(large(outputs)))
    assert shorter == json.loads(large(outputs)) | {"cells": [json.loads(large(""))["cells"][0]]}


@pytest.mark.parametrize(
    "text",
    [b"", b"[" * 10**6, b'"' * 10**6, b'"\\"' * 10**6, b'"' + b'\\"' * 10**6, b'"' + b"\\" * (10**6 + 1)]
    + [large("")[:90] + part for part in (b"[" * 10**6, b"[]" * 10**6, b'"' + b'\\"' * 10**6, b'["\\')],
)
def test_what_is_no_notebook_stays_as_it_is(text):
    assert without_outputs(text) == text


def test_answers_are_read_out_of_a_notebook_with_vast_outputs(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "MAX_NOTEBOOK", 300)
    folder = tmp_path / "student" / TINY
    folder.mkdir(parents=True)
    (folder / NOTEBOOK).write_bytes(large(f"{PRINTED}, {PRINTED}"))
    found = read("student", folder)
    assert (found.unusable, found.files[NOTEBOOK]) == (None, large(""))
    assert found.notes == (f"{NOTEBOOK} has 0 MiB: it was graded without its outputs.",)
    (folder / NOTEBOOK).write_bytes(large(PRINTED, '"id": "' + "a" * 300 + '", '))
    found = read("student", folder)
    assert found.unusable is not None
    assert found.unusable[1] == "limit"
