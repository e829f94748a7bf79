"""Write docs/pictures.md: every picture of a lesson, by its cell, with the words that stand below it.

python -m tools.pictures_page            of all lessons, which are executed in the simulator, unsolved
python -m tools.pictures_page 04 05      of these labs; the others' sections stay
"""

import os
import re
import sys

import nbformat
from nbformat.notebooknode import NotebookNode

from tools import execute_notebooks
from warpcourse.bench.lab import Lab, labs
from warpcourse.paths import COURSE

PAGE = COURSE / "docs" / "pictures.md"
HEAD = """# What the pictures say

Every picture of a lesson has words below it, for those who do not see it: its titles, labels and numbers. These are all
of them, by cell, as the simulator and the recordings give them; `python -m tools.pictures_page` writes this page.
"""


def section(lesson: Lab, executed: NotebookNode) -> str:
    """Return a lesson's part of the page: a line for each picture of an executed notebook."""
    lines = [f"\n## {lesson.slug}\n\n"]
    for cell in execute_notebooks.code_cells(executed):
        shown = [output.get("data", {}) for output in cell.outputs]
        for data, after in zip(shown, [*shown[1:], {}], strict=False):
            if "image/png" in data:
                of_slider = execute_notebooks.WIDGET in data
                words = data["text/plain"].partition("> ")[2] if of_slider else after.get("text/plain", "")
                lines.append(f"- `{cell.id}`: {' '.join(words.split())}\n")
    return "".join(lines)


def sections() -> dict[str, str]:
    """Return the parts of the page as it is, by slug."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:] if PAGE.exists() else []
    return {part.partition("\n")[0]: f"\n## {part.rstrip()}\n" for part in parts}


def cells(part: str) -> list[str]:
    """Return the ids of a part's cells, in their order. Their words change from run to run: inputs are random."""
    return re.findall(r"^- `([^`]+)`: \S", part, re.MULTILINE)


def main(numbers: list[str]) -> None:
    """Execute lessons and write their parts."""
    os.environ["WARPLAB_BACKEND"] = "simulator"
    lessons = [lesson for lab in labs() for lesson in lab.lessons]
    found = sections()
    for lesson in lessons:
        if not numbers or lesson.slug[:2] in numbers:
            notebook = nbformat.read(lesson.notebook, as_version=4)
            found[lesson.slug] = section(lesson, execute_notebooks.execute(notebook))
            kept = "".join(found[one.slug] for one in lessons if one.slug in found)
            PAGE.write_text(HEAD + kept, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
