"""Which notebooks are shipped where TensorFlow has no package."""

from __future__ import annotations

import ast
import subprocess
import sys

import nbformat
import pytest

from warpcourse.bench import lab as lab_module
from warpcourse.desk import copies, lab_command
from warpcourse.desk.course_order import shipped
from warpcourse.paths import COURSE

LABS = lab_module.labs()
WITHOUT = [lesson.slug for lab in LABS if not lab.tensorflow for lesson in lab.lessons]


@pytest.fixture
def no_tensorflow(monkeypatch):
    find = lab_module.importlib.util.find_spec
    hidden = {"tensorflow": None}
    monkeypatch.setattr(lab_module.importlib.util, "find_spec", lambda name: hidden.get(name, name) and find(name))


def test_all_is_shipped_where_tensorflow_is():
    assert {one.path.stem for one in shipped()} == {lesson.slug for lab in LABS for lesson in lab.lessons}


def test_labs_that_need_tensorflow_are_left_out_with_a_sentence(no_tensorflow, monkeypatch, capsys):
    assert {one.path.stem for one in shipped()} == {*WITHOUT}
    monkeypatch.setattr(copies, "refresh", list)
    monkeypatch.setattr(lab_command.os, "execvpe", lambda *command: None)
    lab_command.main([])
    (said,) = [line for line in capsys.readouterr().out.splitlines() if "no TensorFlow here" in line]
    assert all((lab.slug in said) == lab.tensorflow for lab in LABS)


def test_the_other_labs_do_not_import_tensorflow():
    """All that lessons and exercises import at the top of a cell, in a process without TensorFlow and Keras."""
    lines = {line for one in shipped() if one.path.stem in WITHOUT for line in imports(COURSE / one.path)}
    assert len(lines) > 60
    done = without_tensorflow(lines)
    assert done.returncode == 0, done.stderr


# Lab 12 trains in processes of its own.
@pytest.mark.parametrize("lab", [lab for lab in LABS if lab.tensorflow and lab.simulator], ids=lambda lab: lab.slug)
def test_labs_that_say_so_need_tensorflow(lab):
    done = without_tensorflow(imports(lab.notebook))
    assert "import of tensorflow halted" in done.stderr, done.stderr


def without_tensorflow(lines):
    blocked = "import sys\nsys.modules['tensorflow'] = sys.modules['keras'] = None\n"
    command = [sys.executable, "-c", blocked + "\n".join(sorted(lines))]
    return subprocess.run(command, capture_output=True, text=True, cwd=COURSE)


def imports(path):
    """The import statements at the top level of a notebook's code cells."""
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.lstrip().startswith("%"):
            try:
                body = ast.parse(cell.source).body
            except SyntaxError:  # a line of IPython's
                continue
            found += [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    return found
