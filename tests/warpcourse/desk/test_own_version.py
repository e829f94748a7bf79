"""What a learner's notebook has and the shipped one has not, for the course's own lessons and exercises."""

import re

import nbformat
import pytest

from warpcourse.desk import own_version
from warpcourse.desk.copies import linked
from warpcourse.desk.course_order import shipped
from warpcourse.exercises import score
from warpcourse.paths import COURSE

ORDER = shipped()


@pytest.fixture(scope="module", params=ORDER, ids=lambda one: str(one.own))
def made(request):
    """(what is shipped, the learner's version of it)."""
    return request.param, own_version.own_version(request.param, ORDER)


def test_each_lesson_is_followed_by_its_exercise():
    assert not ORDER[0].is_exercise
    numbers = [one.number for one in ORDER]
    assert numbers == sorted(numbers)
    for place, one in enumerate(ORDER):
        if one.is_exercise:
            alone = sum(other.is_exercise for other in ORDER if other.number == one.number) == 1
            assert not ORDER[place - 1].is_exercise
            assert ORDER[place - 1].number == one.number
            assert alone or ORDER[place - 1].path.stem == one.path.stem
            assert not alone or one.number not in numbers[place + 1 :]
    assert sum(one.is_exercise for one in ORDER) == len(list(COURSE.glob("exercises/*/*.ipynb"))) > 0
    names = [one.own.name for one in ORDER]
    assert len(set(names)) == len(names), "two tabs of JupyterLab would have the same name"


def test_the_way_is_at_the_top_and_at_the_bottom(made):
    one, notebook = made
    top, bottom = notebook.cells[0], notebook.cells[-1]
    assert top.source == bottom.source
    links = re.findall(r"\]\(([^)]+)\)", top.source)
    place = ORDER.index(one)
    wanted = [*ORDER[max(place - 1, 0) : place], None, *ORDER[place + 1 : place + 2]]
    targets = ["progress.ipynb" if other is None else str(other.own) for other in wanted]
    assert [resolved(one, link) for link in links] == targets
    for other in filter(None, wanted):
        assert other.title in top.source


def resolved(one, link):
    parts = []
    for part in (one.own.parent / link).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def test_links_lead_to_files_of_the_learners_folder_or_of_the_course(made):
    one, notebook = made
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    here = {str(other.own) for other in ORDER} | {"progress.ipynb"}
    for link in re.findall(r"\]\(([^)#]+)", text):
        if "://" in link or re.fullmatch(r"\d\d_\w+\.ipynb", link):
            continue  # a lesson may name one that has been taken out: tests/test_notebooks.py
        target = resolved(one, link)
        known = target.split("/")[0] in linked()
        assert target in here or target in ("notebooks", "exercises") or (known and (COURSE / target).exists()), link


def test_each_place_for_an_answer_is_marked(made):
    _, notebook = made
    answers = [k for k, cell in enumerate(notebook.cells) if own_version.is_answer(cell)]
    marked = [k + 1 for k, cell in enumerate(notebook.cells) if "<b>Your answer</b>" in cell.source]
    assert answers
    assert [k for k in answers if notebook.cells[k].cell_type == "code"] == marked


def test_the_courses_own_cells_are_unchanged_but_for_links(made):
    one, notebook = made
    nbformat.validate(notebook)
    shipped_cells = nbformat.read(COURSE / one.path, as_version=4).cells
    own = [cell for cell in notebook.cells if not own_version.is_desk(cell)]
    assert [cell.id for cell in own] == [cell.id for cell in shipped_cells]
    for mine, theirs in zip(own, shipped_cells, strict=True):
        assert mine.source.replace("/exercise_", "/") == theirs.source
        assert {**mine.metadata, "jupyter": None} == {**theirs.metadata, "jupyter": None}


def is_hidden(cell) -> bool:
    return bool(cell.metadata.get("jupyter", {}).get("source_hidden"))


def test_nothing_looks_run_and_no_check_hides_its_result_behind_its_code(made):
    one, notebook = made
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in code) or made[0].is_exercise  # what the lesson's run showed is there
    numbers = [part.get("execution_count") for cell in code for part in (cell, *cell.outputs)]
    assert numbers == [None] * len(numbers)
    as_shipped = [cell.id for cell in nbformat.read(COURSE / one.path, as_version=4).cells if is_hidden(cell)]
    assert [cell.id for cell in code if is_hidden(cell)] == [
        cell.id for cell in code if "check" in cell.metadata.get("tags", []) or cell.id in as_shipped
    ]


def test_one_command_shows_the_score(made):
    one, notebook = made
    commands = [cell.id for cell in notebook.cells if re.search(r"warplab (import )?check\b", cell.source)]
    assert not one.is_exercise or commands == ["desk-check"]


def test_an_exercise_is_scored_as_the_shipped_one(made):
    one, notebook = made
    if not one.is_exercise:
        return
    release = nbformat.read(COURSE / one.path, as_version=4)
    names = [score.cell_id(cell) for cell in notebook.cells if score.cell_id(cell)]
    assert names == [score.cell_id(cell) for cell in release.cells if score.cell_id(cell)]
    assert all(score.as_released(cell) for cell in notebook.cells if score.cell_id(cell) and score.is_locked(cell))
