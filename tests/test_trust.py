"""docs/trust.md says what the records in evidence/ say; without that folder, what the course's own records say."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.instruction_cases import cases
from tests.support.math_cases import math_cases
from warpcourse.paths import COURSE

EVIDENCE = COURSE / "evidence"
RECORDED = COURSE / "tests" / "warplab" / "simulator" / "run" / "recorded"
PAGE = (COURSE / "docs" / "trust.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]


def record(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def counters(pages: list[Path]) -> Iterator[str]:
    """Yield what pages of `tools.ncu` sum up to."""
    sentence = re.compile(r"([\d,]+) launches under `ncu`.*: of ([\d,]+) counters ([\d,]+) differ, ([\d,]+) by more")
    found = [sentence.search(page.read_text(encoding="utf-8")).groups() for page in pages]
    launches, compared, differ, beyond = np.array([[int(n.replace(",", "")) for n in row] for row in found]).sum(axis=0)
    yield f"{launches} "
    yield f"{compared - differ:,} of {compared:,}"
    yield f"{beyond} off by more than is allowed"


def machine_instructions() -> Iterator[str]:
    kept = record(EVIDENCE / "machine_code" / "machine_counts.json")
    launches = [row for topic in kept["launches"].values() for row in topic.values()]
    off = np.array([machine[0] / ncu[0] - 1 for ncu, _, machine in launches])
    yield f"{(np.abs(off) <= 0.02).sum()} of {len(off)} within 2 %"
    yield f"mean error {100 * np.abs(off).mean():.2f} %, worst {100 * off[np.abs(off).argmax()]:+.1f} %"
    yield kept["date"]


def estimated_times() -> Iterator[str]:
    error = record(COURSE / "warplab" / "estimating" / "error.json")
    yield f"mean error {error['mean_percent']} %, {error['within_30']} of {error['launches']} within 30 %"
    yield error["date"]
    with (EVIDENCE / "estimates" / "launches.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["group"] == "held out"]
    yield f"{len(rows)} launches of {len({row['launch'].split(', ')[1] for row in rows})} kernels"
    table = (EVIDENCE / "estimates" / "README.md").read_text(encoding="utf-8")
    yield re.search(r"second set, held out \|[^|]*\|[^|]*\|[^|]*\|[^|]*\| ([\d.]+ %)", table)[1]


def instructions() -> Iterator[str]:
    yield f"{len(list(cases())):,} forms of instructions"
    yield f"{len(list(math_cases(False))) + len(list(math_cases(True)))} functions"
    yield record(RECORDED / "instructions.json")["date"]


def matrix_instructions() -> Iterator[str]:
    for name, words in (("matrix_h100", "{} kernels of `mma` and `wmma`"), ("wgmma_h100", "{} of `wgmma`")):
        with np.load(RECORDED / f"{name}.npz") as kept:
            yield words.format(len(kept.files) - 1)
            yield str(kept["device"]).rpartition(", ")[2]


def random_kernels() -> Iterator[str]:
    kept = record(COURSE / "tests" / "warplab" / "differential" / "recorded" / "results.json")
    yield f"{kept['kernels']:,} random kernels"
    yield kept["date"]


def published_programs() -> Iterator[str]:
    kept = record(EVIDENCE / "public_programs" / "results.json")
    programs = [program for source in kept["sources"].values() for program in source["programs"]]
    reported = [p for p in programs if any(found["kind"] == "reported" for found in p["found"])]
    agree = sum(not program["found"] for program in programs)
    yield f"{len(programs)} programs"
    yield f"{agree} of {len(programs)} agree"
    yield f"in {len(reported)} an error is reported"
    assert agree + len(reported) == len(programs)
    yield kept["date"]


def foreign_scripts() -> Iterator[str]:
    programs = [*record(EVIDENCE / "foreign_scripts" / "results.json")["programs"].values()]
    verdicts = [program["verdict"] for program in programs]
    yield f"{len(programs)} scripts and test files"
    yield f"{verdicts.count('ran')} of {len(programs)} run to their end"
    yield f"in {verdicts.count('found')} a race is reported"
    yield ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("refused", "too long", "failed"))
    yield max(program["date"] for program in programs)


def numba_tests() -> Iterator[str]:
    text = (EVIDENCE / "numba_tests" / "README.md").read_text(encoding="utf-8")
    applying, passed = re.search(r"Of the ([\d,]+) that apply ([\d,]+) pass", text).groups()
    yield f"{passed} of the {applying} that apply pass"
    yield re.search(r"\d+ differ on purpose", text)[0]
    yield re.search(r"tests of (numba-cuda [\d.]+\d)", text)[1]


def cupy_names() -> Iterator[str]:
    text = (EVIDENCE / "cupy_names" / "README.md").read_text(encoding="utf-8")
    date, files, share, own = re.search(
        r"On ([\d-]+): (\d+) public files.*\*\*([\d.]+ %)\*\*.*without `cupyx`, ([\d.]+ %)", text
    ).groups()
    yield from (date, f"{files} public files", f"it has {share} of the uses", f"{own} of those of `cupy` without")


def attacks() -> Iterator[str]:
    text = (COURSE / "docs" / "attacks.md").read_text(encoding="utf-8")
    rows = [line.split("|")[4:7] for line in text.splitlines() if line.startswith("| ") and line.count("|") == 7]
    rows = [row for row in rows if row[0].strip() not in ("sandbox", "---")]
    sandbox, limits, stock = (sum("**" in row[at] for row in rows) for at in range(3))
    yield f"{sandbox} of {len(rows)} get more"
    tried = sum(bool(row[2].strip()) for row in rows)
    yield f"{limits} of {len(rows)}, with stock nbgrader {stock} of the {tried} tried"
    yield record(COURSE / "docs" / "attacks.json")["date"]


def simulator_speed() -> Iterator[str]:
    kept = record(EVIDENCE / "simulator" / "speed.json")
    yield f"{kept['ratios']['vector, checks on']:,} and {kept['ratios']['matmul, checks on']:,} times"
    yield kept["date"]


def grading_speed() -> Iterator[str]:
    text = (COURSE / "docs" / "instructors.md").read_text(encoding="utf-8")
    ours = re.search(r"`warplab grade --no-feedback` \| \d+ \| (\d+)", text)[1]
    theirs = re.search(r"`nbgrader autograde`, stock \| \d+ \| (\d+)", text)[1]
    yield f"{ours} against {theirs} submissions per minute"


SAID = {
    "**Counters**": lambda: counters([EVIDENCE / "counters" / "counters.md"]),
    "the same in the labs' own kernels": lambda: counters(sorted(COURSE.glob("kernels/*/counters.md"))),
    "**Machine instructions**": machine_instructions,
    "**Estimated times**": estimated_times,
    "**Results** of single PTX instructions": instructions,
    "results of matrix instructions": matrix_instructions,
    "results of whole kernels": random_kernels,
    "**Published programs**": published_programs,
    "others' unmodified scripts": foreign_scripts,
    "**The stand-in for `numba.cuda`**": numba_tests,
    "the stand-in for `cupy`": cupy_names,
    "**Grading**": attacks,
    "**Speed** of the simulator": simulator_speed,
    "speed of the grading": grading_speed,
}
IN_THE_COURSE = (instructions, matrix_instructions, random_kernels, attacks, grading_speed)


def test_each_row_is_held_to_its_record() -> None:
    begins = [line.removeprefix("| ") for line in ROWS[2:]]
    assert len(begins) == len(SAID)
    assert all(begin.startswith(said) for begin, said in zip(begins, SAID, strict=True))


@pytest.mark.parametrize("row", SAID)
def test_a_row_says_what_its_record_says(row: str) -> None:
    if not EVIDENCE.is_dir() and SAID[row] not in IN_THE_COURSE:
        pytest.skip("evidence/ is not here")
    (line,) = [line for line in ROWS if line.startswith(f"| {row}")]
    for part in SAID[row]():
        assert part in line, f"docs/trust.md does not say {part!r} in the row {row}"
