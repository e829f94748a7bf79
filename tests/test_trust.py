"""docs/trust.md says what the records in evidence/ say; without that folder, what the course's own records say.

A row's cells "held to", "result" and "when, on what" are made of the records, and compared as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.instruction_cases import cases
from tests.support.math_cases import math_cases
from tests.warplab.differential.record import SAMPLE
from warpcourse.paths import COURSE

EVIDENCE = COURSE / "evidence"
RECORDED = COURSE / "tests" / "warplab" / "simulator" / "run" / "recorded"
PAGE = (COURSE / "docs" / "trust.md").read_text(encoding="utf-8")
CARDS = {"NVIDIA H100 80GB HBM3": "H100", "NVIDIA H200": "H200"}
NUMBERS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
]
Cells = tuple[str, str, str]


def record(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def days(dates: Iterable[str]) -> str:
    """Several dates of a month, as "2026-11-22 and 23"."""
    first, *others = sorted(set(dates))
    assert all(other.startswith(first[:8]) for other in others)
    return " and ".join([first, *(other[8:] for other in others)])


def counters(pages: list[Path], held: str) -> Cells:
    """Of pages of `tools.ncu`; `held` has {launches}."""
    heads: list[tuple[str, ...]] = []
    sums = np.zeros(4, int)
    unbounded, apart = 0, 0.0
    sentence = re.compile(
        r"(NVIDIA .*), (ncu .*), (.*)\.\n\n"
        r"([\d,]+) launches .*: of ([\d,]+) counters ([\d,]+) differ, ([\d,]+) by more .* at most ([\d.]+) points\."
    )
    for page in pages:
        text = page.read_text(encoding="utf-8")
        *head, launches, compared, differ, beyond, points = sentence.search(text).groups()
        heads.append(tuple(head))
        sums += [int(number.replace(",", "")) for number in (launches, compared, differ, beyond)]
        apart = max(apart, float(points))
        lines = text.partition("## Differences")[2].splitlines()
        rows = [
            [cell.strip() for cell in line.split("|")[2:6]] for line in lines if re.match(r"\| (?!launch |---)", line)
        ]
        of_branches = [row for row in rows if row[0] in ("branches", "divergent branches")]
        reasons = [row[3] for row in rows if row not in of_branches and row[0] != "warp efficiency"]
        assert all(reasons), f"{page} gives no reason for a difference"
        assert len(of_branches) + len(reasons) == int(differ.replace(",", ""))
        unbounded += len(of_branches)
    launches, compared, differ, beyond = sums
    assert beyond == 0
    cards, tools, dates = zip(*heads, strict=True)
    (tool,) = {*tools}
    return (
        held.format(launches=launches),
        f"{compared - differ:,} of {compared:,} equal; {unbounded} are branches or divergent branches, for which any "
        f"difference is allowed; {differ - unbounded} differ for a reason that is given; warp efficiency is off by "
        f"up to {apart} points",
        f"{days(dates)}, {' and '.join(sorted({CARDS[card] for card in cards}))}, {tool}",
    )


def counters_of_patterns() -> Cells:
    held = "Nsight Compute (`ncu`), on {launches} small kernels with one pattern each"
    return counters([EVIDENCE / "counters" / "counters.md"], held)


def counters_of_labs() -> Cells:
    pages = sorted(COURSE.glob("kernels/*/counters.md"))
    return counters(pages, f"`ncu`, on {{launches}} launches of {NUMBERS[len(pages)]} labs")


def machine_instructions() -> Cells:
    kept = record(EVIDENCE / "machine_code" / "machine_counts.json")
    launches = [row for topic in kept["launches"].values() for row in topic.values()]
    pages = [EVIDENCE / "counters" / "counters.md", *COURSE.glob("kernels/*/counters.md")]
    both = sum(int(re.search(r"([\d,]+) launches", page.read_text(encoding="utf-8"))[1]) for page in pages)
    off = np.array([machine[0] / ncu[0] - 1 for ncu, _, machine in launches])
    cards = " and ".join(sorted({CARDS[about.partition(", ")[0]] for about in kept["ncu"].values()}))
    ptxas = re.search(r"cuda_(\d+\.\d+)", kept["ptxas"])[1]
    return (
        f"`ncu`, on {len(off)} of the {both} launches of both",
        f"{(np.abs(off) <= 0.02).sum()} of {len(off)} within 2 %, mean error {100 * np.abs(off).mean():.2f} %, "
        f"worst {100 * off[np.abs(off).argmax()]:+.1f} %",
        f"{kept['date']}, {cards}, ptxas {ptxas}",
    )


def first_reading(card: str) -> dict[str, dict[str, float]]:
    """Return the launches of the sixth set, with their times as recorded and as estimated at the first reading."""
    return record(EVIDENCE / "unseen_launches" / f"sixth_reading{'' if card == 'H100' else '_h200'}.json")["launches"]


def estimated_times() -> Cells:
    errors = record(COURSE / "warplab" / "estimating" / "error.json")
    table = (EVIDENCE / "estimates" / "README.md").read_text(encoding="utf-8")
    to, said, when = [], [], []
    for card, error in errors.items():
        rows = first_reading(card)
        assert len(rows) == error["launches"]
        name = "sixth set, at its first reading"
        roofline = re.search(rf"{name} \| {card} \|[^|]*\|[^|]*\|[^|]*\|[^|]*\| ([\d.]+ %)", table)[1]
        to.append(f"{len(rows)} launches of {len({row.split(', ')[1] for row in rows})} kernels on an {card}")
        said.append(
            f"{card}: mean error {error['mean_percent']} %, {error['within_30']} of {error['launches']} within 30 %; "
            f"the roofline alone is off by {roofline}"
        )
        when.append(f"{error['date']}, {CARDS[error['device']]}")
    return (
        f"recorded times of {' and of '.join(to)}, kernels that no lab has, put aside until the model of that day was "
        "final",
        ". ".join(said),
        "; ".join(when),
    )


def instructions() -> Cells:
    about = record(RECORDED / "instructions.json")
    return (
        "an H100, bit by bit or within the documented error, on edge cases and random values",
        f"{len(list(cases())):,} forms of instructions, {len(list(math_cases(False))) + len(list(math_cases(True)))} "
        "functions",
        f"{about['date']}, {CARDS[about['device']]}",
    )


def matrix_instructions() -> Cells:
    with np.load(RECORDED / "matrix_h100.npz") as mma, np.load(RECORDED / "wgmma_h100.npz") as wgmma:
        (about,) = {str(kept["device"]) for kept in (mma, wgmma)}
        result = f"{len(mma.files) - 1} kernels of `mma` and `wmma`, {len(wgmma.files) - 1} of `wgmma`"
    card, _, date = about.rpartition(", ")
    return "an H100, bit by bit", result, f"{date}, {CARDS[card]}"


def random_kernels() -> Cells:
    kept = record(COURSE / "tests" / "warplab" / "differential" / "recorded" / "results.json")
    return (
        f"an H100, on {kept['kernels']:,} random kernels",
        f"the {SAMPLE} in the course's tests agree, in NumPy and in machine code; the command beside this runs all",
        f"{kept['date']}, {CARDS[kept['device']]}",
    )


def published_programs() -> Cells:
    kept = record(EVIDENCE / "public_programs" / "results.json")
    programs = [program for source in kept["sources"].values() for program in source["programs"]]
    reported = [p for p in programs if any(found["kind"] == "reported" for found in p["found"])]
    agree = sum(not program["found"] for program in programs)
    assert agree + len(reported) == len(programs)
    names = ("cuda-samples", "llm.c", "SGEMM_CUDA", "fast.cu")
    assert {source.partition("/")[2] for source in kept["sources"]} == {*names}
    return (
        f"{len(programs)} programs of {', '.join(names[:-1])} and {names[-1]}, and NumPy's results",
        f"{agree} of {len(programs)} agree and nothing is reported; in {len(reported)} an error is reported, which was "
        "then found in their code",
        f"{kept['date']}, no GPU",
    )


def foreign_scripts() -> Cells:
    kept = record(EVIDENCE / "foreign_scripts" / "results.json")
    programs = [*kept["programs"].values()]
    verdicts = [program["verdict"] for program in programs]
    names = ("accelerated-computing-hub", "numba-cuda", "CuPy", "stumpy")
    assert {source.partition("/")[2] for source in kept["sources"]} == {name.lower() for name in names}
    assert {d["error"] for p in programs if p["verdict"] == "found" for d in p["defects"]} == {"DataRace"}
    rest = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("refused", "too long", "failed"))
    return (
        f"{len(programs)} scripts and test files of {', '.join(names[:-1])} and {names[-1]}, and what they check "
        "themselves",
        f"{verdicts.count('ran')} of {len(programs)} run to their end with nothing reported; in "
        f"{verdicts.count('found')} a race is reported, which was then found in their code; {rest}",
        f"{days(program['date'] for program in programs)}, no GPU",
    )


def judged_kernels() -> Cells:
    kept = record(EVIDENCE / "kernelbench" / "results.json")["problems"]
    answers = [(name, one) for problem in kept.values() for name, one in problem["answers"].items()]
    right = [one["right"] for name, one in answers if name == "right"]
    others = [one["right"] for name, one in answers if name != "right"]
    cheating = sum(name.startswith("cheat: ") for name, _ in answers)
    (torch,) = {problem["reference"]["torch"] for problem in kept.values() if not problem["reference"]["apart"]}
    return (
        f"our own answers to {len(kept)} tasks of KernelBench's level 1, small, whose references agree with its models "
        f"in torch {torch.partition('+')[0]}",
        f"{sum(right)} of {len(right)} right answers are found right, {sum(others)} of {len(others)} others, of which "
        f"{cheating} try to cheat",
        f"{days(problem['date'] for problem in kept.values())}, no GPU",
    )


def numba_tests() -> Cells:
    kept = record(EVIDENCE / "numba_tests" / "results.json")
    text = (EVIDENCE / "numba_tests" / "README.md").read_text(encoding="utf-8")
    applying, passed, on_purpose = re.search(
        r"Of the ([\d,]+) that apply ([\d,]+) pass .*0 are faults, 0 want what is missing,\s(\d+) differ on purpose",
        text,
    ).groups()
    assert kept["device"].endswith(", no GPU")
    return (
        f"numba-cuda {kept['version']}'s own tests",
        f"{passed} of the {applying} that apply pass, {on_purpose} differ on purpose",
        f"{days(file['date'] for file in kept['files'].values())}, no GPU",
    )


def cupy_names() -> Cells:
    text = (EVIDENCE / "cupy_names" / "README.md").read_text(encoding="utf-8")
    date, files, share, own = re.search(
        r"On ([\d-]+): (\d+) public files.*\*\*([\d.]+ %)\*\*.*without `cupyx`, ([\d.]+ %)", text
    ).groups()
    return (
        f"the names that {files} public files use",
        f"it has {share} of the uses, and {own} of those of `cupy` without `cupyx`; results are NumPy's, of kernels "
        "those of their compiled code",
        f"{date}, no GPU",
    )


def attack_scores() -> list[list[str]]:
    """Of each attack what it got in the sandbox, without bubblewrap and from stock nbgrader."""
    text = (COURSE / "docs" / "attacks.md").read_text(encoding="utf-8")
    rows = [line.split("|")[4:7] for line in text.splitlines() if line.startswith("| ") and line.count("|") == 7]
    return [row for row in rows if row[0].strip() not in ("sandbox", "---")]


def lab_attack_scores() -> list[str]:
    """Of each hostile answer to an exercise what it got in the sandbox."""
    text = (COURSE / "docs" / "attacks.md").read_text(encoding="utf-8")
    rows = [line.split("|")[3:5] for line in text.splitlines() if re.match(r"\| \d\d/", line)]
    return [got for expected, got in rows if expected.strip() != "all"]


def attacks() -> Cells:
    kept, rows, labs = record(COURSE / "docs" / "attacks.json"), attack_scores(), lab_attack_scores()
    sandbox, limits, stock = (sum("**" in row[at] for row in rows) for at in range(3))
    tried = sum(bool(row[2].strip()) for row in rows)
    assert (len(rows), tried) == (len(kept["sandbox"]), len(kept["stock"]))
    return (
        f"{len(rows)} attacks and {len(labs)} hostile answers to exercises, in the sandbox (bubblewrap)",
        f"{sandbox} of {len(rows)} and {sum('**' in got for got in labs)} of {len(labs)} get more than they deserve; "
        f"without bubblewrap {limits} of {len(rows)}, with stock "
        f"nbgrader {stock} of the {tried} tried",
        f"{days([kept['date'], kept['labs']['date'], *kept['dates'].values()])}, no GPU",
    )


def simulator_speed() -> Cells:
    from evidence.simulator.speed import MATRIX, VECTOR

    kept = record(EVIDENCE / "simulator" / "speed.json")
    longest = max(kept["nanoseconds_a_thread_instruction"]["checks on"], key=int)
    on, off = (kept["nanoseconds_a_thread_instruction"][f"checks {mode}"][longest] for mode in ("on", "off"))
    ratios, took = kept["ratios"], {name: f"{1e3 * one:.1f}" for name, one in kept["seconds"]["checks on"].items()}
    return (
        f"Numba's own simulator, on a vector product of {VECTOR:,} elements and a tiled product of {MATRIX} × {MATRIX} "
        "matrices, once each",
        f"{ratios['vector, checks on']:,} and {ratios['matmul, checks on']:,} times as fast, in launches of "
        f"{took['vector']} and {took['matmul']} ms; "
        f"with {int(longest):,} threads checks take {on / off:.1f} times as long as none",
        f"{kept['date']}, {kept['device']}, Numba {kept['versions']['numba']}",
    )


def grading_speed() -> Cells:
    text = (COURSE / "docs" / "instructors.md").read_text(encoding="utf-8")
    ours = re.search(r"`warplab grade --no-feedback` \| \d+ \| (\d+) ", text)[1]
    theirs = re.search(r"`nbgrader autograde`, stock \| \d+ \| (\d+) ", text)[1]
    submissions = re.search(r"\| the same (\d+) submissions \|", text)[1]
    date = re.search(r"On two cores of an x86-64 machine, with bubblewrap and two\s+workers, ([\d-]+),", text)[1]
    return (
        f"nbgrader, on the same {submissions} submissions",
        f"{ours} against {theirs} submissions per minute",
        f"{date}, 2 cores, x86-64",
    )


SAID: dict[str, Callable[[], Cells]] = {
    "**Counters**": counters_of_patterns,
    "the same in the labs' own kernels": counters_of_labs,
    "**Machine instructions**": machine_instructions,
    "**Estimated times**": estimated_times,
    "**Results** of single PTX instructions": instructions,
    "results of matrix instructions": matrix_instructions,
    "results of whole kernels": random_kernels,
    "**Published programs**": published_programs,
    "others' unmodified scripts": foreign_scripts,
    "verdicts of `warplab judge`": judged_kernels,
    "**The stand-in for `numba.cuda`**": numba_tests,
    "the stand-in for `cupy`": cupy_names,
    "**Grading**": attacks,
    "**Speed** of the simulator": simulator_speed,
    "speed of the grading": grading_speed,
}
IN_THE_COURSE = (instructions, matrix_instructions, random_kernels, attacks, grading_speed)


def rows_of(page: str) -> dict[str, Cells]:
    """The three cells of each row, by the words of `SAID` that it begins with."""
    lines = [line for line in page.splitlines() if line.startswith("| ")][2:]
    assert [any(line.startswith(f"| {said}") for said in SAID) for line in lines] == [True] * len(SAID)
    cells = [[cell.strip() for cell in line.split("|")[2:5]] for line in lines]
    return dict(zip(SAID, map(tuple, cells), strict=True))


def test_nothing_of_the_course_runs_evidence():
    """By a name in a text, which import-linter does not see."""
    for package in ("warplab", "warpcourse", "kernels", "digits"):
        for path in (COURSE / package).rglob("*.py"):
            assert not re.findall(r"""["'](evidence\.\w[\w.]*)["']""", path.read_text(encoding="utf-8")), path


def needs_evidence(row: str) -> None:
    if not EVIDENCE.is_dir() and SAID[row] not in IN_THE_COURSE:
        pytest.skip("evidence/ is not here")


def test_each_row_is_held_to_its_record_and_eight_are_bold() -> None:
    begins = [line.removeprefix("| ") for line in PAGE.splitlines() if line.startswith("| ")][2:]
    assert all(begin.startswith(said) for begin, said in zip(begins, SAID, strict=True))
    bold = NUMBERS[sum(begin.startswith("**") for begin in begins)]
    assert f"Bold are the {bold} claims" in " ".join(PAGE.split())
    assert all(f'"{short}" is an {card}.' in PAGE for card, short in CARDS.items())


@pytest.mark.parametrize("row", SAID)
def test_a_row_says_what_its_record_says(row: str) -> None:
    needs_evidence(row)
    assert rows_of(PAGE)[row] == SAID[row]()


@pytest.mark.parametrize(
    ("row", "said", "instead"),
    [
        ("**Counters**", "2026-11-22", "2026-11-21"),
        ("**Counters**", "ncu 2025.3.1.0", "ncu 2025.3.1"),
        ("**Counters**", "13 are branches", "3 are branches"),
        ("the same in the labs' own kernels", "eleven labs", "twelve labs"),
        ("the same in the labs' own kernels", "10.7 points", "0.7 points"),
        ("**Machine instructions**", "775 of 790", "775 of 7900"),
        ("**Estimated times**", "6.8 %", "16.8 %"),
        ("**Estimated times**", "H100", "H200"),
        ("**Published programs**", "56 of 62", "156 of 62"),
        ("others' unmodified scripts", "6 refused", "26 refused"),
        ("others' unmodified scripts", "6 refused, 0 too long", "0 refused, 6 too long"),
        ("**The stand-in for `numba.cuda`**", "13 differ", "3 differ"),
        ("the stand-in for `cupy`", "2026-11-26", "2026-11-27"),
        ("**Grading**", "; without", " or; without"),
        ("**Grading**", "0 of 168 and", "10 of 168 and"),
        ("**Speed** of the simulator", "1,742", "11,742"),
        ("speed of the grading", "20 submissions", "10 submissions"),
        ("speed of the grading", "84 against", "184 against"),
    ],
)
def test_an_altered_page_is_told(row: str, said: str, instead: str) -> None:
    needs_evidence(row)
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {row}")]
    assert said in line
    assert rows_of(PAGE.replace(line, line.replace(said, instead, 1)))[row] != SAID[row]()


def test_the_figures_of_what_it_does_not_say() -> None:
    below = " ".join(PAGE.partition("## What that does not say")[2].split())
    error = record(COURSE / "warplab" / "estimating" / "error.json")["H100"]
    assert f" A mean error of {error['mean_percent']} % is that of {error['launches']} launches;" in below
    assert f" that nobody has thought of is not among the {len(attack_scores())}. " in below
    if EVIDENCE.is_dir():
        times = {name: row["estimated"] / row["recorded"] for name, row in first_reading("H100").items()}
        worst = max(times, key=lambda name: abs(times[name] - 1))
        assert f" (`{worst.split(', ')[1]}`)," in below
        assert f" was estimated at {times[worst]:.1f} times its time. " in below
