"""Pages name files that exist: what moves must move there, too."""

from __future__ import annotations

import configparser
import re

import pytest

from warpcourse.paths import COURSE

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/architecture.md",
    "docs/glossary.md",
    "docs/instructors.md",
    "docs/launches.md",
    "docs/layouts.md",
    "docs/lessons_weight.md",
    "docs/after_hopper.md",
    "docs/front_ends.md",
    "docs/platforms.md",
    "docs/run.md",
    "docs/simulator.md",
    "docs/trust.md",
    "warplab/README.md",
)
FOLDERS = "evidence|warplab|warpcourse|kernels|digits|tests|tools|notebooks|exercises|solutions|docs"
# A name in capitals stands for any name.
ANY = {"TOPIC": "*", "NN_topic": "*", "KIND": "*", "PROBLEM": "*"}


def named(page: str) -> set[str]:
    """Paths from the course's folder that a page names in code: `warplab/checks/`, `tests/labs/NN_topic/`."""
    text = re.sub(r"```.*?```", "", (COURSE / page).read_text(), flags=re.S)
    return set(re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", text))


@pytest.mark.parametrize(("page", "path"), [(page, path) for page in PAGES for path in sorted(named(page))])
def test_paths_exist(page, path):
    pattern = path.rstrip("/")
    for name, stands_for in ANY.items():
        pattern = pattern.replace(name, stands_for)
    assert list(COURSE.glob(pattern)), f"{page} names {path}, which does not exist"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", (COURSE / page).read_text(), flags=re.S)
    for link in re.findall(r"\]\((?!https:)([^)#]+)[^)]*\)", text):
        assert ((COURSE / page).parent / link).exists(), f"{page} links to {link}, which does not exist"


@pytest.mark.parametrize(("package", "contract"), [("warplab", "rooms"), ("warpcourse", "course_rooms")])
def test_architecture_shows_the_layers_that_the_contracts_hold(package, contract):
    contracts = configparser.ConfigParser()
    contracts.read(COURSE / ".importlinter", encoding="utf-8")
    held = contracts[f"importlinter:contract:{contract}"]["layers"].split("\n")
    page = (COURSE / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.search(rf"(?m)^{package}/ .*\n((?: {{4}}.*\n)+)", page)[1].splitlines()
    shown = [set(re.findall(r"\w+", row[4:40])) for row in rows]
    assert shown == [set(re.findall(r"\w+", layer)) for layer in held if layer]
