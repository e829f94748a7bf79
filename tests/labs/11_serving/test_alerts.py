"""The alert rules: promtool tests them where it is installed; everywhere, all they name exists."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from kernels.serving.serve.service.metrics import Metrics
from warpcourse.paths import COURSE

RULES = COURSE / "kernels" / "serving" / "serve" / "service" / "alerts.yml"
TESTS = Path(__file__).with_name("alerts_test.yml")
SHEET = (COURSE / "kernels" / "serving" / "operating.md").read_text(encoding="utf-8")


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_promtool_finds_that_they_fire_when_they_should():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool, of Prometheus, is not installed")
    ran = subprocess.run([promtool, "test", "rules", TESTS], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "SUCCESS" in ran.stdout


def test_every_rule_is_tested_and_says_what_to_do():
    tested = {
        case["alertname"] for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test["alert_rule_test"]
    }
    assert tested == {rule["alert"] for rule in rules()}
    assert len(tested) == 3
    assert all({"summary", "do"} <= rule["annotations"].keys() for rule in rules())


def test_what_rules_and_sheet_name_of_the_service_it_has():
    metrics = Metrics("engine")
    metrics.request(429, 0.1)
    metrics.batch(3, 0.1)
    for name in ("serving_queue_samples", "serving_in_hand"):  # as the application registers them
        metrics.watch(name, name, lambda: 0.0)
    named = set(re.findall(r"\bserving_\w+", RULES.read_text() + SHEET))
    assert {"serving_requests_total", "serving_batch_samples"} <= named
    assert {name for name in named if f"{name}" not in metrics.text().decode()} == set()


def test_the_sheet_explains_what_the_rules_ask_of_the_exporter():
    asked = set(re.findall(r"\bDCGM_FI_\w+", RULES.read_text()))
    assert {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_XID_ERRORS"} <= asked
    assert {name for name in asked if f"`{name}`" not in SHEET} == set()


def test_the_sheets_links_into_the_course_lead_somewhere():
    links = re.findall(r"\]\((?!https:)([^)#]+)\)", SHEET)
    assert links
    assert [link for link in links if not (COURSE / "kernels" / "serving" / link).exists()] == []
