"""The hub's files: what can be held without a server (the class itself: `python -m evidence.hub`)."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from traitlets.config import Config

from warpcourse.desk.own_version import PROGRESS
from warpcourse.paths import COURSE

HUB = COURSE / "hub"
SCHEMA = json.loads((Path(__file__).parent / "values.schema.json").read_text())
VALUES = yaml.safe_load((HUB / "kubernetes.yaml").read_text())


def settings(monkeypatch, **environment: str) -> Config:
    for name, value in {"WARPLAB_HUB": "/hub", "WARPLAB_EXCHANGE": "/exchange", **environment}.items():
        monkeypatch.setenv(name, value)
    config = Config()
    exec((HUB / "jupyterhub_config.py").read_text(), {"get_config": lambda: config})
    return config


def test_the_values_for_kubernetes_are_such_as_the_chart_takes():
    jsonschema.validate(VALUES, SCHEMA)


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        (("singleuser",), "memmory", {"limit": "2G"}),
        (("singleuser",), "startTimeout", "long"),
        (("cull",), "enabled", "soon"),
        ((), "singeluser", {}),
    ],
)
def test_the_schema_finds_what_is_misspelt(place, key, value):
    values = copy.deepcopy(VALUES)
    inner = values
    for name in place:
        inner = inner[name]
    inner[key] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, SCHEMA)


def test_both_hubs_start_the_same_server_with_the_same_settings(monkeypatch):
    config, single = settings(monkeypatch), VALUES["singleuser"]
    image = (HUB / "Dockerfile").read_text()
    assert f'CMD ["{single["cmd"]}"]' in image
    assert single["cmd"].removeprefix(single["extraEnv"]["WARPLAB_HUB"]) == config.Spawner.cmd[0].removeprefix("/hub")
    assert single["extraEnv"] == {
        **config.Spawner.environment,
        "WARPLAB_HUB": re.search(r"WARPLAB_HUB=(\S+)", image)[1],
    }
    assert (single["defaultUrl"], single["startTimeout"]) == (config.Spawner.default_url, config.Spawner.start_timeout)
    assert VALUES["hub"]["concurrentSpawnLimit"] == config.JupyterHub.concurrent_spawn_limit


def test_a_student_finds_the_desk_and_what_is_next(monkeypatch):
    (desk,) = re.findall(r'extra_labextensions_path="\$WARPLAB_HUB/course/(\S+)"', (HUB / "server").read_text())
    assert list((COURSE / desk).glob("*/package.json"))
    copies = re.search(r'WARPLAB_MINE="\$HOME/(\w+)"', (HUB / "server").read_text())[1]
    assert settings(monkeypatch).Spawner.default_url == f"/lab/tree/{copies}/{PROGRESS}"


def test_idle_servers_end_after_an_hour_or_what_is_named(monkeypatch):
    for seconds, given in ((VALUES["cull"]["timeout"], {}), (60, {"WARPLAB_HUB_CULL": "60"})):
        config = settings(monkeypatch, **given)
        (service,) = config.JupyterHub.services
        (role,) = config.JupyterHub.load_roles
        assert service["command"][1:] == ["-m", "jupyterhub_idle_culler", f"--timeout={seconds}"]
        assert role["services"] == [service["name"]]
        assert "admin:users" not in role["scopes"]


@pytest.mark.skipif(os.geteuid() != 0, reason="hub/up wants root")
def test_a_python_that_no_user_can_run_is_refused_before_anything_is_made(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    shutil.copy("/bin/true", closed / "python3")
    places = {"WARPLAB_HUB": str(tmp_path / "hub"), "WARPLAB_EXCHANGE": str(tmp_path / "exchange")}
    for python in (closed / "python3", closed / "none"):
        environment = {**os.environ, **places, "PYTHON": str(python)}
        ended = subprocess.run([HUB / "up", "ada"], env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        assert f"error: users cannot run {python}; name a Python that they can" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["closed"]


def test_no_hub_has_what_students_must_not_see():
    (archive,) = re.findall(r"git .* archive .*", (HUB / "up").read_text())
    left_out = {*re.findall(r":!(\w+)", archive)}
    assert {"solutions", "tests"} <= left_out
    assert left_out <= {*(HUB / "Dockerfile.dockerignore").read_text().split()}


def test_a_builder_that_does_not_know_what_to_leave_out_makes_no_image(tmp_path):
    (look,) = re.findall(r"^RUN (test .*)$", (HUB / "Dockerfile").read_text(), re.MULTILINE)
    for name, status in ((None, 0), ("solutions", 1), ("tests", 1), ("grading", 1)):
        folder = tmp_path / f"of {name}"
        folder.mkdir()
        if name:
            (folder / name).mkdir()
        assert subprocess.run(["sh", "-c", look], cwd=folder, capture_output=True).returncode == status, name


@pytest.mark.parametrize("ignored", [COURSE / ".dockerignore", HUB / "Dockerfile.dockerignore"])
def test_no_image_holds_what_git_leaves_out(ignored):
    own = re.findall(r"^/(.+)/$", (COURSE / ".gitignore").read_text(), re.MULTILINE)
    assert "grading" in own
    assert {*own} <= {*ignored.read_text().split()}


def test_whom_an_administrator_lets_in_is_let_in():
    """JupyterHub 5 admits nobody else, and NativeAuthenticator asks for the administrator's word by itself."""
    config = VALUES["hub"]["config"]
    assert config["Authenticator"]["allow_all"] is True
    assert "open_signup" not in config["NativeAuthenticator"]


@pytest.fixture
def up(tmp_path):
    """up(name) -> hub/up, finished, where games is an account of the system's and ada none; nothing is installed."""
    tree, bin = tmp_path / "tree", tmp_path / "bin"
    for folder in (tree / "hub", tree / ".venv" / "etc" / "jupyter", bin, tmp_path / "ada", tmp_path / "games"):
        folder.mkdir(parents=True)
    programs = {
        tree / "hub" / "install": "",
        bin / "git": f"exec tar -c -C '{tree}' .",
        bin / "id": 'case "$*" in -u) echo 0;; games) ;; "-u games") echo 5;; "-u ada") echo 1001;; *) exit 1;; esac',
        bin / "getent": f'echo "$2:x:0:0::{tmp_path}/$2:/bin/sh"',
        bin / "chpasswd": "cat > /dev/null",
        **{bin / name: "" for name in ("npm", "useradd", "jupyterhub", "runuser")},
    }
    for path, text in programs.items():
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(name):
        environment = {"PATH": f"{bin}:{os.environ['PATH']}", "WARPLAB_HUB": tmp_path / "hub"}
        environment["WARPLAB_EXCHANGE"] = tmp_path / "exchange"
        return subprocess.run([HUB / "up", name], env=environment, capture_output=True, text=True)

    return run


def test_no_student_can_move_another_s_folder_in_the_exchange_away(up, tmp_path):
    done = up("ada")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"ada [0-9a-f]{24}\n", done.stdout)
    assert (tmp_path / "exchange").stat().st_mode & 0o7777 == 0o1777
    assert (tmp_path / "ada").stat().st_mode & 0o777 == 0o700


def test_an_account_of_the_system_s_keeps_its_home(up, tmp_path):
    done = up("games")
    assert (done.returncode, "games is an account of the system's" in done.stderr) == (1, True)
    assert (tmp_path / "games").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("script", ["up", "install", "server"])
def test_scripts_are_such_as_a_shell_reads(script):
    shell = (HUB / script).read_text().splitlines()[0].split("/")[-1].split()[-1]
    subprocess.run([shell, "-n", HUB / script], check=True)
    assert (HUB / script).stat().st_mode & 0o111
