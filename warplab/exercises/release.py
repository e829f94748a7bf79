"""The release version of an exercise, generated from its source by nbgrader's own preprocessors.

    python -m warplab.exercises.release            writes exercises/ from solutions/
    python -m warplab.exercises.release --check    changes nothing; exit code 1 if exercises/ is out of date

`nbgrader generate_assignment` writes the same bytes; here no gradebook is needed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import SaveCells
from traitlets.config import Config, PyFileConfigLoader

from warplab.paths import COURSE


def topics(course: Path = COURSE) -> list[str]:
    """Names of the exercises, such as "01_vector_multiply", that have a source or a release."""
    folders = [*(course / "solutions").glob("*/*.ipynb"), *(course / "exercises").glob("*/*.ipynb")]
    return sorted({path.stem for path in folders if path.stem == path.parent.name})


def course_config() -> Config:
    """The settings in nbgrader_config.py; reading them also lets new processes import warplab."""
    return PyFileConfigLoader("nbgrader_config.py", path=str(COURSE)).load_config()


def release_text(source: Path) -> str:
    """The release version of one source notebook: solutions, hidden tests and outputs removed, cells locked."""
    config = course_config()
    config.Exporter.default_preprocessors = []
    exporter = NotebookExporter(config=config)
    for preprocessor in GenerateAssignment().preprocessors:
        if preprocessor is not SaveCells:  # it writes the gradebook
            exporter.register_preprocessor(preprocessor)
    text, _ = exporter.from_filename(str(source))
    return text


def release_notebook(topic: str, course: Path = COURSE) -> NotebookNode:
    """The release version of an exercise: from its source, or from exercises/ where the source is not at hand."""
    source = course / "solutions" / topic / f"{topic}.ipynb"
    if source.exists():
        return nbformat.reads(release_text(source), as_version=4)
    return nbformat.read(course / "exercises" / topic / f"{topic}.ipynb", as_version=4)


def release_files(topic: str, course: Path = COURSE) -> dict[Path, bytes]:
    """Every file of an exercise's release: path relative to its folder -> content."""
    folder = course / "solutions" / topic
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or any(part.startswith(".") or part == "__pycache__" for part in path.parts[-2:]):
            continue
        content = release_text(path).encode() if path.suffix == ".ipynb" else path.read_bytes()
        files[path.relative_to(folder)] = content
    return files


def out_of_date(topic: str, course: Path = COURSE) -> list[str]:
    """What differs between exercises/<topic> and the release of solutions/<topic>: one line a file."""
    folder, wanted = course / "exercises" / topic, release_files(topic, course)
    present = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    lines = [f"{topic}/{path}: missing" for path in sorted(wanted.keys() - present)]
    lines += [
        f"{topic}/{path}: not in solutions/"
        for path in sorted(present - wanted.keys())
        if not any(part.startswith(".") for part in path.parts)
    ]
    lines += [
        f"{topic}/{path}: differs"
        for path in sorted(wanted.keys() & present)
        if (folder / path).read_bytes() != wanted[path]
    ]
    return lines


def write(topic: str, course: Path = COURSE) -> None:
    folder, wanted = course / "exercises" / topic, release_files(topic, course)
    shutil.rmtree(folder, ignore_errors=True)
    for path, content in wanted.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m warplab.exercises.release", description="Generate exercises/ from solutions/."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; fail if exercises/ is out of date")
    arguments = parser.parse_args(argv)
    stale = {topic: out_of_date(topic) for topic in topics()}
    if arguments.check:
        lines = [line for lines in stale.values() for line in lines]
        print("\n".join(lines) or "exercises/ is the release of solutions/.")
        if lines:
            print("Run `make exercises`.", file=sys.stderr)
        return 1 if lines else 0
    for topic, lines in stale.items():
        if lines:
            write(topic)
        print(f"exercises/{topic}: {'written' if lines else 'up to date'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
