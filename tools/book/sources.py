"""The book's pages: what of the checkout is one, and its text as Sphinx gets it.

Pages keep their places, so that links between them hold. A link to any other file of the checkout, such as a kernel's
source, becomes a link to that file under the repository's address or, where none is given, its name as code.
"""

import contextlib
import io
import json
import os
import re
import runpy
import shutil
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path, PurePosixPath

import nbformat
from nbformat import v4
from nbformat.notebooknode import NotebookNode

import warplab
from tools import pictures_page
from warpcourse.bench.lab import labs
from warpcourse.paths import COURSE

FRONT = "docs/book/index.md"
# The text in square brackets, with a picture in it or none, and the target of a link.
LINK = re.compile(
    r"^(?:```|~~~).*?^(?:```|~~~)|(`+)(?!`).*?(?<!`)\1(?!`)"  # code, which holds none
    r"|(?<!!)\[((?:[^][]|!?\[[^][]*\](?:\([^()]*\))?)*)\]\(([^()\s]+)\)",
    re.MULTILINE | re.DOTALL,
)
# Public names by the part of the package that they are from; the first that fits.
API = {
    "pictures": ("Pictures", "warplab.draw.", "warpcourse.draw."),
    "estimates": ("Estimates and machine code", "warplab.estimating.", "warplab.hardware.", "warplab.report.machine"),
    "checks": ("Checks", "warplab.checks", "warplab.running."),
    "lessons": ("What lessons ask of a learner", "warpcourse."),
    "kernels": ("Kernels, launches, reports, errors", "warplab."),
}


def pages() -> list[str]:
    """Return the paths of the book's pages in the checkout, lessons first."""
    lessons = [lesson.notebook for lab in labs() for lesson in lab.lessons]
    measured = sorted(path for part in ("kernels", "digits") for path in (COURSE / part).rglob("*.md"))
    others = [*sorted((COURSE / "docs").glob("*.md")), *sorted((COURSE / "docs" / "teaching").glob("*.md"))]
    rest = [COURSE / "warplab" / "README.md", COURSE / "CONTRIBUTING.md"]
    return [path.relative_to(COURSE).as_posix() for path in (*lessons, *measured, *others, *rest)]


def write(folder: Path, paths: Iterable[str], base: str = "", api: bool = True) -> None:
    """Write the sources of a book with these pages, a front page and, with `api`, the pages of public names."""
    paths = list(paths)
    generated = {f"api/{name}.md": _api_page(name) for name in API} if api else {}
    known = {*paths, *generated, "index.md"}
    front = (COURSE / FRONT).read_text(encoding="utf-8").replace("{{report}}", report())
    texts = {"index.md": linked(front, FRONT, known, base, "index.md") + _contents([*paths, *generated])} | generated
    for path in paths:
        text = (COURSE / path).read_text(encoding="utf-8")
        texts[path] = notebook(text, path, known, base) if path.endswith(".ipynb") else linked(text, path, known, base)
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        for picture in re.findall(r"!\[[^]]*\]\(([^()\s]+)\)", text):
            if "://" not in picture:
                (target.parent / picture).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile((COURSE / path).parent / picture, target.parent / picture)
    shutil.copyfile((COURSE / FRONT).parent / "front.py", folder / "front.py")


def report() -> str:
    """Return what the front page's kernel prints on the simulator."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(COURSE / "docs" / "book" / "front.py"))
    return printed.getvalue().rstrip()


def notebook(text: str, path: str, known: set[str], base: str) -> str:
    """Return a lesson for the book: links as in `linked`, words below each picture. What a cell tagged `reveal` shows
    must not be in it."""
    read = with_words(nbformat.reads(text, as_version=4), PurePosixPath(path).stem)
    for cell in read.cells:
        if cell.cell_type == "markdown":
            if cell is not read.cells[0]:  # a second title would be a second entry of the contents
                cell.source = re.sub("^# ", "## ", cell.source)
            cell.source = linked(cell.source, path, known, base)
        elif "reveal" in cell.metadata.get("tags", ()) and cell.outputs:
            raise ValueError(f"{path}: cell {cell.id} answers a question and has outputs; take them out")
        elif any("image/png" in out.get("data", {}) and "needs_background" not in out.metadata for out in cell.outputs):
            cell.metadata.tags = sorted({*cell.metadata.get("tags", ()), "photo"})  # book.css leaves its brightness
    return json.dumps(read, ensure_ascii=False)


def with_words(read: NotebookNode, lesson: str) -> NotebookNode:
    """Return a lesson with words below each picture, those of docs/pictures.md where it was saved without."""
    words = re.findall(r"^- `([^`]+)`: (.*)", pictures_page.sections().get(lesson, ""), re.MULTILINE)
    for cell in read.cells:
        _give_words(cell.get("outputs", []), [said for name, said in words if name == cell.id])
    return read


def _give_words(outputs: list, known: list[str]) -> None:
    for output in [one for one in outputs if "image/png" in one.get("data", {})]:
        after = outputs[outputs.index(output) + 1 :][:1]
        said = known.pop(0) if known else ""
        if said and not (after and "In words" in after[0].get("data", {}).get("text/html", "")):
            html = f"<details><summary>In words</summary>{escape(said)}</details>"
            outputs.insert(outputs.index(output) + 1, v4.new_output("display_data", {"text/html": html}))


def linked(text: str, path: str, known: set[str], base: str, place: str | None = None) -> str:
    """Return the Markdown of `path` with its links as the book has them, where it stands at `place`."""

    def one(match: re.Match) -> str:
        _, shown, target = match.groups()
        if target is None or re.match(r"[a-z]+:", target):
            return match.group()
        if target.startswith("#"):  # JupyterLab's anchors are headings as they are, MyST's in small letters
            return f"[{shown}]({target.lower()})"
        file, mark, anchor = target.partition("#")
        there = os.path.normpath(PurePosixPath(path).parent / file)
        there = "index.md" if there == "README.md" and path != FRONT else there
        if there in known:
            return f"[{shown}]({os.path.relpath(there, PurePosixPath(place or path).parent)}{mark}{anchor.lower()})"
        if not (COURSE / there).exists():
            raise ValueError(f"{path}: the link {target} leads to no file")
        if base:
            return f"[{shown}]({base.rstrip('/')}/{there}{mark}{anchor})"
        return shown if there in shown or shown.startswith("!") else f"{shown} (`{there}`)"

    return LINK.sub(one, text)


def _contents(paths: list[str]) -> str:
    """Return the tables of contents, hidden on the page, that make the book's order."""
    shelves: Mapping[str, list[str]] = {
        "Lessons": [path for path in paths if path.startswith("notebooks/")],
        "Names": [path for path in paths if path.startswith("api/")],
        "Pages": [path for path in paths if PurePosixPath(path).parent.as_posix() in ("docs", "warplab", ".")],
        "Teaching": [path for path in paths if path.startswith("docs/teaching/")],
        "Measured": [path for path in paths if path.startswith(("kernels/", "digits/"))],
    }
    contents = ""
    for caption, shelf in shelves.items():
        if shelf:
            names = "\n".join(path.rpartition(".")[0] for path in shelf)
            contents += f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n:maxdepth: 1\n\n{names}\n```\n"
    return contents


def _api_page(part: str) -> str:
    """Return the page of the public names of a part: autodoc makes it of their docstrings."""
    title, *_ = API[part]
    names = [name for name, module in warplab._MODULES.items() if _part(module + ".") == part]
    lines = [f"# {title}\n"]
    for name in [*(warplab._BACKEND_NAMES if part == "kernels" else ()), *names]:
        value = getattr(warplab, name)
        if isinstance(value, type(os)):
            members = "" if name in warplab._BACKEND_NAMES else "   :members:\n"
            directive = f".. automodule:: {value.__name__}\n{members}"
        else:
            kind = "autoclass" if isinstance(value, type) else "autofunction"
            directive = f".. {kind}:: warplab.{name}\n"
        heading = f"\n## {name}\n" if directive.startswith(".. automodule") else ""
        lines.append(f"{heading}\n```{{eval-rst}}\n{directive}```\n")
    return "".join(lines)


def _part(module: str) -> str:
    return next(part for part, (_, *starts) in API.items() if module.startswith(tuple(starts)))
