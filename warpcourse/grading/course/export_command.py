"""`python -m warplab export gradescope ASSIGNMENT`: write the autograder of an assignment, a zip to upload there.

It holds setup.sh, run_autograder, and of the course what the grading of this assignment needs (gradescope.py says what
happens then). The course's secret is in it, so that all containers draw the same hidden inputs.
"""

import argparse
import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from warpcourse.bench import lab
from warpcourse.grading.course.coordinator import course_secret
from warpcourse.grading.course.gradescope import VISIBILITY
from warpcourse.grading.course.nbgrader_course import CONFIG, Course, CourseError, add_assignment
from warpcourse.paths import COURSE

# Of the checkout: what grades, what the submission may import, and what sets .venv up.
CODE = ("warplab", "warpcourse", "kernels", "tools/bootstrap.py", "tools/environment.py", "tools/run_uv.py")
LEFT_OUT = {"__pycache__", ".ipynb_checkpoints"}

# Gradescope's default image has had a Python that is too old, so setup.sh adds one by the name that the system has.
# Modules are compiled here because a submission's user cannot write them.
SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image. Elsewhere: AUTOGRADER=FOLDER bash setup.sh
set -e
cd "${{AUTOGRADER:-/autograder}}/source"
if ! command -v bwrap > /dev/null; then apt-get install --yes bubblewrap; fi
found() {{
    for python in python3.12 python3.13 python3.11; do
        if "$python" -c "import ensurepip" 2> /dev/null; then return; fi
    done
    return 1
}}
found || apt-get install --yes python3.12-venv || apt-get install --yes python3.11-venv
found
WARPLAB_REQUIREMENTS={requirements} "$python" tools/bootstrap.py
.venv/bin/python -m compileall -q .venv/lib warplab warpcourse kernels || true
"""
RUN = """#!/usr/bin/env bash
# Gradescope runs this for each submission. Elsewhere: AUTOGRADER=FOLDER bash run_autograder
cd "${{AUTOGRADER:-/autograder}}/source" && exec .venv/bin/python -m warpcourse.grading.course.gradescope .. \\
    --hidden {hidden}
"""


def main(argv: list[str] | None = None) -> int:
    """Write the zip. Return 0, or 2 for wrong use."""
    parser = argparse.ArgumentParser(
        prog="python -m warplab export",
        description="Write an assignment's autograder for Gradescope, which needs no GPU. It holds solutions, hidden "
        "tests and the course's secret: for instructors only.",
    )
    parser.add_argument("platform", choices=["gradescope"])
    add_assignment(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: grading/ASSIGNMENT_gradescope.zip")
    told = "when students see the tests that have a hidden part, and their points (default: visible, at once)"
    parser.add_argument("--hidden", choices=VISIBILITY, default=VISIBILITY[0], help=told)
    arguments = parser.parse_args(argv)
    try:
        course = Course(arguments.course)
        name, requirements = _lab(course, arguments.assignment)
        path = arguments.out or course.grading / f"{name}_gradescope.zip"
        course.assignment(name)
        _write(path, course, name, requirements, arguments.hidden)
    except (CourseError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"{path}: {path.stat().st_size / 1e6:.1f} MB, with solutions and the course's secret: for instructors only.\n"
        "In Gradescope: a programming assignment, Configure Autograder, upload it; then in the assignment's settings "
        "at least 1 CPU, 1.5 GB and 40 minutes. Try it there with the solution (Test Autograder)."
    )
    return 0


def _lab(course: Course, given: str) -> tuple[str, str]:
    """Return an assignment's name, and the pinned set that it needs."""
    try:
        found = lab.find(given if given.isdigit() else course.name_of(given))
    except ValueError:  # an exercise of the instructor's own
        return course.name_of(given), "small"
    return found.slug, "cpu" if found.needs else "small"


def _write(path: Path, course: Course, name: str, requirements: str, hidden: str) -> None:
    path.touch(0o600)  # the secret is in it
    if path.is_file():
        path.chmod(0o600)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, told, mode in (
            ("setup.sh", SETUP.format(requirements=requirements), 0o755),
            ("run_autograder", RUN.format(hidden=hidden), 0o755),
            ("grading/secret", course_secret(course) + "\n", 0o600),
        ):
            info = zipfile.ZipInfo(file)
            info.external_attr = mode << 16
            archive.writestr(info, told, zipfile.ZIP_DEFLATED)
        pins = "requirements-small.txt" if requirements == "small" else "requirements.txt"
        for file in (*CODE, pins, "pyproject.toml"):
            for each in _files(COURSE / file):
                archive.write(each, each.relative_to(COURSE))
        archive.write(course.root / CONFIG, CONFIG)
        for each in _files(course.source(name)):
            archive.write(each, Path("solutions", name, each.relative_to(course.source(name))))


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or the files in a folder."""
    if path.is_file():
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        yield from (Path(folder, name) for name in sorted(names))


if __name__ == "__main__":
    sys.exit(main())
