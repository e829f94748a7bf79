"""docs/run.md names options that there are and recorded times; the tests' step of docs/github-actions.yml runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.warplab.running.programs import COURSE
from tests.warplab.running.test_pytest_plugin import TESTS
from warplab.running.run_command import parser
from warplab.running.strictness import BOOKS, DEFAULT, SECONDS

PAGE = (COURSE / "docs" / "run.md").read_text(encoding="utf-8")
STEPS = yaml.safe_load((COURSE / "docs" / "github-actions.yml").read_text(encoding="utf-8"))["jobs"]["kernels"]["steps"]


def test_the_page_names_all_options_and_rule_books_and_no_others() -> None:
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `--"))
    named = {*re.findall(r"--([a-z-]+)", rows)} - {"warplab-"}
    known = {option.lstrip("-") for action in parser()._actions for option in action.option_strings}
    assert named == known - {"h", "help", "m"}
    assert [*re.findall(r"`--strict (\w+)`", rows)] == [*BOOKS]
    assert f"| `--strict {DEFAULT}` (as it is) |" in PAGE
    assert f"| `--max-seconds {SECONDS:g}` |" in PAGE
    assert len(PAGE.splitlines()) <= 120


def test_the_times_beside_numbas_simulator_are_the_records() -> None:
    kept = COURSE / "evidence" / "foreign_scripts" / "results.json"
    if not kept.exists():
        pytest.skip("evidence/ is not here")
    times = json.loads(kept.read_text(encoding="utf-8"))["times"]

    names = {
        "nothing.py": "a kernel that does nothing",
        "test_reduction.py": "a reduction",
        "test_matmul.py": "a small product of matrices",
        "test_vecadd.py": "a sum of vectors",
    }
    assert names.keys() == times.keys()
    assert all(re.fullmatch(r"2 cores.* \(x86[-_]64\)", one["machine"]) for one in times.values())
    pairs = (f"{name} {times[script]['run']} and {times[script]['numba_simulator']}" for script, name in names.items())
    first, last = min(one["date"] for one in times.values()), max(one["date"] for one in times.values())
    days = first if first == last else f"{first} and {last[8:]}"
    said = f" simulator: {', '.join(pairs)} ({days}, 2 cores, x86-64). "
    assert said in " ".join(PAGE.split())


@pytest.mark.parametrize(
    ("text", "code"), [(TESTS.partition("def test_race")[0], 0), (TESTS, 1)], ids=["right", "wrong"]
)
def test_the_workflow_runs_a_projects_tests_and_writes_what_it_uploads(tmp_path, text: str, code: int) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_gpu.py").write_text(text)
    (command,) = [step["run"] for step in STEPS if "pytest --warplab" in step.get("run", "")]
    (upload,) = [step["with"]["sarif_file"] for step in STEPS if "upload-sarif" in step.get("uses", "")]
    known = {name: value for name, value in os.environ.items() if not name.startswith(("WARPLAB", "NUMBA", "PYTEST"))}
    more = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(COURSE),
        "PYTEST_ADDOPTS": "-p warplab.pytest_plugin",  # which an installed package has by itself
    }
    ran = subprocess.run(["bash", "-ec", command], cwd=tmp_path, env=known | more, capture_output=True, text=True)
    assert ran.returncode == code, ran.stdout + ran.stderr
    results = json.loads((tmp_path / upload).read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["DataRace"] * code
