"""The teaching pack: its misconceptions are wrong answers that are tested, its demonstrations cells that are there."""

from __future__ import annotations

import re

import nbformat
import pytest

from tests.support.exercise_answers import FOLDER, wrong_answers
from tools import slides
from warpcourse.bench.lab import labs
from warpcourse.paths import COURSE

FOLDER_OF_PACK = COURSE / "docs" / "teaching"
PAGES = sorted(path.stem for path in FOLDER_OF_PACK.glob("[0-9]*.md"))


def test_every_lab_has_its_page_and_the_pack_is_short():
    assert {f"{lab.number:02}" for lab in labs() if lab.status == "ready"} <= set(PAGES)
    assert sum(len(path.read_text().splitlines()) for path in FOLDER_OF_PACK.glob("*.md")) < 900


@pytest.mark.parametrize("number", PAGES)
def test_misconceptions_are_answers_that_are_refused_and_cells_are_there(number):
    text = " ".join((FOLDER_OF_PACK / f"{number}.md").read_text().split())
    lessons = sorted((COURSE / "notebooks").glob(f"{number}_*.ipynb"))
    cells, section = {}, ""  # each cell's section
    for cell in [cell for lesson in lessons for cell in nbformat.read(lesson, as_version=4).cells]:
        if cell.cell_type == "markdown":
            section = [section, *re.findall(r"^## (\d*)", cell.source, re.MULTILINE)][-1]
        cells[cell.id] = section
    told = re.findall(r'\d\. \*\*[^*]+\*\* `([\w/-]+)` gets "([^"]+)"', text)
    assert len(told) == 3
    answers = [
        (answer.problem, answer.name, answer.reason)
        for lesson in lessons
        if (COURSE / "tests" / "labs" / lesson.stem / FOLDER).is_dir()
        for answer in wrong_answers(lesson.stem)
    ]
    for named, message in told:
        problem, _, name = named.partition("/")
        if name:
            reasons = [reason for *of, reason in answers if of == [problem, name]]
            assert reasons, f"{named} is no wrong answer of the exercise"
        else:  # a task of lab 00, which has no exercise
            reasons = [(COURSE / "tests" / "labs" / lessons[0].stem / "answers.py").read_text()]
            assert problem in cells
        assert any(message in reason.replace("\\", "") for reason in reasons), (named, reasons)
    for lesson in lessons:  # how long it is, in the lesson's own words
        (long,) = re.findall(rf"\[{lesson.stem}\]\([^)]+\): (.+?)(?:; \[|\. )", text)
        assert long in nbformat.read(lesson, as_version=4).cells[0].source
    named_cells = re.findall(r"`([a-z]\w*(?:-\w+)+)`", text)
    assert len(named_cells) > 1
    assert set(named_cells) <= set(cells)
    for said, after in re.findall(r"Section (\d+): ((?:(?!Section|\d\. \*\*|## ).)+)", text):
        assert {cells[name] for name in re.findall(r"`([a-z]\w*(?:-\w+)+)`", after)} <= {said}, after


def test_slides_show_lessons_pictures_with_their_words_and_fetch_nothing():
    shown = 0
    for path in [lesson.notebook for lab in labs() for lesson in lab.lessons]:
        cells = nbformat.read(path, as_version=4).cells
        drawn = [
            cell.id
            for cell in cells
            if "check" not in cell.metadata.get("tags", ())
            for output in cell.get("outputs", [])
            if "image/png" in output.get("data", {})
        ]
        title, *made = slides.slides(path)
        assert cells[0].source.splitlines()[0].lstrip("# ") in title
        pictures = [slide for slide in made if "<img " in slide]
        assert len(pictures) == len(drawn)
        assert len(made) - len(pictures) <= 1  # the claim
        assert all(re.search(r'<img alt="[^"]+" src="data:image/png;base64,[\w+/]', slide) for slide in pictures)
        assert not re.search(r'(?:src|href)="(?!data:)', "".join([*made, title, slides.PAGE]))
        shown += len(pictures)
    assert shown > 100
