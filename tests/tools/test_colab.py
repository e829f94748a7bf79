"""What Colab and Binder are given: packages that they lack, lessons with a first cell, badges of a named repository."""

from __future__ import annotations

import re
import subprocess

import nbformat
import pytest

from tools import colab_notebooks, colab_packages, environment
from warpcourse.paths import COURSE


def test_only_what_is_missing_is_installed_and_nothing_is_replaced(monkeypatch):
    commands = []
    there = {"numpy", "ipython", "llvmlite", "matplotlib"}
    monkeypatch.setattr(colab_packages, "_there", there.__contains__)
    monkeypatch.setattr(
        colab_packages.subprocess, "run", lambda command: commands.append(command) or subprocess.CompletedProcess([], 0)
    )
    assert colab_packages.main() == 0
    (command,) = commands
    assert "--no-deps" in command
    assert not {"--upgrade", "-U"} & set(command)
    wanted = {re.split("==", word)[0] for word in command if "==" in word}
    assert {"numba-cuda", "nvidia-cuda-nvrtc", "nvidia-nvvm", "ipywidgets"} <= wanted
    assert not wanted & (there | {"jupyterlab", "jupyter-server", "uv", "mpich"})


def test_each_lesson_of_the_small_set_gets_the_cell_and_a_badge(tmp_path, monkeypatch, capsys):
    lessons = {path.name for path in (COURSE / "notebooks").glob("*.ipynb") if path.name[:2] in environment.SMALL_LABS}
    real = COURSE / "notebooks"
    monkeypatch.setattr(colab_notebooks, "COURSE", tmp_path)
    for name in ("notebooks", "requirements-small.txt"):
        (tmp_path / name).symlink_to(COURSE / name)
    assert colab_notebooks.main(["https://github.com/some/course.git"]) == 0
    badges = capsys.readouterr().out.splitlines()
    made = sorted((tmp_path / "_build" / "colab").glob("*.ipynb"))
    assert {path.name for path in made} == {name for name in lessons if not name.startswith("10")}
    assert len(made) >= 8
    assert len(badges) == len(made)
    for path, badge in zip(made, badges, strict=True):
        assert f"/github/some/course/blob/colab/{path.name})" in badge
        assert f"https://mybinder.org/v2/gh/some/course/colab?urlpath=lab/tree/{path.name})" in badge
        notebook, lesson = (nbformat.read(place, as_version=4) for place in (path, real / path.name))
        nbformat.validate(notebook)
        assert notebook.cells[1:] == lesson.cells
        assert "git clone -q --depth 1 https://github.com/some/course ~/warplab" in notebook.cells[0].source
    binder = made[0].parent / ".binder"
    assert re.fullmatch(r"python-3\.1[1-3]\n", (binder / "runtime.txt").read_text())
    in_image = dict(line.split("==") for line in (binder / "requirements.txt").read_text().splitlines())
    # NVIDIA's licence lets nobody pass on an image with its assembler; numba-cuda would bring its packages along.
    assert in_image.keys() == set(colab_notebooks.IN_IMAGE)
    assert not [name for name in in_image if re.match("nvidia|cuda|numba-cuda", name)]


@pytest.mark.parametrize("given", [[], ["course"], ["https://example.org/x/y"]])
def test_another_address_is_refused(given, capsys):
    assert colab_notebooks.main(given) == 2
    assert "make colab URL=https://github.com/" in capsys.readouterr().err
