"""The hub's files: what can be held without a server (the class itself: `python -m evidence.hub`)."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from traitlets.config import Config

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


def test_idle_servers_end_after_an_hour_or_what_is_named(monkeypatch):
    for seconds, given in ((VALUES["cull"]["timeout"], {}), (60, {"WARPLAB_HUB_CULL": "60"})):
        config = settings(monkeypatch, **given)
        (service,) = config.JupyterHub.services
        (role,) = config.JupyterHub.load_roles
        assert service["command"][1:] == ["-m", "jupyterhub_idle_culler", f"--timeout={seconds}"]
        assert role["services"] == [service["name"]]
        assert "admin:users" not in role["scopes"]


def test_no_hub_has_what_students_must_not_see():
    (archive,) = re.findall(r"git .* archive .*", (HUB / "up").read_text())
    left_out = {*re.findall(r":!(\w+)", archive)}
    assert {"solutions", "tests"} <= left_out
    assert left_out <= {*(HUB / "Dockerfile.dockerignore").read_text().split()}


@pytest.mark.parametrize("script", ["up", "install", "server"])
def test_scripts_are_such_as_a_shell_reads(script):
    shell = (HUB / script).read_text().splitlines()[0].split("/")[-1].split()[-1]
    subprocess.run([shell, "-n", HUB / script], check=True)
    assert (HUB / script).stat().st_mode & 0o111
