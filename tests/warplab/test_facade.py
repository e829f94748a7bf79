"""`from warplab import X`: the names that learners use, and what importing warplab costs."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import warplab

COURSE = Path(__file__).parents[2]


@pytest.mark.parametrize("name", warplab._MODULES)
def test_a_name_is_what_its_module_defines(name):
    module = importlib.import_module(warplab._MODULES[name])
    assert getattr(warplab, name) is getattr(module, name, module)


@pytest.mark.parametrize("name", warplab._BACKEND_NAMES)
def test_the_libraries_are_those_of_the_backend(name):
    from warplab.dropin import choice

    assert getattr(warplab, name) is choice.load(name)


def test_every_name_is_listed():
    assert set(warplab.__all__) <= set(dir(warplab))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'warplab' has no attribute 'nothing'"):
        _ = warplab.nothing


def imported(source: str) -> set[str]:
    """Return the names that `source` imports from warplab itself."""
    code = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith(("%", "!")))
    try:
        tree = ast.parse(code)
    except SyntaxError:  # CUDA C++ below a %%cuda magic, exercises' cells to be filled in
        return set()
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in froms if node.module == "warplab" and not node.level for alias in node.names}


def test_what_learners_import_is_there():
    wanted: dict[str, Path] = {}
    for folder in ("notebooks", "exercises", "solutions"):
        for path in sorted((COURSE / folder).rglob("*.ipynb")):
            for cell in json.loads(path.read_text())["cells"]:
                if cell["cell_type"] == "code":
                    wanted.update(dict.fromkeys(imported("".join(cell["source"])), path))
    for folder in ("kernels", "tests"):
        for path in sorted((COURSE / folder).rglob("*.py")):
            wanted.update(dict.fromkeys(imported(path.read_text()), path))
    assert {"cuda", "cp", "profile"} <= set(wanted)
    rooms = {path.stem for path in (COURSE / "warplab").iterdir()}
    assert {name: str(path) for name, path in wanted.items() if name not in {*warplab.__all__, *rooms}} == {}


def test_importing_warplab_needs_the_standard_library_only():
    code = (
        "import sys; import warplab; print([n for n in ('numpy', 'numba', 'cupy', 'matplotlib') if n in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(COURSE)}
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert ran.stdout == "[]\n"


def test_the_engine_alone_says_what_it_lacks(tmp_path):
    """Without warpcourse beside it, it gives its own names, not those of lessons, and a sentence for a command."""
    (tmp_path / "warplab").symlink_to(COURSE / "warplab")
    code = "import warplab; print('profile' in warplab.__all__, 'predict' in warplab.__all__)"
    options = {
        "cwd": tmp_path,
        "capture_output": True,
        "text": True,
        "env": {**os.environ, "PYTHONPATH": str(tmp_path)},
    }
    assert subprocess.run([sys.executable, "-S", "-c", code], **options).stdout == "True False\n"
    ran = subprocess.run([sys.executable, "-S", "-m", "warplab", "doctor"], **options)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: there is no command 'doctor' without the package warpcourse. ")
    assert "  run SCRIPT" in ran.stderr
