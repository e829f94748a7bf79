"""A lab is one thing: each can be taken out of a copy of the course, and a new one be laid there, touching no other.

In a copy, because these tests delete and write; they run commands in processes of their own, with the copy's code.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import lab_attacks, tiers
from tests.support.lab_deletions import SHARED
from tools import new_lab
from warpcourse.bench.lab import Lab, labs
from warpcourse.paths import COURSE

FOLDERS = "warplab warpcourse kernels tools evidence tests notebooks solutions exercises docs hub"
PARTS = tuple(FOLDERS.split())
# Labs that are applications: packages beside kernels/, which import labs.
APPLICATIONS = [lab for lab in labs() if "." not in lab.package]


@pytest.fixture
def course(tmp_path):
    """A copy of the course."""
    for part in (*PARTS, *(lab.package for lab in APPLICATIONS)):
        shutil.copytree(COURSE / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_check*"))
    for file in COURSE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path / file.name)
    return tmp_path


def run(course: Path, *arguments: str) -> str:
    """What Python prints, given these arguments in the copy; fails unless it ends with 0."""
    environment = os.environ | {"WARPLAB_BACKEND": "simulator", "PYTHONPATH": str(course)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("deleted", ["one", pytest.param("each", marks=pytest.mark.thorough)])
def test_a_lab_can_be_deleted_and_the_rest_collects_and_stays_green(course, tmp_path_factory, deleted):
    """One test, as the labs share a process that has loaded the libraries; see tests/support/lab_deletions.py."""
    one = ["--one"] if deleted == "one" else []
    printed = run(course, "-m", "tests.support.lab_deletions", str(tmp_path_factory.mktemp("aside")), *one)
    failures = json.loads(printed.splitlines()[-1])
    assert set(failures) == ({labs()[1].slug} if one else {lab.slug for lab in labs()} | {"all"})
    assert not any(failures.values()), "\n\n".join(f"{lab}:\n{text}" for lab, text in failures.items() if text)


# What is kept by lab; where a lab is gone, its part is not read: test_a_lab_can_be_deleted... says so.
BY_LAB = {
    tiers.DURATIONS,
    COURSE / "tests" / "test_answers_in_sight.py",
    COURSE / "tests" / "labs" / "test_other_cards.py",
    *lab_attacks.FOLDER.glob("labs_*.toml"),
}


def test_no_shared_test_or_tool_names_a_lab():
    """By the lab's slug or the module of its kernels: what did so would break when the lab is deleted.

    An application's own tests may name the labs that it imports.
    """
    shared = [path for part in ("tests", "tools") for path in (COURSE / part).rglob("*") if path.is_file()]
    found = []
    for path in shared:
        if path in BY_LAB or "__pycache__" in path.parts or path.is_relative_to(COURSE / "tools" / "skeleton"):
            continue
        if any(path.is_relative_to(application.tests) for application in APPLICATIONS):
            continue
        text = path.read_bytes().decode(errors="replace")
        for lab in labs():
            named = lab.slug in text or re.search(_named(lab), text)
            own = [one.tests for one in (lab, *lab.lessons)]
            if named and not any(path.is_relative_to(folder) for folder in own):
                found.append(f"{path.relative_to(COURSE)} names lab {lab.slug}")
    assert found == []


def _named(lab: Lab) -> str:
    """A pattern for the lab's package. An application's is one word, which says something only where it is imported."""
    package = re.escape(lab.package)
    return rf"(?m)^\s*(from {package}[. ]|import {package}\b)" if lab in APPLICATIONS else package


def test_without_any_lab_no_contract_breaks(course):
    """But those of the labs' own rooms, which go with the labs. Applications stay: they are named in the contracts."""
    contracts = configparser.ConfigParser()
    contracts.read(course / ".importlinter", encoding="utf-8")
    for lab in labs():
        if lab in APPLICATIONS:
            continue
        shutil.rmtree(course.joinpath(*lab.package.split(".")))
        for name, contract in list(contracts.items()):
            if re.search(rf"\b{re.escape(lab.package)}\b", contract.get("containers", "")):
                contracts.remove_section(name)
    with (course / ".importlinter").open("w", encoding="utf-8") as file:
        contracts.write(file)
    run(course, "-c", "from importlinter.cli import lint_imports_command as lint; lint()", "--no-cache")


def test_a_new_lab_works_and_can_be_deleted_again(course):
    before = {page: (course / page).read_text(encoding="utf-8") for page in ("README.md", "docs/labs.md")}
    number = max((lab.number for lab in labs()), default=0) + 1
    slug = f"{number:02}_made_up"
    there = {path for path in course.rglob("*") if path.is_file()}
    printed = run(course, "-m", "tools.new_lab", str(number), "made_up", "A lab that is made up", "--claim", "it works")
    new = {path.relative_to(course) for path in course.rglob("*") if path.is_file() and path not in there}
    new = {str(path) for path in new if not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)}
    assert new <= set(printed.splitlines())
    row = f"| {number:02} | [A lab that is made up](notebooks/{slug}.ipynb) | it works | skeleton; [page]"
    assert row in (course / "README.md").read_text(encoding="utf-8")
    assert f"[{number:02} A lab that is made up]" in (course / "docs" / "labs.md").read_text(encoding="utf-8")
    says_so = ("lab.py", "__init__.py", ".cu", ".ipynb")
    files = [file for file in printed.splitlines() if file.startswith(("kernels", "notebooks", "solutions"))]
    for file in (file for file in files if file.endswith(says_so)):
        assert "skeleton" in (course / file).read_text(encoding="utf-8"), file
    its_own = f"{slug} or made_up or TestExercise or the_result or does_not_fit"
    run(course, "-m", "pytest", "-q", "-k", its_own, f"tests/labs/{slug}", "tests/tools/test_ncu.py", *SHARED)
    made = ("kernels/made_up", f"tests/labs/{slug}", f"notebooks/{slug}.ipynb")
    run(course, "-m", "ruff", "check", *made)
    run(course, "-m", "ruff", "format", "--check", *made)
    for folder in ("kernels/made_up", *(f"{place}/{slug}" for place in ("solutions", "exercises", "tests/labs"))):
        shutil.rmtree(course / folder)
    (course / "notebooks" / f"{slug}.ipynb").unlink()
    run(course, "-m", "tools.labs_page")
    assert {page: (course / page).read_text(encoding="utf-8") for page in before} == before


@pytest.mark.parametrize(
    ("number", "topic", "title", "message"),
    [
        (100, "topic", "A title", "the number is 100; it must be 0 to 99"),
        (98, "Topic", "A title", "the topic is 'Topic'; it must be small letters"),
        (98, "topic", "", "the title is empty"),
        (98, "topic", 'A "title"', "hold a quotation mark"),
    ],
)
def test_what_cannot_be_laid_is_refused_before_anything_is_written(number, topic, title, message, capsys):
    with pytest.raises(new_lab.Refused, match=re.escape(message)):
        new_lab.lay(number, topic, title)
    assert not list((COURSE / "notebooks").glob(f"{number}_*"))


def test_what_is_there_without_being_a_lab_is_not_overwritten(monkeypatch):
    folder = next(lab.folder for lab in labs())
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    monkeypatch.setattr(new_lab, "labs", list)
    with pytest.raises(new_lab.Refused, match="exists; remove it, or choose another topic"):
        new_lab.lay(98, folder.name, "A title")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_number_is_taken_once(capsys):
    for lab in labs():
        assert new_lab.main([str(lab.number), "another_topic", "A title"]) == 2
        assert f"lab {lab.slug} has this number or topic" in capsys.readouterr().err


def test_a_planned_lab_gives_title_and_claim(monkeypatch, tmp_path):
    monkeypatch.setattr(new_lab.labs_page, "PLANNED", tmp_path / "planned.json")
    new_lab.labs_page.PLANNED.write_text('[{"number": 97, "title": "A plan", "claim": "it will work"}]')
    assert new_lab.planned(97) == {"number": 97, "title": "A plan", "claim": "it will work"}
    assert new_lab.planned(98) == {}
