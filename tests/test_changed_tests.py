"""Which tests a change touches, in a small course."""

import importlib.util
import json

import pytest

from tests.support import changed_tests, run_record, tiers

FILES = {
    "warplab/__init__.py": '_NAMES = {"draw_banks": "draw.banks", "sliders": "draw.sliders"}',
    "warplab/draw/__init__.py": "",
    "warplab/draw/banks.py": "from warplab.draw import colours",
    "warplab/draw/colours.py": "",
    "warplab/draw/sliders.py": 'PAGE = "sliders.js"',
    "warplab/draw/sliders.js": "",
    "warplab/draw/pens.py": 'FOLDER = HERE / "draw" / "start"',
    "warplab/draw/start/__init__.py": "",
    "warplab/draw/start/site.py": "",
    "warplab/__main__.py": "",
    "warplab/desk/copies.py": "",
    "warpcourse/__init__.py": "NAMES = {}",
    "kernels/topic/ladder.py": 'FILE = f"{number}_ladder.cu"',
    "kernels/topic/1_ladder.cu": '#include "tile.cuh"',
    "kernels/topic/tile.cuh": "",
    "kernels/topic/table.py": 'NUMBA = "numba_kernels.py"',
    "kernels/topic/numba_kernels.py": "",
    "kernels/topic/by_number.py": "",
    "notebooks/01_topic.ipynb": json.dumps({"cells": [{"source": ["from warplab import draw_banks"]}]}),
    "solutions/01_topic/01_topic.ipynb": json.dumps({"cells": [{"source": "import numpy"}]}),
    "tests/conftest.py": "",
    "tests/test_notebooks.py": "",
    "tests/test_readme.py": 'PAGE = "README.md"',
    "tests/draw/test_banks.py": "from warplab.draw.banks import draw",
    "tests/draw/test_sliders.py": "from warplab import (\n    sliders,\n)",
    "tests/draw/conftest.py": "",
    "tests/draw/test_said.py": '"""As warplab.draw.sliders."""',
    "tests/draw/test_shapes.py": "from tests.support import shapes",
    "tests/support/shapes.py": "",
    "tests/support/lengths.py": "",
    "tests/test_command.py": 'COMMAND = ["-m", "warplab.__main__"]',
    "tests/test_pens.py": "from warplab.draw import pens",
    "tests/test_steps.py": 'STEPS = COURSE / "docs" / "steps.yml"',
    "docs/steps.yml": "",
    "tests/labs/01_topic/answers.py": "",
    "tests/labs/01_topic/test_exercise.py": "class TestTopic(ExerciseTests): pass",
    "tests/labs/01_topic/test_kernels.py": 'MODULES = [f"warplab.desk.{name}" for name in ("copies", "progress")]',
    "tests/labs/02_topic/test_ladder.py": "from kernels.topic.ladder import FILE",
    "tests/labs/02_topic/test_table.py": "from kernels.topic import gone, table",
    "tests/tools/test_targets.py": 'MAKE = "Makefile"',
    "Makefile": "",
    "README.md": "",
}
LESSON = {f"{changed_tests.LESSON_RUNS}[{kind}-01_topic]" for kind in ("right", "wrong")}
TOPIC = {f"tests/labs/01_topic/test_{name}.py" for name in ("exercise", "kernels")}
BANKS = ["warplab/draw/bank.py", "warplab/draw/banks.py"]
LADDER = {"tests/labs/02_topic/test_ladder.py", "tests/labs/02_topic/test_table.py"}  # what uses any Python beside it


@pytest.fixture
def course(tmp_path, monkeypatch):
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(changed_tests, "COURSE", tmp_path)


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        ("warplab/draw/banks.py", {"tests/draw/test_banks.py", "tests/labs/01_topic/test_exercise.py", *LESSON}),
        ("warplab/draw/colours.py", {"tests/draw/test_banks.py", "tests/labs/01_topic/test_exercise.py", *LESSON}),
        ("warplab/draw/sliders.js", {"tests/draw/test_sliders.py"}),
        ("warplab/__main__.py", {"tests/test_command.py"}),
        ("warplab/desk/copies.py", {"tests/labs/01_topic/test_kernels.py"}),
        ("solutions/01_topic/01_topic.ipynb", {"tests/labs/01_topic/test_exercise.py"}),
        ("docs/steps.yml", {"tests/test_steps.py"}),
        ("warplab/draw/start/site.py", {"tests/test_pens.py"}),  # in a folder that is put on a path
        ("tests/labs/01_topic/answers.py", {*TOPIC, *LESSON}),
        ("tests/draw/conftest.py", {f"tests/draw/test_{name}.py" for name in ("banks", "said", "shapes", "sliders")}),
        ("tests/support/shapes.py", {"tests/draw/test_shapes.py"}),
        ("tests/support/lengths.py", set()),
        ("tests/test_notebooks.py", {"tests/test_notebooks.py"}),
        ("README.md", {"tests/test_readme.py"}),
        ("Makefile", {"tests/tools/test_targets.py"}),
        ("kernels/topic/numba_kernels.py", {"tests/labs/02_topic/test_table.py"}),
        ("kernels/topic/tile.cuh", LADDER),  # through a file whose name stands nowhere
        ("kernels/topic/by_number.py", LADDER),
        ("kernels/topic/gone.py", {"tests/labs/02_topic/test_table.py"}),  # deleted, or renamed
        ("notebooks/02_gone.ipynb", set()),  # deleted with its lab
        ("pyproject.toml", {name for name in FILES if "/test_" in name}),
        ("docs/new.md", set()),
    ],
)
def test_what_a_change_touches(course, changed, selected):
    assert set(changed_tests.select([changed], sorted({*FILES, changed}))) == selected


def test_the_names_of_this_course_are_read():
    facade = changed_tests.Graph([]).facade
    assert {"cuda", "draw_banks", "draw_halo"} <= facade.keys()
    assert all(importlib.util.find_spec(module) for module in facade.values())


def test_the_nearest_come_first_and_what_does_not_fit_is_left(course, monkeypatch):
    found = changed_tests.select(["warplab/draw/colours.py", "tests/test_readme.py"], list(FILES))
    assert found[:2] == ["tests/test_readme.py", "tests/draw/test_banks.py"]
    seconds = {name: {"": {"": 0.1, "all": 5.0}} for name in FILES} | {"short": {"": {"": 0.1, "all": 2.0}}}
    monkeypatch.setattr(tiers, "read", lambda: (1.0, seconds))
    assert changed_tests.fitting([*found[:2], "short"], 7.0) == ([found[0], "short"], [found[1]])


def test_it_starts_from_the_last_whole_run_that_is_an_ancestor(course, tmp_path, monkeypatch):
    def commit(subject: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        changed_tests.git("add", ".")
        changed_tests.git(*author, "commit", "-q", "--allow-empty", "-m", subject)
        return changed_tests.git("rev-parse", "HEAD")[0]

    changed_tests.git("init", "-q", "-b", "main")
    first, second = commit("first"), commit("second")
    changed_tests.git("checkout", "-q", "-b", "side")
    side = commit("side")
    changed_tests.git("checkout", "-q", "main")
    runs = tmp_path.parent / f"{tmp_path.name}.json"
    monkeypatch.setattr(run_record, "WHOLE_RUNS", runs)
    assert changed_tests.last_whole_run() == ""
    runs.write_text(json.dumps([{"commit": one} for one in (first, second, side, "0" * 40)]))
    assert changed_tests.last_whole_run() == second
    (tmp_path / "README.md").write_text("new")
    (tmp_path / "new.py").write_text("")
    (tmp_path / "warplab/draw/banks.py").rename(tmp_path / "warplab/draw/bank.py")
    changed_tests.git("add", "-A")
    assert changed_tests.changed_since(second) == ["README.md", "new.py", *BANKS]


def test_what_is_no_commit_is_refused_in_a_sentence(capsys):
    with pytest.raises(SystemExit, match="2"):
        changed_tests.main(["--since", "no-such-branch"])
    assert capsys.readouterr().err.startswith("error: HEAD has no ancestor in common with 'no-such-branch'; give")
