"""Feedback pages as HTML: nbgrader's own, without hidden tests, scripts, and anything that a browser loads by itself.

`HideHiddenTests` and `InertPages` are also in nbgrader_config.py, so that `nbgrader generate_feedback` makes the same.
`render` runs in a process of its own, under limits: a notebook may be made to keep a renderer busy.
"""

import functools
import html
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from warpcourse.exercises.score import cell_id
from warpcourse.grading.course.gradebook import Held
from warpcourse.grading.course.nbgrader_course import Course
from warpcourse.grading.judge import inert
from warpcourse.grading.judge.hidden_tests import marked_lines, without_hidden_tests

SHORTEST = 8  # characters; a shorter hidden line, such as "):", tells nothing and may be in any traceback
# No script runs, and nothing is loaded from anywhere: TeX is shown as it was written.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# Bootstrap hides the marker of a hint that opens, and gives headings a height for one line.
_STYLE = """<style>
summary { display: list-item; cursor: pointer; }
div.nbgrader_cell .panel-heading { height: auto; min-height: 37px; overflow: hidden; }
div.output_error pre { border-left: 5px solid #b3261e; background: #fff4f3; white-space: pre-wrap; word-break: normal; }
li.none, li.part { font-weight: bold; }
li.none::after { content: " \\2717"; color: #b3261e; }
li.part::after { content: " \\2717"; color: #8a5a00; }
li.all::after { content: " \\2713"; color: #1b6e2d; }
@media (max-width: 600px) { .container, .panel-body { padding-left: 4px; padding-right: 4px; } }
</style>"""
_SHOWN = ("text/plain", "text/html", *inert.PICTURES)


class HideHiddenTests(NbGraderPreprocessor):
    """Removes hidden tests from test cells, and their lines from the outputs of these cells."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
            secret = {line.strip() for line, hidden in marked_lines(cell.source) if hidden}
            cell.source = without_hidden_tests(cell.source)
            shown = {line.strip() for line in cell.source.split("\n")}
            secret = {line for line in secret - shown if len(line) >= SHORTEST}
            if secret:
                for output in cell.outputs:
                    _scrub(output, secret)
        return cell, resources


def _scrub(value: Any, secret: set[str]) -> Any:
    """Return `value` without the lines that contain a secret one, in nested lists and dicts too."""
    if isinstance(value, str):
        return "\n".join(line for line in value.split("\n") if not any(text in line for text in secret))
    if isinstance(value, dict):
        for name, inner in value.items():
            value[name] = _scrub(inner, secret)
    elif isinstance(value, list):
        return [_scrub(inner, secret) for inner in value]
    return value


class _GivenGrades(GetGrades):
    """nbgrader's GetGrades, with grades that came with the page instead of a gradebook."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        names, standing = resources["nbgrader"], resources["nbgrader"]["standing"]
        self.notebook_id, self.assignment_id, self.student_id = names["notebook"], names["assignment"], names["student"]
        grades = {
            cell: SimpleNamespace(score=score, max_score=possible)
            for cell, (score, possible) in standing["scores"].items()
        }
        comments = {cell: SimpleNamespace(comment=comment) for cell, comment in standing["comments"].items()}
        self.gradebook = Held(grades, comments)
        nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
        names["score"], names["max_score"] = standing["points"], standing["possible"]
        names["late_penalty"] = standing["late_penalty"]
        return nb, resources


class InertPages(HTMLExporter):
    """nbconvert's HTMLExporter for notebooks of students: no script, and a policy that forbids any.

    It does without nbconvert's second parsing of pages that have no images, for their missing descriptions.
    """

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **options: Any) -> tuple[Any, dict[str, Any]]:
        for cell in nb.cells:
            cell.pop("attachments", None)  # inert markdown holds its pictures
            if cell.cell_type == "raw":
                cell.cell_type, cell.source = "markdown", inert.literally(cell.source)
            for output in cell.get("outputs", []):
                if "data" in output:
                    output.data = {mime: value for mime, value in output.data.items() if mime in _SHOWN}
                    output.metadata = {}
                if "text/html" in output.get("data", {}):
                    output.data["text/html"] = inert.inert_html("".join(output.data["text/html"]))
        names = {str(cell_id(cell)): _name(cell) for cell in nb.cells if is_grade(cell)}
        page, resources = self._page(nb, resources, **options)
        return _with_policy(_with_names(page, names)), resources

    def _page(self, nb: NotebookNode, resources: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
        if _may_have_images(nb):
            return super().from_notebook_node(nb, resources, **options)
        lexer = nb.metadata.get("language_info", {}).get("name")
        self.register_filter("highlight_code", Highlight2HTML(pygments_lexer=lexer, parent=self))
        resources = self._init_resources(resources)
        filter_ = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=resources)
        self.register_filter("filter_data_type", filter_)
        return TemplateExporter.from_notebook_node(self, nb, resources, **options)

    def default_filters(self) -> Iterator[tuple[str, Any]]:
        yield from super().default_filters()
        yield "markdown2html", lambda source: inert.inert_html(inert.rendered_markdown(source))


def _with_policy(page: str) -> str:
    """Return a page with `POLICY` as its first element, without the scripts of nbgrader's template."""
    head, end, rest = page.partition("</head>")
    head = re.sub(r"<script\b.*?</script>", "", head, flags=re.DOTALL)
    policy = (
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<meta name="referrer" content="no-referrer">'
        '\n<meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    return head.replace("<head>", f"<head>\n{policy}", 1) + _STYLE + end + rest


def _name(cell: NotebookNode) -> str:
    """Return what the page calls a graded cell: its id, and what the first comment of a test says it tests."""
    name = str(cell_id(cell))
    if is_solution(cell):
        return name
    first = without_hidden_tests(cell.source).lstrip().partition("\n")[0]
    told = re.fullmatch(r"#\s*(?:[\d.]+ points?:\s*)?(\w.*?)\.?\s*", first)
    return f"{name}: {told[1]}" if told else name


def _with_names(page: str, names: dict[str, str]) -> str:
    """Return a page whose list of scores names the graded cells and marks what was lost.

    nbgrader's calls each of them "Test cell", and each comment "Comment".
    """

    def named(link: re.Match) -> str:
        name = html.escape(names.get(html.unescape(link["id"]), ""))
        what = "" if link["what"] == "Test cell" else link["what"]
        told = ": ".join(filter(None, [what, name])) or what
        got, most = float(link["got"]), float(link["most"])
        mark = "all" if got >= most else "part" if got > 0 else "none"
        return f'<li class="{mark}"><a href="#{link["id"]}">{told}</a> (Score: {link["got"]} / {link["most"]})'

    kinds = "Test cell|Coding free-response|Written response|Task"
    score = r"\(Score: (?P<got>-?[\d.]+) / (?P<most>[\d.]+)\)"
    contents, rest, notebook = page.partition('<div class="panel-body">')
    contents = re.sub(rf"""<li><a href="#(?P<id>[^"]*)">(?P<what>{kinds})</a> {score}""", named, contents)
    contents = re.sub(r"""(<li><a href="#comment-([^"]*)">Comment)</a>""", r"\1 on \2</a>", contents)
    return contents + rest + notebook


def _may_have_images(notebook: NotebookNode) -> bool:
    def searched() -> Iterator[str]:
        for cell in notebook.cells:
            if cell.cell_type != "code":
                yield cell.source
            for output in cell.get("outputs", []):
                yield from output.get("data", {})
                yield str(output.get("data", {}).get("text/html", ""))

    return any("<img" in text or "![" in text or text.startswith("image/") for text in searched())


# -- called by name, in a process of its own ---------------------------------------------------------------------


def render(root: str, student: str, assignment: str, notebook: str, standing: dict[str, Any]) -> str:
    """Return one page. `root`: the course's folder. `notebook`: path. `standing`: see `feedback.Page`."""
    read = nbformat.read(Path(notebook), as_version=4)
    names = {"student": student, "assignment": assignment, "notebook": assignment}
    try:
        return _html(root, read, names, standing)
    except MemoryError:
        raise
    except Exception:  # an output that nbconvert cannot show must not cost the others their pages
        return _html(root, _plainly(read), names, standing)


def render_plainly(root: str, student: str, assignment: str, notebook: str, standing: dict[str, Any]) -> str:
    """Return the same page with all text as it was written, and without outputs of the student's cells."""
    names = {"student": student, "assignment": assignment, "notebook": assignment}
    return _html(root, _plainly(nbformat.read(Path(notebook), as_version=4)), names, standing)


def without_notebook(assignment: str, points: float, possible: float) -> str:
    """Return a page that tells only the score."""
    score = f"<h4>{html.escape(assignment)} (Score: {points:g} / {possible:g})</h4>"
    told = "The notebook cannot be shown as a page: it takes too long to lay out. Your instructor has the details."
    return _with_policy(f"<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>{score}<p>{told}</p></body></html>\n")


def _plainly(notebook: NotebookNode) -> NotebookNode:
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and not cell.source.startswith("<div><pre>"):
            cell.source = inert.literally(cell.source)
        if cell.cell_type == "code" and not is_grade(cell):
            text = "[outputs that cannot be shown are left out]\n" if cell.outputs else ""
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
    return notebook


def _html(root: str, notebook: NotebookNode, names: dict[str, str], standing: dict[str, Any]) -> str:
    resources = {"unique_key": names["assignment"], "nbgrader": {**names, "standing": standing}}
    page, _ = _exporter(root).from_notebook_node(notebook, resources=resources)
    return page


@functools.cache
def _exporter(root: str) -> InertPages:
    """Return the exporter of a course, which compiles its template once."""
    converter = GenerateFeedback(config=Course(Path(root)).config)
    given = [import_item(item) if isinstance(item, str) else item for item in converter.preprocessors]
    preprocessors = [_GivenGrades if item is GetGrades else item for item in given]
    if HideHiddenTests not in preprocessors:
        preprocessors.append(HideHiddenTests)
    config = Config(converter.config)
    config.Exporter.default_preprocessors = []
    exporter = InertPages(config=config)
    for preprocessor in preprocessors:
        exporter.register_preprocessor(preprocessor, enabled=True)
    return exporter
