"""In a copy of the course: delete each lab in turn, and all of them, and run what depends on the labs.

    python -m tests.support.lab_deletions FOLDER [--one]

`FOLDER`, outside the copy, is where a lab's parts are meanwhile. `--one`: one lab only. Each
deletion runs in a fork of this process, which has loaded the libraries before: loading them takes longer than the
tests. Prints a line of JSON: what failed, by lab.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import IPython.core.interactiveshell  # noqa: F401 (loaded before the forks)
import matplotlib.pyplot  # noqa: F401
import nbclient  # noqa: F401
import nbformat
import pytest

from warpcourse.bench.lab import Lab, labs
from warpcourse.paths import COURSE
from warplab import cp, cuda  # noqa: F401

# What depends on all labs and takes seconds; the lessons' runs, the launches' runs and the labs' own tests do not.
SHARED = (
    *(f"tests/warpcourse/bench/test_{name}.py" for name in ("lab", "recordings", "benchmark")),
    *("tests/tools/test_labs_page.py", "tests/test_readme.py", "tests/test_notebooks.py", "tests/test_pages.py"),
)
SLOW = "not runs_and_its_checks and not the_tool and not the_example and not is_a_command"


def parts(lab: Lab) -> list[Path]:
    """All folders and files of a lab, as CONTRIBUTING.md lists them."""
    places = [
        lab.folder,
        *(place for one in lab.lessons for place in (one.notebook, one.tests)),
        lab.tests,
        COURSE / "evidence" / "estimates" / "of_labs" / f"{lab.topic}.py",
    ]
    places += [COURSE / folder / one.slug for folder in ("solutions", "exercises") for one in (lab, *lab.exercises)]
    return [path for path in dict.fromkeys(places) if path.exists()]


def without(some: list[Lab], aside: Path, arguments: list[str]) -> str:
    """What pytest says with these labs gone and the pages written anew; "" if all is well. Afterwards all is back."""
    taken = [path for lab in some for path in parts(lab)]
    for number, path in enumerate(taken):
        shutil.move(path, aside / str(number))
    pages = {path: path.read_text(encoding="utf-8") for path in (COURSE / "README.md", COURSE / "docs" / "labs.md")}
    output = aside / "output"
    child = os.fork()
    if child == 0:
        with output.open("w") as file, redirect_stdout(file), redirect_stderr(file):
            os._exit(_pages_and_tests(arguments))
    _, status = os.waitpid(child, 0)
    for number, path in enumerate(taken):
        shutil.move(aside / str(number), path)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return "" if status == 0 else output.read_text()


def _pages_and_tests(arguments: list[str]) -> int:
    """Exit code of pytest, or 1 when the pages cannot be written."""
    try:
        from tools import labs_page

        labs_page.write()
        return int(pytest.main(["-q", "-p", "no:cacheprovider", *arguments]))
    except BaseException as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    finally:
        sys.stdout.flush()


def main() -> None:
    aside = Path(sys.argv[1])
    nbformat.validate(nbformat.v4.new_notebook())  # loads the schema
    every, one = labs(), "--one" in sys.argv
    found = {lab.slug: without([lab], aside, ["-k", SLOW, *SHARED]) for lab in (every[1:2] if one else every)}
    if not one:
        found["all"] = without(every, aside, ["--collect-only", "tests"])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
