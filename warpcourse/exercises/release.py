"""The release version of an exercise, generated from its source by nbgrader's own preprocessors.

`nbgrader generate_assignment` writes the same, by a gradebook. `make exercises` writes the releases into exercises/.
"""

from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import SaveCells
from traitlets.config import Config, PyFileConfigLoader

from warpcourse.paths import COURSE


def topics(course: Path = COURSE) -> list[str]:
    """List the exercises that have a source or a release, by names such as "01_vector_multiply"."""
    notebooks = [*(course / "solutions").glob("*/*.ipynb"), *(course / "exercises").glob("*/*.ipynb")]
    return sorted({path.stem for path in notebooks if path.stem == path.parent.name})


def course_config() -> Config:
    """Return the settings in nbgrader_config.py; reading them also lets new processes import warplab."""
    return PyFileConfigLoader("nbgrader_config.py", path=str(COURSE)).load_config()


def release_text(source: Path) -> str:
    """Return the release version of one source notebook: no solutions, hidden tests or outputs, cells locked."""
    config = course_config()
    config.Exporter.default_preprocessors = []
    exporter = NotebookExporter(config=config)
    for preprocessor in GenerateAssignment().preprocessors:
        if preprocessor is not SaveCells:  # it writes the gradebook
            exporter.register_preprocessor(preprocessor)
    text, _ = exporter.from_filename(str(source))
    return str(text)


def release_notebook(topic: str, course: Path = COURSE) -> NotebookNode:
    """Return the release version of an exercise, from its source, or from exercises/ if the source is not there."""
    source = course / "solutions" / topic / f"{topic}.ipynb"
    if source.exists():
        return nbformat.reads(release_text(source), as_version=4)
    return nbformat.read(course / "exercises" / topic / f"{topic}.ipynb", as_version=4)


def release_files(topic: str, course: Path = COURSE) -> dict[Path, bytes]:
    """Return every file of an exercise's release: its path relative to the exercise's folder, and its content."""
    folder = course / "solutions" / topic
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or any(part.startswith(".") or part == "__pycache__" for part in path.parts[-2:]):
            continue
        content = release_text(path).encode() if path.suffix == ".ipynb" else path.read_bytes()
        files[path.relative_to(folder)] = content
    return files
