"""Lays the skeleton of a whole lab: `make new-lab NUMBER=14 TOPIC=scan TITLE="Prefix sums"`.

    python -m tools.new_lab NUMBER TOPIC TITLE [--claim TEXT]

Writes kernels/TOPIC, the notebook, the solution and its exercise, tests and wrong answers, from tools/skeleton; runs
the lesson, and brings README's table and the pages up to date. All of it works, and says that it is a skeleton.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from tools import execute_notebooks, labs_page, release_exercises
from warpcourse.bench.lab import labs
from warpcourse.paths import COURSE

SKELETON = Path(__file__).parent / "skeleton"
SUFFIX = ".txt"  # of every file of the skeleton, so that nothing takes it for what it becomes


class Refused(Exception):
    """A lab that cannot be laid; the message says why and what to do."""


def lay(number: int, topic: str, title: str, claim: str = "") -> list[Path]:
    """Write the files of a lab; return their paths. Raises `Refused` before anything is written."""
    slug = f"{number:02}_{topic}"
    _check(number, topic, title, claim)
    words = {"NUMBER": f"{number:02}", "TOPIC": topic, "TITLE": title, "CLAIM": claim, "SLUG": slug}
    files = {}
    for template in sorted(SKELETON.rglob(f"*{SUFFIX}")):
        name = template.relative_to(SKELETON).as_posix().removesuffix(SUFFIX)
        path = COURSE / name.replace("TOPIC", topic).replace("SLUG", slug)
        files[path] = _filled(template.read_text(encoding="utf-8"), words)
    if present := [path for path in files if path.exists()]:
        raise Refused(f"{present[0]} exists; remove it, or choose another topic")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".ipynb":
            nbformat.write(notebook(text), path)
        else:
            path.write_text(text, encoding="utf-8")
    release_exercises.write(slug, COURSE)
    return [*files, *sorted((COURSE / "exercises" / slug).rglob("*.*"))]


def _check(number: int, topic: str, title: str, claim: str) -> None:
    if not 0 <= number <= 99:
        raise Refused(f"the number is {number}; it must be 0 to 99")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", topic):
        raise Refused(f"the topic is {topic!r}; it must be small letters, digits and _, as it names a Python package")
    if len(title) > 80 or len(claim) > 100:
        raise Refused("the title has more than 80 characters, or the claim more than 100; shorten it")
    if not title or {'"', "\\", "\n"} & set(title + claim):
        raise Refused("the title is empty, or title or claim hold a quotation mark, a backslash or a line break")
    for lab in labs():
        if number == lab.number or topic == lab.topic:
            raise Refused(f"lab {lab.slug} has this number or topic; choose another, or delete that lab first")


def _filled(text: str, words: dict[str, str]) -> str:
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: words[found[1]], text)


def notebook(text: str) -> NotebookNode:
    """Return a notebook from text: lines "--- markdown ID" or "--- code ID" with what is special begin its cells.

    `tags=TAG`: a tag. `given`, `answer`, `test points=N`: cells of an exercise (nbgrader).
    """
    cells = []
    for part in re.split(r"^--- ", text, flags=re.MULTILINE)[1:]:
        head, _, source = part.partition("\n")
        kind, cell_id, *special = head.split()
        make = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        cells.append(make(source.strip("\n"), id=cell_id, metadata=_metadata(cell_id, special)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}, nbformat_minor=5
    )


def _metadata(cell_id: str, special: list[str]) -> dict:
    options = dict(word.split("=") for word in special if "=" in word)
    if "tags" in options:
        return {"tags": [options["tags"]]}
    if not {"given", "answer", "test"} & set(special):
        return {}
    about: dict = {
        "grade": "test" in special,
        "grade_id": cell_id,
        "locked": "answer" not in special,
        "schema_version": 3,
        "solution": "answer" in special,
        "task": False,
    }
    if "points" in options:
        about["points"] = int(options["points"])
    return {"nbgrader": dict(sorted(about.items()))}


def planned(number: int) -> dict[str, str]:
    """Return title and claim of the planned lab of that number; {} if none is."""
    rows = json.loads(labs_page.PLANNED.read_text(encoding="utf-8"))
    return next((row for row in rows if row["number"] == number), {})


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code: 0, or 2 when the lab cannot be laid."""
    parser = argparse.ArgumentParser(prog="python -m tools.new_lab", description=__doc__.splitlines()[0])
    parser.add_argument("number", type=int, help="such as 14")
    parser.add_argument("topic", help="name of the folder below kernels/, such as scan")
    parser.add_argument("title", nargs="?", default="", help="default: that of the planned lab of this number")
    parser.add_argument("--claim", default="", help="what the lesson puts on trial; default: the planned lab's")
    chosen = parser.parse_args(arguments)
    plan = planned(chosen.number)
    title, claim = chosen.title or plan.get("title", ""), chosen.claim or plan.get("claim", "")
    try:
        paths = lay(chosen.number, chosen.topic, title, claim)
    except Refused as refused:
        print(f"error: {refused}.", file=sys.stderr)
        return 2
    code = execute_notebooks.main([str(chosen.number)])
    labs_page.write()
    folder = COURSE / "kernels" / chosen.topic
    paths += [folder / "README.md", *sorted(folder.glob("pictures/*"))]
    print("\n".join(str(path.relative_to(COURSE)) for path in paths))
    print("README.md and docs/labs.md name it. CONTRIBUTING.md says what to do next.")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
