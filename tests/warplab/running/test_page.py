"""docs/run.md names options that there are; the shell steps of docs/github-actions.yml run."""

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
