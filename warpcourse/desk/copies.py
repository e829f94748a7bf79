"""The learner's own copy of the lessons and exercises: made, kept up to date, and never overwritten where changed.

    mine/notebooks/  mine/exercises/      what the learner works in
    mine/docs, kernels, warplab, ...      links to the course's folders, for the links in the lessons
    mine/.shipped/                        the versions that the copies were made of
    mine/progress.json, progress.ipynb    what was done

A copy that the learner did not change is replaced when the course has a newer version; outputs alone are no change. A
copy that was changed stays, and the new version comes beside it, with the learner's answers in it.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path, PurePosixPath

import nbformat
from nbformat.notebooknode import NotebookNode

from warpcourse.desk import own_version, progress_page
from warpcourse.desk.course_order import Shipped, shipped
from warpcourse.paths import COURSE, own_folder

BASES = ".shipped"
MADE_OF = "warplab_copy"  # in a copy's metadata: which version it was made of
NEW = ".new"
LINKED = ("docs", "evidence", "kernels", "warpcourse", "warplab")


def refresh(course: Path = COURSE, own: Path | None = None) -> list[str]:
    """Make the learner's copy, or bring it up to date. Returns a sentence for each thing that the learner should know.

    Raises OSError where the learner's folder cannot be written.
    """
    own = own or own_folder()
    order = shipped(course)
    first = not (own / BASES).is_dir()
    (own / BASES).mkdir(parents=True, exist_ok=True)
    for name in linked(course):
        _link(own / name, course / name)
    _write_progress(course, own)
    said = [sentence for one in order if (sentence := _bring(one, order, course, own))]
    if first:
        said.insert(
            0, f"Lessons and exercises are copied to {own}: work there; a newer course leaves your answers alone."
        )
    return said


def linked(course: Path = COURSE) -> tuple[str, ...]:
    """Return the folders of the course that lessons link to, applications among them: packages with a lab's record."""
    return (*LINKED, *sorted(path.parent.name for path in course.glob("*/lab.py")))


def _write_progress(course: Path, own: Path) -> None:
    """Write the progress page afresh, unless the learner made it something else."""
    page, target = progress_page.page(course, own), own / own_version.PROGRESS
    there = _read(target)
    if not target.exists() or (there is not None and own_version.sources(there) == own_version.sources(page)):
        write(target, _text(page))


def _bring(notebook: Shipped, order: list[Shipped], course: Path, own: Path) -> str:
    """Bring one notebook up to date; return what the learner should know of it."""
    new = own_version.own_version(notebook, order, course)
    version = _version(new)
    new.metadata[MADE_OF] = version
    text = _text(new)
    base = own / BASES / f"{version}.ipynb"
    if not base.exists():
        write(base, text)
    target = own / notebook.own
    if not target.exists():
        write(target, text)
        return ""
    mine = _read(target)
    if mine is None:
        beside = target.with_name(f"{target.stem}{NEW}.ipynb")
        if not beside.exists():
            write(beside, text)
        return f"{notebook.own} cannot be read as a notebook. It stays as it is; a fresh copy is {beside.name}."
    made_of = _read(own / BASES / f"{mine.metadata.get(MADE_OF)}.ipynb")
    if made_of is not None and own_version.sources(mine) == own_version.sources(made_of):
        if _differs(mine, made_of, new, version):
            write(target, text)
        return ""
    if mine.metadata.get(MADE_OF) == version:
        return ""
    return _beside(target, notebook.own, mine, made_of, new)


def _differs(mine: NotebookNode, made_of: NotebookNode, new: NotebookNode, version: str) -> bool:
    """Return whether an unchanged copy should be written again: other text, or other cells of the desk."""
    return mine.metadata.get(MADE_OF) != version or [c.source for c in made_of.cells] != [c.source for c in new.cells]


def _beside(
    target: Path, name: PurePosixPath, mine: NotebookNode, made_of: NotebookNode | None, new: NotebookNode
) -> str:
    """Put the new version beside the learner's and say what to do."""
    version = new.metadata[MADE_OF]
    merged, look_at = (new, []) if made_of is None else own_version.merge(made_of, mine, new)
    number = 1
    while True:
        beside = target.with_name(f"{target.stem}{NEW}{'' if number == 1 else f'-{number}'}.ipynb")
        there = _read(beside) if beside.exists() else None
        if not beside.exists():
            write(beside, _text(merged))
            break
        if there is not None and there.metadata.get(MADE_OF) == version:
            break
        number += 1
    answers = "your answers are in it" if made_of is not None else "copy your answers into it"
    if look_at:
        answers += f", but look at {', '.join(look_at)}, which the course changed, too"
    return (
        f"{name} has a newer version. Yours stays as it is; the new one lies beside it, {beside.name}, and {answers}. "
        "To change over, delete yours and rename the new one."
    )


def _version(notebook: NotebookNode) -> str:
    content = json.dumps(own_version.sources(notebook), ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _text(notebook: NotebookNode) -> str:
    return nbformat.writes(notebook) + "\n"


def _read(path: Path) -> NotebookNode | None:
    """Return a notebook, None if there is none or if it cannot be read."""
    try:
        notebook = nbformat.read(path, as_version=4)
        own_version.sources(notebook)
    except Exception:  # nbformat raises a dozen classes for malformed JSON
        return None
    return notebook


def _link(link: Path, target: Path) -> None:
    """Make a link to a folder of the course; anything else of that name is the learner's and stays."""
    if link.is_symlink() and link.readlink() != target:
        link.unlink()
    if target.is_dir() and not link.is_symlink() and not link.exists():
        link.symlink_to(target, target_is_directory=True)


def write(path: Path, text: str) -> None:
    """Write a file in one step, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise
