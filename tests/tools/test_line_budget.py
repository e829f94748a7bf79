"""The lines of code by room, and what budget.toml allows."""

from __future__ import annotations

import json
import tomllib
from collections import Counter

import pytest

from tools import line_budget
from warpcourse.paths import COURSE

FILES = {
    "warplab/__init__.py": 2,
    "warplab/simulator/run/loop.py": 30,
    "warplab/simulator/step.py": 10,
    "warplab/hopper.cuh": 5,
    "warplab/draw/bars.py": 7,
    "kernels/matmul/tiled.cu": 40,
    "tools/bench.py": 3,
    "evidence/counters/launches.py": 1000,
    "tests/warplab/test_loop.py": 2000,
    "notebooks/notes.py": 500,
    "attic/__init__.py": 1,
    "attic/old.py": 4,
}
BUDGET = {
    "allowed": {line_budget.ALL: 57, "warplab": 50},
    "release": {"version": "1.0", "lines": {"warplab/simulator": 35, "warplab/draw": 9, "warplab": 46}},
}


@pytest.fixture
def course(tmp_path, monkeypatch):
    for name, lines in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("pass\n" * lines)
    monkeypatch.setattr(line_budget, "COURSE", tmp_path)
    return tmp_path


def written(course, budget) -> None:
    text = "[allowed]\n" + "".join(f'"{key}" = {value}\n' for key, value in budget["allowed"].items())
    text += f'[release]\nversion = "{budget["release"]["version"]}"\n[release.lines]\n'
    text += "".join(f'"{key}" = {value}\n' for key, value in budget["release"]["lines"].items())
    (course / "budget.toml").write_text(text)


def test_each_line_counts_in_its_room_its_package_and_in_all(course):
    found = line_budget.count(course, ".py")
    assert found["warplab/simulator"] == 40
    assert found["warplab"] == 49
    assert found[line_budget.ALL] == 57
    assert found["attic"] == 5  # a package that no list names
    assert (found["tools"], found["evidence"], found["tests"]) == (3, 1000, 2000)
    assert not [name for name in found if name.startswith(("notebooks", "tests/", "evidence/"))]
    assert line_budget.count(course, ".cu", ".cuh") == {
        "kernels/matmul": 40,
        "kernels": 40,
        "warplab": 5,
        line_budget.ALL: 45,
    }


def test_within_the_budget(course, capsys):
    written(course, BUDGET)
    assert line_budget.main([]) == 0
    out = capsys.readouterr().out
    assert "error" not in out
    assert ["warplab/simulator", "40", "+5", "0"] in [line.split() for line in out.splitlines()]
    figures = json.loads(out.splitlines()[-1])
    assert figures["python"]["warplab"] == 49
    assert figures["cuda"][line_budget.ALL] == 45
    assert figures["allowed"] == BUDGET["allowed"]


def test_a_tree_too_large_fails_and_names_the_room(course, capsys):
    written(course, BUDGET)
    (course / "warplab" / "simulator" / "more.py").write_text("pass\n" * 2)
    assert line_budget.main([]) == 1
    errors = [line for line in capsys.readouterr().out.splitlines() if line.startswith("error: ")]
    assert [error.split(" has ")[0] for error in errors] == [f"error: {line_budget.ALL}", "error: warplab"]
    assert "warplab has 51 lines of Python, 50 are allowed; warplab/simulator has grown most (+7)." in errors[1]


def test_a_release_is_what_the_budget_reads(course, capsys):
    assert line_budget.main(["--release", "2.0"]) == 0
    found = tomllib.loads(capsys.readouterr().out)["release"]
    assert found["version"] == "2.0"
    assert Counter(found["lines"]) == line_budget.count(course, ".py")


def test_the_course_is_within_its_budget():
    budget = tomllib.loads((COURSE / "budget.toml").read_text(encoding="utf-8"))
    assert line_budget.too_large(line_budget.count(COURSE, ".py"), budget) == []
