"""Which notebooks are shipped where TensorFlow has no package."""

from __future__ import annotations

import ast
import subprocess
import sys

import nbformat
import pytest

from tools import environment
from warpcourse.bench import lab as lab_module
from warpcourse.desk import copies, lab_command
from warpcourse.desk.course_order import shipped
from warpcourse.paths import COURSE

LABS = lab_module.labs()
WITHOUT = [lesson.slug for lab in LABS if not lab.tensorflow for lesson in lab.lessons]


@pytest.fixture
def no_tensorflow(monkeypatch):
    find = lab_module.importlib.util.find_spec
    hidden = {"tensorflow": None, "onnx": None}
    monkeypatch.setattr(lab_module.importlib.util, "find_spec", lambda name: hidden.get(name, name) and find(name))


@pytest.fixture
def new_python(monkeypatch):
    monkeypatch.setattr(lab_module, "FIRST_WITHOUT_TENSORFLOW", sys.version_info[:2])


def test_all_is_shipped_where_tensorflow_is():
    assert {one.path.stem for one in shipped()} == {lesson.slug for lab in LABS for lesson in lab.lessons}


@pytest.fixture
def no_server(monkeypatch):
    monkeypatch.setattr(copies, "refresh", list)
    monkeypatch.setattr(lab_command.os, "execvpe", lambda *command: None)


def test_after_the_small_set_up_all_is_shipped_and_labs_say_what_they_lack(no_tensorflow, no_server, capsys):
    assert {one.path.stem for one in shipped()} == {lesson.slug for lab in LABS for lesson in lab.lessons}
    lab_command.main([])
    assert "Labs 07, 08, 09, 11, 12 need packages not installed" in capsys.readouterr().out
    lab_module.need("06")
    with pytest.raises(lab_module.MissingPackages, match=r"Lab 09 needs onnx, which .*: make lab LABS=09"):
        lab_module.need("09")


def test_where_tensorflow_has_no_package_another_python_is_named(no_tensorflow, new_python):
    with pytest.raises(lab_module.MissingPackages, match=r"Lab 07 needs tensorflow, .*: PYTHON=python3\.13 make setup"):
        lab_module.need("07")


def test_labs_that_need_tensorflow_are_left_out_with_a_sentence(no_tensorflow, new_python, no_server, capsys):
    assert {one.path.stem for one in shipped()} == {*WITHOUT}
    lab_command.main([])
    (said,) = [line for line in capsys.readouterr().out.splitlines() if "no TensorFlow here" in line]
    assert all((lab.slug in said) == lab.tensorflow for lab in LABS)


def test_the_other_labs_do_not_import_tensorflow():
    """All that lessons and exercises import at the top of a cell, in a process without TensorFlow and Keras."""
    lines = {line for one in shipped() if one.path.stem in WITHOUT for line in imports(COURSE / one.path)}
    assert len(lines) > 60
    done = without(lines, "tensorflow", "keras")
    assert done.returncode == 0, done.stderr


def test_labs_of_the_small_set_import_nothing_that_it_lacks():
    small = {lesson.slug for lab in LABS if not lab.needs for lesson in lab.lessons}
    assert {slug[:2] for slug in small} == environment.SMALL_LABS
    lines = {line for one in shipped() if one.path.stem in small for line in imports(COURSE / one.path)}
    done = without(lines, "cupy", "keras", *{name for lab in LABS for name in lab.needs})
    assert done.returncode == 0, done.stderr


# Lab 12 trains in processes of its own.
@pytest.mark.parametrize("lab", [lab for lab in LABS if lab.tensorflow and lab.simulator], ids=lambda lab: lab.slug)
def test_labs_that_say_so_need_tensorflow(lab):
    done = without(imports(lab.notebook), "tensorflow", "keras")
    assert f"Lab {lab.number:02} needs tensorflow" in done.stderr, done.stderr


def without(lines, *packages):
    """Run the lines in a process that lacks the packages."""
    blocked = f"import sys\nsys.modules |= dict.fromkeys({packages})\n"
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
