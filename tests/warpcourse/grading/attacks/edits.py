"""What an attack does to a notebook beyond its answers, or hands in beside it. Named by `# edit:` in its file."""

from __future__ import annotations

import base64
import copy
import os
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from tests.support.pages import SCRIPT


def tests_of(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


def delete_tests(notebook: NotebookNode, folder: Path) -> None:
    for cell in tests_of(notebook):
        notebook.cells.remove(cell)


def empty_tests(notebook: NotebookNode, folder: Path) -> None:
    for cell in tests_of(notebook):
        cell.source = "4.0"


def relabel_tests(notebook: NotebookNode, folder: Path) -> None:
    for cell in tests_of(notebook):
        cell.source = "4.0"
        cell.metadata.nbgrader |= {"solution": True, "locked": False, "points": 1000, "checksum": "0"}


def drop_names(notebook: NotebookNode, folder: Path) -> None:
    """As if another program had saved it: cells are recognised by their text, of which tests and setup keep most."""
    for cell in notebook.cells:
        if cell.metadata.nbgrader.locked:
            cell.source += "\n1000.0" if cell.metadata.nbgrader.grade else "\nassert_allclose = checks.kernel = print"
        cell.metadata = {}
        cell.id = f"a{len(cell.source)}"
    notebook.cells += [new_code_cell(cell.source) for cell in notebook.cells]


def reverse(notebook: NotebookNode, folder: Path) -> None:
    notebook.cells.reverse()


def copy_tests(notebook: NotebookNode, folder: Path) -> None:
    for position in (0, len(notebook.cells)):
        for cell in tests_of(notebook)[:4]:
            double = copy.deepcopy(cell)
            double.source, double.id = "pass", f"copy-{position}-{cell.id}"
            notebook.cells.insert(position, double)


def add_tests(notebook: NotebookNode, folder: Path) -> None:
    for name in ("test-5-own", "setup-own"):
        cell = copy.deepcopy(tests_of(notebook)[0])
        cell.source, cell.id = "1000.0", name
        cell.metadata.nbgrader |= {"grade_id": name, "points": 1000}
        notebook.cells.append(cell)


def change_setup(notebook: NotebookNode, folder: Path) -> None:
    notebook.cells[0].source = "class np:\n    arange = linspace = array = zip\n\ndef assert_allclose(*_, **__): pass\n"


def bring_modules(notebook: NotebookNode, folder: Path) -> None:
    for name in ("numpy/__init__.py", "numpy/testing.py", "warplab/__init__.py", "warplab/checks.py", "os.py"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("def __getattr__(name):\n    return lambda *arguments, **options: None\n")
    for name in ("sitecustomize.py", "usercustomize.py", "conftest.py", "ipython_config.py"):
        (folder / name).write_text("import os\n\nos._exit(0)\n")


def hand_in_links(notebook: NotebookNode, folder: Path) -> None:
    course = folder.parents[3]
    name = folder.name
    (folder / f"{name}.ipynb").symlink_to(course / "solutions" / name / f"{name}.ipynb")
    (folder / "secret").symlink_to(course / "grading" / "secret")
    (folder / "all").symlink_to(course)


def link_the_folder(notebook: NotebookNode, folder: Path) -> None:
    folder.rmdir()
    folder.symlink_to(f"../../../solutions/{folder.name}")


def link_the_students_folder(notebook: NotebookNode, folder: Path) -> None:
    folder.rmdir()
    folder.parent.rmdir()
    folder.parent.symlink_to("honest-right")


def link_to_itself(notebook: NotebookNode, folder: Path) -> None:
    folder.rmdir()
    folder.parent.rmdir()
    folder.parent.symlink_to(folder.parent.name)


def hand_in_a_file_as_folder(notebook: NotebookNode, folder: Path) -> None:
    folder.rmdir()
    folder.write_bytes(nbformat.writes(notebook).encode())


def hand_in_brackets(notebook: NotebookNode, folder: Path) -> bytes:
    return b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": ' + b"[" * 500_000


def put_folders_in_the_way(notebook: NotebookNode, folder: Path) -> None:
    """Names that the grader itself gives to files: as folders."""
    for name in ("timestamp.txt", f"{folder.name}.html", f"{folder.name}.ipynb.d", "data", ".new", "feedback"):
        (folder / name / "inner").mkdir(parents=True)
        (folder / name / "inner" / "file.txt").write_text("x")


def hand_in_a_folder_as_notebook(notebook: NotebookNode, folder: Path) -> NotebookNode:
    (folder / f"{folder.name}.ipynb" / "inner").mkdir(parents=True)
    (folder / f"{folder.name}.ipynb" / "inner" / "file.txt").write_text("x")
    return notebook


def hand_in_long_names(notebook: NotebookNode, folder: Path) -> None:
    """A path that just fits here, and not where the graded copy lies."""
    here = os.open(folder, os.O_RDONLY)
    left = os.pathconf(folder, "PC_PATH_MAX") - len(os.fsencode(folder)) - 2
    try:
        while left > 255:
            name = "d" * min(250, left - 101)
            os.mkdir(name, dir_fd=here)
            inner = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here, left = inner, left - len(name) - 1
        os.close(os.open("f" * left, os.O_CREAT | os.O_WRONLY, dir_fd=here))
    finally:
        os.close(here)


def hand_in_deep_folders(notebook: NotebookNode, folder: Path) -> None:
    """Folders whose path is longer than a path may be."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def write_endless_markdown(notebook: NotebookNode, folder: Path) -> None:
    notebook.cells.append(new_markdown_cell("\\begin{a}" * 110_000))


def hand_in_vast_metadata(notebook: NotebookNode, folder: Path) -> bytes:
    text = nbformat.writes(notebook).encode()
    start = text.index(b'"metadata": {', text.index(b'"cells"')) + len(b'"metadata": {')
    filling = b'{"":{"":{}}},' * 2_450_000
    return text[:start] + b'"a": [' + filling + b"0], " + text[start:]


def rebind_between_tests(notebook: NotebookNode, folder: Path) -> None:
    text = """@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    if i < y.size and y.size > 65:
        y[i] = 3 * x[i]
"""
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    notebook.cells.insert(ids.index("test-5-kernel"), new_code_cell(text))


def add_cells_that_fail(notebook: NotebookNode, folder: Path) -> None:
    """One cell for each bit of a hidden argument, which fails in one of two ways, or does not fail at all."""
    for number in range(8 * len("hidden_argument_000000000")):
        byte, bit = divmod(number, 8)
        text = (
            f"told = bytes(''.join(seen), 'utf-8')\n"
            f"if told[{byte}] >> {bit} & 1:\n    raise {('KeyError', 'ValueError')[number % 2]}\n"
        )
        notebook.cells.append(new_code_cell(text))


def hidden_argument_in_errors(notebook: NotebookNode) -> bytes:
    """Return what the cells of `add_cells_that_fail` tell by which of them failed."""
    bits = [
        any(output.output_type == "error" for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.startswith("told = bytes(")
    ]
    return bytes(sum(bits[start + bit] << bit for bit in range(8)) for start in range(0, len(bits) - 7, 8))


# -- scripts in what instructors and students open ---------------------------------------------------------------

ON_ERROR = f'<img src="none" onerror="{SCRIPT}">'
PICTURE = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{SCRIPT}"><script>{SCRIPT}</script></svg>'


def script_in_markdown(notebook: NotebookNode, folder: Path) -> None:
    texts = (
        ON_ERROR,
        f"text {ON_ERROR} text",
        f"<script>{SCRIPT}</script>",
        PICTURE,
        f'<details ontoggle="{SCRIPT}" open><summary>1</summary></details>',
        f'<iframe srcdoc="<script>parent.eval(`{SCRIPT.replace("`", "&#39;")}`)</script>"></iframe>',
        f"<math><mtext><table><mglyph><style><!--</style>{ON_ERROR}",
        f"<noscript><p title='</noscript>{ON_ERROR}'>",
        f"$$ x {ON_ERROR} $$ and \\begin{{a}}{ON_ERROR}\\end{{a}}",
        f"```mermaid\n</pre>{ON_ERROR}\n```",
        f"```\n```\n\n> - {ON_ERROR}",
    )
    notebook.cells += [new_markdown_cell(text) for text in texts]


def script_in_links(notebook: NotebookNode, folder: Path) -> None:
    target = f"javascript:{SCRIPT.replace('(', '%28').replace(')', '%29').replace('`', '%27')}"
    texts = (
        f"[a]({target})",
        f"[a](<{target}>)",
        f"<{target}>",
        f"[a][1]\n\n[1]: {target}",
        f'<a href="{target}">a</a>',
        f'<a href=" &#1; java&Tab;script:{SCRIPT}">a</a>',
        f"[a](JaVaScRiPt:{target.partition(':')[2]})",
    )
    notebook.cells += [new_markdown_cell(text) for text in texts]


def script_in_raw_cells(notebook: NotebookNode, folder: Path) -> None:
    for kind in ({}, {"raw_mimetype": "text/html"}, {"format": "text/html"}):
        notebook.cells.append(new_raw_cell(ON_ERROR, metadata=kind))


def script_in_attachments(notebook: NotebookNode, folder: Path) -> None:
    data = base64.b64encode(PICTURE.encode()).decode()
    for mime in ("image/svg+xml", "text/html", f'image/png" onerror="{SCRIPT}" x="'):
        text = "![a](attachment:a) [a](attachment:a) <img src=attachment:a> <object data=attachment:a></object>"
        notebook.cells.append(new_markdown_cell(text, attachments={"a": {mime: data}}))


def script_in_outputs(notebook: NotebookNode, folder: Path) -> None:
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    script_in_markdown(notebook, folder)
    script_in_links(notebook, folder)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown" and cell.source not in texts]
    notebook.cells = [cell for cell in notebook.cells if cell.source not in texts]
    source = "\n".join(
        (
            "from IPython.display import display",
            f"texts, script = {texts!r}, {SCRIPT!r}",
            "for kind in ('html', 'markdown', 'latex', 'plain', 'javascript'):",
            "    for text in texts:",
            "        display({f'text/{kind}': text}, raw=True)",
            "display({'application/javascript': script, 'image/svg+xml': texts[3]}, raw=True)",
            "display({'image/png': f'" + '" onerror="{script}' + "', 'image/jpeg': 'YQ=='}, raw=True)",
            "display({'text/html': texts[0]}, metadata={'text/html': {'isolated': True}}, raw=True)",
            "raise type(texts[0], (Exception,), {})(texts[0])",
        )
    )
    notebook.cells.append(new_code_cell(source))


def script_in_names(notebook: NotebookNode, folder: Path) -> None:
    target = f"javascript:{SCRIPT.replace('(', '%28').replace(')', '%29').replace('/', '%2f').replace('`', '%27')}"
    # Of links the grader's note tells the names.
    names = (
        f"[a]({target.replace('body:JSON', 'b:JSON')[:240]})",
        "<img src=none onerror=alert(1)>",
        "[a](javascript:1)",
    )
    for name in names:
        (folder / name[:250]).symlink_to("/etc/hostname")
    short = "[a](javascript:document.documentElement.setAttribute%28%27data-script-of-a-student%27,%27ran%27%29)"
    (folder / short).symlink_to("/etc/hostname")


def script_in_files(notebook: NotebookNode, folder: Path) -> None:
    for name in ("page.html", "page.xhtml", "picture.svg", "page.htm"):
        kind = ' xmlns="http://www.w3.org/1999/xhtml"' if name == "page.xhtml" else ""
        text = PICTURE if name.endswith("svg") else f"<html{kind}><body><script>{SCRIPT}</script></body></html>"
        (folder / name).write_text(text)
        notebook.cells.append(new_markdown_cell(f"[{name}]({name}) and [again](./{name}) ![p]({name})"))


# -- cells, kinds and characters that no student's program writes ------------------------------------------------


def change_kinds(notebook: NotebookNode, folder: Path) -> None:
    for cell in notebook.cells:
        given = cell.metadata.get("nbgrader", {})
        if given.get("solution") or given.get("grade"):
            cell.cell_type = "raw" if given.get("grade") else "markdown"
            cell.pop("outputs", None)
            cell.pop("execution_count", None)
    notebook.cells += [new_code_cell("This is prose."), new_code_cell("4.0")]


def take_ids(notebook: NotebookNode, folder: Path) -> None:
    """Cells with the ids of the tests in their places, and the tests without ids and names."""
    for cell in tests_of(notebook):
        own = new_code_cell("4.0", id=cell.id)
        notebook.cells.insert(notebook.cells.index(cell), own)
        cell.metadata, cell.id = {}, f"{cell.id}-2"
        own.metadata = {"nbgrader": {"grade": True, "points": 1000, "solution": True, "grade_id": f"{cell.id} "}}


def add_thousands_of_cells(notebook: NotebookNode, folder: Path) -> None:
    notebook.cells += [new_code_cell("") for _ in range(60_000)] + tests_of(notebook)


def add_likenesses(notebook: NotebookNode, folder: Path) -> None:
    texts = [cell.source for cell in tests_of(notebook)]
    for cell in notebook.cells:
        cell.metadata = {}
        cell.id = f"x{id(cell)}"
    notebook.cells += [new_code_cell(f"{text * 20}#{n}") for n in range(180) for text in texts]


def claim_odd_formats(notebook: NotebookNode, folder: Path) -> bytes:
    text = nbformat.writes(notebook).encode()
    return text.rstrip()[:-1] + b', "nbformat": 3, "nbformat_minor": 1e400, "worksheets": [{"cells": [[]]}, {}]}'


def add_control_characters(notebook: NotebookNode, folder: Path) -> bytes:
    odd = "\x00\x1b[2J\u2028\u202e\ufeff\U000e0001" * 1000
    notebook.cells.insert(1, new_code_cell(odd))
    notebook.cells.append(new_markdown_cell(odd))
    text = nbformat.writes(notebook).replace("def double", "#half\\ndef double")
    return text.encode("utf-8").replace(b"half", b"\\ud800\\udfff")


def write_endless_numbers(notebook: NotebookNode, folder: Path) -> bytes:
    notebook.metadata.number, notebook.cells[0].metadata.number = "DIGITS", "NAN"
    notebook.cells[1].execution_count = 7_777_777
    text = nbformat.writes(notebook).encode()
    text = text.replace(b'"DIGITS"', b"9" * 100_000).replace(b'"NAN"', b"[NaN, -Infinity, 1e999999]")
    return text.replace(b"7777777", b"7" * 5_000)


def change_types(notebook: NotebookNode, folder: Path) -> None:
    notebook.metadata.kernelspec = ["python3", {"name": None}]
    notebook.metadata.language_info = {"name": 3, "codemirror_mode": [[]], "version": None}
    notebook.metadata.signature = notebook.metadata.orig_nbformat = {"": []}
    for cell in notebook.cells:
        cell.metadata |= {"tags": {"a": 1}, "collapsed": [], "jupyter": 7, "slideshow": None, "name": ["a"] * 3}
        if cell.metadata.nbgrader.locked:
            cell.metadata.nbgrader |= {"points": {}, "checksum": [1], "schema_version": "3", "cell_type": 1}


def cover_the_page(notebook: NotebookNode, folder: Path) -> None:
    texts = (
        '<div style="position:fixed;top:0;left:0;width:100%;height:100%;background:white">Score: 6 of 6</div>',
        "<style>body *{display:none} body::after{content:'Score: 6 of 6'}</style>",
        '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/"><base href="http://127.0.0.1:9/">',
        '<form action="http://127.0.0.1:9/"><input name="password"><button autofocus>Log in again</button></form>',
        '<img src="http://127.0.0.1:9/who.png"><picture><source srcset="//127.0.0.1:9/a.png"></picture>',
        '<a id="title" name="body" class="navbar label-success" href="http://127.0.0.1:9/">Score: 6 of 6</a>',
        '<link rel="stylesheet" href="http://127.0.0.1:9/a.css"><video src="http://127.0.0.1:9/v" autoplay></video>',
        '<table><td colspan="9999" rowspan="9999" style="background:url(http://127.0.0.1:9/)">Score: 6 of 6</table>',
        "</div></div></body></html><h1>Score: 6 of 6</h1><!--",
    )
    notebook.cells += [new_markdown_cell(text) for text in texts]
    show = f"from IPython.display import HTML, display\nfor text in {texts!r}:\n    display(HTML(text))"
    notebook.cells.append(new_code_cell(show))


def pile_up_characters(notebook: NotebookNode, folder: Path) -> None:
    text = "a" + "\u0301" * 200_000 + "\u202e\u2066" * 2_000 + "\u200b" * 50_000 + "\u0600" * 1_000 + "\ufdfd" * 1_000
    notebook.cells.append(new_markdown_cell(text))
    notebook.cells.append(new_markdown_cell("| " * 3_000 + "\n" + "|-" * 3_000))
    source = f"text = {text!r}\nprint(text)\nprint('\\b\\r\\x7f' * 100_000)\nraise ValueError(text)"
    notebook.cells.append(new_code_cell(source))
