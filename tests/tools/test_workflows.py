"""The workflows of a public host: what they call exists, and a release refuses a tag that the files contradict."""

from __future__ import annotations

import json
import os
import re
import subprocess

import nbformat
import pytest
import yaml

from warpcourse.paths import COURSE

WORKFLOWS = [*(COURSE / ".github" / "workflows").glob("*.yml"), *(COURSE / "docs").glob("github-*.yml")]
# The first major version of each action that runs on Node 24: GitHub announced runners without Node 20 for 2026-09-16.
ON_NODE_24 = {
    "actions/checkout": 5,
    "actions/setup-python": 6,
    "actions/upload-pages-artifact": 5,
    "actions/deploy-pages": 5,
    "github/codeql-action/upload-sarif": 4,
}
CHANGES = "# Changes\n\n## 0.3.0, 2027-01-02\n\n- New.\n\n## 0.2.0, 2026-12-01\n\n- Old.\n"


def steps(path):
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_target_and_module_that_a_workflow_runs_exists(path):
    targets = re.findall(r"^([a-z-]+):", (COURSE / "Makefile").read_text(), re.MULTILINE)
    commands = "\n".join(str(step.get("run", "")) for step in steps(path))
    called = re.findall(r"\bmake ([a-z-]+)", commands)
    tests = re.findall(r"\btests/[\w/.]+", path.read_text())
    assert called or tests or "python" in commands
    assert set(called) <= set(targets)
    if path.parent.name == "workflows":
        assert all((COURSE / name).exists() for name in tests if name != "tests")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_action_needs_a_node_that_runners_lack(path):
    used = [step["uses"].rsplit("@v", 1) for step in steps(path) if "uses" in step]
    assert used
    assert [name for name, major in used if int(major) < ON_NODE_24[name]] == []


def test_classroom_50_runs_what_the_workflow_runs():
    """Its tests' fields, and the least and most of them, are those of its wiki, Autograding Basics, August 2026."""
    page = (COURSE / "docs" / "instructors.md").read_text()
    (test,) = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1])
    assert test.keys() == {"name", "type", "setup", "run", "timeout", "points"}
    assert (test["type"], 1 <= test["timeout"] <= 600) == ("run", True)
    workflow = [step["run"] for step in steps(COURSE / "docs" / "github-exercise.yml") if "run" in step]
    assert [test["setup"], test["run"]] == workflow
    folder = COURSE / test["run"].split()[-1]
    cells = nbformat.read(folder / f"{test['name']}.ipynb", as_version=4).cells
    assert test["points"] == sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in cells)


@pytest.fixture
def hold(tmp_path):
    """hold(tag, citation) -> the finished step of a release that looks at a tag."""
    (step,) = [one for one in steps(COURSE / ".github/workflows/release.yml") if one.get("name", "").startswith("Hold")]
    (tmp_path / "warplab").mkdir()
    (tmp_path / "warplab" / "__init__.py").write_text('__version__ = "0.3.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)

    def start(tag, citation="0.3.0"):
        (tmp_path / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {citation}\n")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = ["bash", "-eo", "pipefail", "-c", step["run"]]
        environment |= {"GITHUB_REF_NAME": tag, "PYTHONSAFEPATH": ""}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return start


def test_a_tag_of_the_version_has_its_part_of_the_changes_as_notes(hold, tmp_path):
    done = hold("v0.3.0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "notes.md").read_text().split() == ["-", "New."]


def test_a_tag_that_the_files_contradict_is_no_release(hold, tmp_path):
    for tag, citation, said in (
        ("v0.2.0", "0.3.0", "the tag is 0.2.0, warplab/__init__.py says 0.3.0"),
        ("v0.3.0", "0.2.0", "CITATION.cff is of another version"),
    ):
        done = hold(tag, citation)
        assert (done.returncode, done.stdout.strip()) == (1, said)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES.replace("0.3.0, ", "0.3.1, "))
    assert "has no part '## 0.3.0, DATE'" in hold("v0.3.0").stdout


def test_the_citation_is_of_the_last_release():
    released = re.search(r"^## ([\d.]+), \d{4}", (COURSE / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert f"\nversion: {released}\n" in (COURSE / "CITATION.cff").read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_workflow_hands_a_right_to_write_to_what_it_runs(path):
    """Code of a pull request or a package's gets no token that writes; actions are of GitHub's own organisations."""
    workflow = yaml.safe_load(path.read_text())
    assert "pull_request_target" not in path.read_text()
    for job in workflow["jobs"].values():
        rights = job.get("permissions", workflow["permissions"])
        for step in job["steps"]:
            action = step.get("uses", "actions/")
            assert action.split("/")[0] in ("actions", "github")
            if action.startswith("actions/checkout@") and rights.get("contents") == "write":
                assert step.get("with", {}).get("persist-credentials") is False
