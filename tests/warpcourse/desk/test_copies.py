"""The learner's copy: made once, brought up to date, and never overwritten where the learner wrote something."""

import os
import re
import shutil

import nbformat
import pytest

from tests.warpcourse.desk.conftest import lesson, ship
from warpcourse.desk import copies

FIRST, SECOND = "notebooks/01_topic.ipynb", "notebooks/02_topic.ipynb"
EXERCISE = "exercises/01_topic/exercise_01_topic.ipynb"


def read(path):
    return nbformat.read(path, as_version=4)


def change(path, cell, source):
    """Write into a cell and run it, as a learner does."""
    notebook = read(path)
    found = next(c for c in notebook.cells if c.id == cell)
    found.source = source
    found.outputs, found.execution_count = [nbformat.v4.new_output("stream", text="mine\n")], 7
    nbformat.write(notebook, path)


def source_of(path, cell):
    return next(c.source for c in read(path).cells if c.id == cell)


def newer(course, path=FIRST, **changes):
    """Ship a new version: one cell more, and the cells in `changes` with other text."""
    notebook = lesson("01", "The topic", extra=[nbformat.v4.new_markdown_cell("New text.", id="new-text")])
    for cell in notebook.cells:
        cell.source = changes.get(cell.id.replace("-", "_"), cell.source)
    ship(course, path, notebook)


def files(mine):
    """The lessons and exercises, without the folders of the course that are linked."""
    return sorted(
        str(path.relative_to(mine))
        for path in mine.rglob("*.ipynb")
        if path.name != "progress.ipynb"
        and copies.BASES not in path.parts
        and path.relative_to(mine).parts[0] not in copies.LINKED
    )


def test_a_first_copy_has_all_notebooks_and_says_where(course, mine):
    said = copies.refresh(course)
    assert said == [
        f"Lessons and exercises are copied to {mine}: work there; a newer course leaves your answers alone."
    ]
    assert files(mine) == [EXERCISE, FIRST, SECOND]
    assert copies.refresh(course) == []


def test_links_of_a_copy_lead_somewhere(course, mine):
    copies.refresh(course)
    for path in files(mine):
        text = "\n".join(c.source for c in read(mine / path).cells if c.cell_type == "markdown")
        links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.endswith("progress.ipynb")]
        assert links
        for link in links:
            assert (mine / path).parent.joinpath(link).exists(), (path, link)


def test_an_application_of_the_course_is_linked_too(course, mine):
    (course / "application").mkdir()
    (course / "application" / "lab.py").write_text("")
    copies.refresh(course)
    assert (mine / "application" / "lab.py").is_file()
    assert not (mine / "exercises" / "lab.py").exists()


def test_a_copy_that_nobody_changed_is_replaced_even_if_it_was_run(course, mine):
    copies.refresh(course)
    change(mine / FIRST, "first", "print(1)")  # run, not changed
    newer(course)
    assert copies.refresh(course) == []
    assert source_of(mine / FIRST, "new-text") == "New text."
    assert files(mine) == [EXERCISE, FIRST, SECOND]


def test_a_copy_with_an_answer_stays_and_the_new_version_comes_beside_it_with_the_answer(course, mine):
    copies.refresh(course)
    change(mine / FIRST, "your-turn-one", "answer = 42")
    before = (mine / FIRST).read_bytes()
    newer(course)
    (said,) = copies.refresh(course)
    assert "notebooks/01_topic.ipynb has a newer version. Yours stays as it is" in said
    assert "01_topic.new.ipynb, and your answers are in it. To change over, delete yours and rename" in said
    assert (mine / FIRST).read_bytes() == before
    beside = mine / "notebooks" / "01_topic.new.ipynb"
    assert source_of(beside, "your-turn-one") == "answer = 42"
    assert source_of(beside, "new-text") == "New text."
    # It is said again until the learner changes over, and nothing is written again.
    stamp = beside.stat().st_mtime_ns
    assert copies.refresh(course) == [said]
    assert beside.stat().st_mtime_ns == stamp
    os.replace(beside, mine / FIRST)
    assert copies.refresh(course) == []
    assert source_of(mine / FIRST, "your-turn-one") == "answer = 42"


def test_an_answer_in_an_unchanged_course_is_left_alone(course, mine):
    copies.refresh(course)
    change(mine / EXERCISE, "one", "mine")
    before = (mine / EXERCISE).read_bytes()
    assert copies.refresh(course) == []
    assert (mine / EXERCISE).read_bytes() == before


def test_a_cell_that_both_changed_is_named(course, mine):
    copies.refresh(course)
    change(mine / FIRST, "your-turn-one", "answer = 42")
    newer(course, your_turn_one="answer = ...  # a number")
    (said,) = copies.refresh(course)
    assert "look at your-turn-one, which the course changed, too" in said
    beside = mine / "notebooks" / "01_topic.new.ipynb"
    assert source_of(beside, "your-turn-one") == "answer = ...  # a number"
    assert source_of(mine / FIRST, "your-turn-one") == "answer = 42"


def test_cells_of_the_learners_own_follow_what_they_followed(course, mine):
    copies.refresh(course)
    notebook = read(mine / FIRST)
    place = next(k for k, cell in enumerate(notebook.cells) if cell.id == "first")
    notebook.cells[place + 1 : place + 1] = [nbformat.v4.new_code_cell(f"note {k}", id=f"note-{k}") for k in (1, 2)]
    nbformat.write(notebook, mine / FIRST)
    newer(course)
    copies.refresh(course)
    ids = [cell.id for cell in read(mine / "notebooks" / "01_topic.new.ipynb").cells]
    assert ids[ids.index("first") :][:3] == ["first", "note-1", "note-2"]


def test_a_second_new_version_does_not_overwrite_the_first(course, mine):
    copies.refresh(course)
    change(mine / FIRST, "your-turn-one", "answer = 42")
    newer(course)
    copies.refresh(course)
    beside = mine / "notebooks" / "01_topic.new.ipynb"
    change(beside, "first", "print('begun in the new one')")
    before = beside.read_bytes()
    newer(course, first="print(2)")
    (said,) = copies.refresh(course)
    assert "01_topic.new-2.ipynb" in said
    assert beside.read_bytes() == before
    assert source_of(mine / "notebooks" / "01_topic.new-2.ipynb", "first") == "print(2)"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"cells": 3}'])
def test_a_damaged_notebook_is_kept_and_a_fresh_one_comes_beside_it(course, mine, content):
    copies.refresh(course)
    (mine / FIRST).write_bytes(content)
    (said,) = copies.refresh(course)
    assert "01_topic.ipynb cannot be read as a notebook. It stays as it is" in said
    assert (mine / FIRST).read_bytes() == content
    assert source_of(mine / "notebooks" / "01_topic.new.ipynb", "first") == "print(1)"


def test_without_the_version_it_was_made_of_a_copy_counts_as_changed(course, mine):
    copies.refresh(course)
    shutil.rmtree(mine / copies.BASES)
    newer(course)
    said = copies.refresh(course)
    assert "copy your answers into it" in said[-1]
    assert source_of(mine / FIRST, "first") == "print(1)"
    assert "new-text" not in [cell.id for cell in read(mine / FIRST).cells]


def test_a_deleted_copy_is_made_afresh(course, mine):
    copies.refresh(course)
    change(mine / FIRST, "your-turn-one", "answer = 42")
    (mine / FIRST).unlink()
    assert copies.refresh(course) == []
    assert source_of(mine / FIRST, "your-turn-one") == "answer = None"


def test_a_lesson_that_the_course_dropped_stays_the_learners(course, mine):
    copies.refresh(course)
    (course / SECOND).unlink()
    copies.refresh(course)
    assert (mine / SECOND).exists()
    assert "02_topic" not in source_of(mine / EXERCISE, "desk-way-top")  # the way leads past it, in an unchanged copy


def test_a_folder_of_the_learners_in_the_place_of_a_link_stays(course, mine):
    (mine / "docs").mkdir(parents=True)
    (mine / "docs" / "notes.md").write_text("mine")
    copies.refresh(course)
    assert (mine / "docs" / "notes.md").read_text() == "mine"


def test_a_course_that_was_moved_is_linked_again(course, mine):
    copies.refresh(course)
    moved = course.rename(course.parent / "moved")
    copies.refresh(moved)
    assert (mine / "docs" / "counters.md").read_text() == "counters"


def test_where_nothing_can_be_written_the_command_says_what_to_do(mine, capsys):
    from warpcourse.desk import lab_command

    mine.write_text("a file where the folder should be")
    assert lab_command.main([]) == 1
    assert "Set WARPLAB_MINE to a folder of your own" in capsys.readouterr().err
