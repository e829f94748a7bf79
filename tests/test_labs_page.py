"""docs/labs.md says what recordings, counters, lessons and exercises say."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import labs_page  # noqa: E402


def test_the_page_is_up_to_date():
    written = labs_page.PAGE.read_text(encoding="utf-8")
    assert written == labs_page.page(), "run: python tools/labs_page.py"


def test_every_lab_has_its_parts():
    written = labs_page.PAGE.read_text(encoding="utf-8")
    labs = re.split(r"^## ", written, flags=re.MULTILINE)[1:]
    assert [lab[:2] for lab in labs] == [name[:2] for name in labs_page.LABS]
    for lab in labs:
        parts = re.findall(r"^### (.+)$", lab, flags=re.MULTILINE)
        assert parts[:5] == ["Kernels", "Counters", "Verdict", "Exercise", "Time without a GPU"]
        assert "recorded on NVIDIA" in lab
        assert " NO\n" not in lab  # an output that was wrong


def test_links_lead_somewhere():
    written = labs_page.PAGE.read_text(encoding="utf-8")
    counters = (ROOT / "docs" / "counters.md").read_text()
    headings = {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in re.findall(r"^## (.+)$", counters, re.M)}
    for target in re.findall(r"\]\(([^)]+)\)", written):
        path, _, anchor = target.partition("#")
        assert (ROOT / "docs" / path).exists(), target
        assert not anchor or anchor in headings, target
