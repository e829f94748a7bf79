"""warplab/README.md says of sizes and imports what evidence/wheel.json has."""

from __future__ import annotations

import json
import re

import pytest

from evidence.wheel import KEPT
from warpcourse.paths import COURSE

RECORD = json.loads(KEPT.read_text(encoding="utf-8"))
PAGE = (COURSE / "warplab" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("extra", [name for name in RECORD["MB"] if name != "base"])
def test_each_extra_has_its_size(extra: str) -> None:
    size = RECORD["MB"][extra].get("MB")
    assert f"| `{extra}` | {f'{size:,}' if size else 'not installed here'} |" in PAGE


def test_the_base_and_the_imports_have_theirs() -> None:
    assert f"no more than that: {RECORD['MB']['base']['MB']} MB of disk" in PAGE
    seconds = RECORD["seconds"]
    said = re.search(
        r"Importing `warplab` takes\s([\d.]+) s.*?`warplab.cp` ([\d.]+), `warplab.cuda` ([\d.]+)", PAGE, re.S
    )
    cores, architecture = re.fullmatch(r"(.*) \((.*)\)", RECORD["machine"]).groups()
    assert f" ({cores}, {architecture.replace('_', '-')})." in PAGE
    codes = ("import warplab", "from warplab import cp", "from warplab import cuda")
    assert said.groups() == tuple(f"{seconds[code]:.2f}" for code in codes)


def test_the_page_names_date_and_versions() -> None:
    assert f"Measured on {RECORD['date']} with Python {RECORD['python']}" in PAGE
    for name in ("NumPy", "numba-cuda", "numba-cuda-mlir", "Triton"):
        assert re.search(rf"{name}\s{re.escape(RECORD['versions'][name.lower()])}[,.]", PAGE), name
