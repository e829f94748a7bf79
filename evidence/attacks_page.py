"""Write docs/attacks.md: what hostile submissions try, the expected result, and the result when last tried.

    python -m evidence.attacks_page          write the page with the last results
    python -m evidence.attacks_page --try    grade the attacks first: in the sandbox, under limits, by stock nbgrader
    python -m evidence.attacks_page --try tensorflow kernel/endless    only these groups and attacks; other results stay
    python -m evidence.attacks_page --try labs             only the answers to exercises (tests/support/lab_attacks.py)

tests/warpcourse/grading/attacks holds the attacks with what is expected of each; test_attacks.py beside it grades them,
too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from warpcourse.paths import COURSE
from warplab.text.tables import markdown

sys.modules.setdefault("rfc3987_syntax", None)  # see warpcourse/grading/__init__.py

from tests.support.attack_harness import (  # noqa: E402
    POINTS,
    TENSORFLOW,
    Attack,
    Expected,
    Listener,
    Target,
    attacks,
    autograde_by_stock_nbgrader,
    grade,
    left_behind,
    seen,
    stock_seen,
    taken_over,
    tensorflow_attacks,
)
from tests.support.chromium import missing  # noqa: E402
from tests.support.lab_attacks import LabAttack, graded, lab_attacks  # noqa: E402
from tests.support.waiting import until  # noqa: E402
from tests.warpcourse.grading.course.test_costly_archives import ATTACKS as COSTLY_ARCHIVES  # noqa: E402
from tests.warpcourse.grading.course.test_hostile_archives import ATTACKS as ARCHIVE_ATTACKS  # noqa: E402
from warpcourse.grading.course.workers import LocalWorkers  # noqa: E402
from warpcourse.grading.sandbox import isolation  # noqa: E402
from warpcourse.grading.sandbox.kernel_manager import Zygotes  # noqa: E402

PAGE = COURSE / "docs" / "attacks.md"
SEEN = COURSE / "docs" / "attacks.json"

RANDOM = COURSE / "evidence" / "fuzz" / "results.json"

GROUPS = {
    "tamper": "Tampering with what decides about points",
    "read": "Reading hidden tests, the secret, other people's files",
    "forge": "Forging answers",
    "process": "Harming the machine, the grader, other submissions",
    "kernel": "Kernels: on the host, endless, or as hostile PTX",
    "notebook": "The notebook: its cells and the files beside it",
    "page": "What instructors and students open in a browser",
    "limits": "What holds without bubblewrap, too",
    TENSORFLOW: "With TensorFlow, in the processes that have it",
}
LABS = """
## Answers to the exercises of labs

Each row answers one problem of an exercise, and is graded with the given cells and that problem's tests in the sandbox.
The last rows are right and unusual answers, which a defence could hit. Bold: more than the answer deserves. Tried on
{date}.
"""
HEAD = """# Attacks on the grading

<!-- Written by evidence/attacks_page.py; do not edit. -->

Each row is a submission in `tests/warpcourse/grading/attacks/`, graded in one class with three honest ones, out of
{possible} points. An attack "gets it" if it got hold of what it was after, other than points; "shown" means that hidden
inputs appear on the student's page. An attack on a page tries to run a script in the browser of whoever opens it: in
nbgrader's formgrader, or on the feedback page (tried in Chromium). The column *expected* applies to the
sandbox (bubblewrap). "limits" is the grader without bubblewrap, which warns. "stock" is nbgrader {nbgrader} with its
own preprocessors, where it was tried (without the kernel: {stock} points). The attacks with TensorFlow are a class of
their own, without the kernel, whose given cell imports it.

Tried on {date} as {user}, with Python {python}, Linux {kernel} and two judges. Bold: more than the answers deserve.
The honest submissions got their points in all three ways, except that a friend of `gradebook` got full marks from stock
nbgrader. The first two ways left no process behind.
"""
ARCHIVES = """
## Archives of a class

Each row is one student's part of the archive that `python -m warplab collect` reads. `test_hostile_archives.py` tries
it beside the honest work of two, in both orders: theirs stays as they handed it in, and none of his counts as theirs.
From `bzip2` on, `test_costly_archives.py` does so in one class: reports stay short, memory small.
"""
FUZZ = """
## Random input

`python -m evidence.fuzz` (seed 34) hands PTX with random changes, descriptions of answers as a student's process may
give them, and notebooks with random changes to the code that judges them. An infra_error is a failure of the grader's
own, a crash ends its process, a hang goes on past a test's limit. Where the simulator itself failed, only that test is
lost.
"""
FUZZ_COLUMNS = ("", "tried", "infra_error", "crash", "hang", "how the others ended", "processor s", "on")
TAIL = """
## What is not defended

- A function must be told what it is called with, so a student's process knows the inputs of hidden tests that call its
  functions. It cannot show them: from the first such call on, its outputs and the messages of its failures are
  withheld, and every later cell looks the same, whatever it does. What remains visible is whether a test passes, which
  kind of failure it has, how the notebook ended, and of a kernel which line failed. A submission can choose that line:
  up to 13 bits of a hidden test of a kernel (one of 301 lines told a hidden size to within 20; 16,000 are refused).
  Inputs drawn by `checks.function` and `checks.kernel` differ between submissions; those written into a test do not.
- A kernel is its PTX. Writing PTX by hand, or letting another language produce it, counts as writing a kernel. The
  grader cannot tell whether it came from Numba or CUDA C++.
- Handing in someone else's answer gets the points. `python -m warplab similar` shows similar kernels.
- A submission that notices that it is graded may behave differently. It gains nothing.
- Attacks on Linux itself, on the processor (timing, caches) or on bubblewrap: all submissions share one Linux kernel.
- A student can waste a judge's time, up to the limits, once per submission.
- Where Linux groups by session and the grader has no cpu cgroup, a submission that makes more than ten sessions a
  second, or hides its processes from others of its user, takes more than its share. Neighbours wait; they lose no test.
- Memory that several processes take between two looks, a tenth of a second apart, and memory that belongs to no
  process: pipes and objects of the kernel, and without bubblewrap shared memory and buffers of sockets. A control group
  counts all of it ([instructors.md](instructors.md) tells how to give the grader one).
- The formgrader shows notebooks in the instructor's browser. Text, outputs and files of the graded copies are inert;
  what is in `grading/submitted/` is as the student handed it in.
- What a function keeps from one call to the next, in memory or in a file: an order that was drawn and remembered looks
  like one that is computed again (exercise 12, 2 points). Only a second run of the notebook, in a second sandbox, could
  tell them apart.
- Where a predicted number comes from (exercise 02, 2 points): whoever has the course finds it by a run at home and
  types it in. A run inside the answer, whose import is hidden from what the cell says, saves that typing and no more.
- Whether Keras trains, where its losses are those of a NumPy program (exercise 12, 5 points): an answer must be given
  the network, and its weights are in it, in the process that is the student's, whatever else the frames there hold.
- Without bubblewrap: everything that the column "limits" shows in bold, and whatever else the user who grades may read.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--try",
        dest="groups",
        nargs="*",
        metavar="NAME",
        help=f"grade the attacks first, or some (GROUP/NAME) and those of some groups: {', '.join(GROUPS)} (minutes)",
    )
    groups = parser.parse_args().groups
    if unknown := [name for name in groups or () if name != "labs" and not every_attack([name])]:
        parser.error(f"there is no group or attack {', '.join(unknown)}")
    if groups is not None and (not groups or "labs" in groups):
        found = json.loads(SEEN.read_text()) | {"labs": attempt_labs()}
        SEEN.write_text(json.dumps(found, indent=1) + "\n")
    if groups is not None and groups != ["labs"]:
        kept, groups = json.loads(SEEN.read_text()).get("labs"), [name for name in groups if name != "labs"]
        found = attempt(groups or GROUPS)
        if groups:
            found = merged(json.loads(SEEN.read_text()), found, groups)
        found["labs"] = kept
        SEEN.write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(page(), encoding="utf-8")


# -- trying ------------------------------------------------------------------------------------------------------


def every_attack(groups: Iterable[str] = tuple(GROUPS)) -> list[Attack]:
    """Return the attacks of these groups, or of these names."""
    found = [*attacks(), *tensorflow_attacks()]
    return [attack for attack in found if {attack.name, attack.name.partition("/")[0]} & {*groups}]


def attempt(groups: Iterable[str]) -> dict[str, Any]:
    """Return what came of each attack in each of the three ways. Raises AssertionError if an honest student lost."""
    every = every_attack(groups)
    if isolation.find().kind != "bubblewrap":
        raise SystemExit(
            "error: the page shows what the sandbox prevents; install bubblewrap, which does not work here"
        )
    if any(attack.name.startswith("page/") for attack in every) and missing():
        raise SystemExit(f"error: the page shows what runs in a browser, which {missing()}; install that")
    harmless = [attack for attack in every if os.geteuid() == 0 or attack.name != "process/kills_others"]
    found = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "user": "root" if os.geteuid() == 0 else "an ordinary user",
        "python": sys.version.split()[0],
        "kernel": ".".join(os.uname().release.split(".")[:2]),
        "nbgrader": version("nbgrader"),
        "sandbox": _graded(every),
    }
    with _no_bubblewrap():
        found["limits"] = _graded(harmless)
    found["stock"] = {}
    chosen = [attack for attack in every if attack.stock is not None]
    if chosen:
        with tempfile.TemporaryDirectory() as folder:
            target = Target(Path(folder), without_kernel=True)
            target.hand_in_all(chosen)
            autograde_by_stock_nbgrader(target)
            found["stock"] = _with_pages(target, chosen, {attack.name: stock_seen(target, attack) for attack in chosen})
    return found


def attempt_labs() -> dict[str, Any]:
    """Return what each answer to an exercise got, and when."""
    found: dict[str, Any] = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "points": {}}
    with contextlib.ExitStack() as stack:
        warmed = {
            w: stack.enter_context(Zygotes(isolation.find(), warmth=w)) for w in {a.warmth for a in lab_attacks()}
        }
        for one in lab_attacks():
            failed = graded(one, warmed[one.warmth]).failed
            found["points"][one.id] = one.points(one.tests - failed.keys())
    return found


def merged(before: dict[str, Any], found: dict[str, Any], groups: Iterable[str]) -> dict[str, Any]:
    """Put the results of some groups or attacks in the place of earlier ones; each of these has its date."""
    for what in ("user", "python", "kernel", "nbgrader"):
        if before[what] != found[what]:
            raise SystemExit(
                f"error: the other results are of {what} {before[what]}, and these of {found[what]}; try all groups"
            )
    for way in ("sandbox", "limits", "stock"):
        again = {attack.name for attack in every_attack(groups)}
        kept = {name: result for name, result in before[way].items() if name not in again}
        before[way] = dict(sorted((kept | found[way]).items()))
    before["dates"] = before.get("dates", {}) | dict.fromkeys(groups, found["date"])
    return before


def _graded(chosen: list[Attack]) -> dict[str, Any]:
    of_tensorflow = [attack for attack in chosen if attack.name.startswith(f"{TENSORFLOW}/")]
    others = [attack for attack in chosen if attack not in of_tensorflow]
    return (_class(others) if others else {}) | (_class(of_tensorflow, tensorflow=True) if of_tensorflow else {})


def _class(chosen: list[Attack], tensorflow: bool = False) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, Listener().open() as listener:
        target = Target(Path(folder), without_kernel=tensorflow, port=listener.port, tensorflow=tensorflow)
        target.hand_in_all(chosen)
        records = grade(target, chosen, LocalWorkers(2))
        until(lambda: not left_behind(), "the end of every process of an attack")
        assert target.honest().items() <= target.scores().items(), target.scores()
        came = {attack.name: seen(target, attack, records[attack.student]) for attack in chosen}
        return _with_pages(target, chosen, came)


def _with_pages(target: Target, chosen: list[Attack], found: dict[str, Expected]) -> dict[str, Any]:
    """Return what came of each attack, with what came of opening its pages."""
    pages = [attack for attack in chosen if attack.name.startswith("page/")]
    taken = taken_over(target, pages) if pages else {}
    for name, what in taken.items():
        if what:
            found[name] = replace(found[name], flags=found[name].flags | {"got"})
    return {name: _plain(came) for name, came in found.items()}


def _plain(expected: Expected) -> list:
    return [expected.status, expected.scores and sum(expected.scores), sorted(expected.flags)]


@contextlib.contextmanager
def _no_bubblewrap() -> Iterator[None]:
    """Switch bubblewrap off for judges that are started in this context."""
    os.environ |= {isolation.SWITCH: "limits", isolation.READS: "all"}
    try:
        yield
    finally:
        del os.environ[isolation.SWITCH], os.environ[isolation.READS]


# -- writing -----------------------------------------------------------------------------------------------------


def page() -> str:
    """Return the page, from the attacks and the last results."""
    found = json.loads(SEEN.read_text())
    head = HEAD.format(**found | {"possible": f"{sum(POINTS):g}", "stock": f"{sum(POINTS[:3]):g}"})
    parts = [head.rstrip()]
    for group, title in GROUPS.items():
        rows = [_row(attack, found) for attack in every_attack([group])]
        parts.append(f"\n## {title}\n")
        dates = found.get("dates", {})
        if dates.get(group, found["date"]) != found["date"]:
            parts.append(f"Tried on {dates[group]}.\n")
        for date in sorted({dates.get(name, "") for name in dates if name.startswith(f"{group}/")}):
            names = [name.partition("/")[2] for name in dates if name.startswith(f"{group}/") and dates[name] == date]
            parts.append(f"Tried on {date}: {', '.join(names)}.\n")
        parts += [markdown(("", "tries", "expected", "sandbox", "limits", "stock"), rows)]
    found = found["labs"]
    if ungraded := [one.id for one in lab_attacks() if one.id not in found["points"]]:
        raise SystemExit(f"error: never graded: {', '.join(ungraded)}; run python -m evidence.attacks_page --try labs")
    rows = [_lab_row(one, found["points"][one.id]) for one in lab_attacks()]
    rows.sort(key=lambda row: row[2] == "all")
    parts += [LABS.format(date=found["date"]), markdown(("", "tries", "expected", "sandbox"), rows)]
    parts += [
        ARCHIVES,
        markdown(("", "tries"), [[one.name, one.tries] for one in (*ARCHIVE_ATTACKS, *COSTLY_ARCHIVES)]),
    ]
    parts += [FUZZ, markdown(FUZZ_COLUMNS, [_random_row(*one) for one in json.loads(RANDOM.read_text()).items()])]
    return "\n".join(parts) + "\n" + TAIL


def _lab_row(one: LabAttack, points: float) -> list[str]:
    possible, deserved = one.points(one.tests), one.points(one.holds)
    got = f"{points:g} of {possible:g}"
    more = one.open or points > deserved
    return [
        one.id,
        one.tries,
        "all" if one.honest else "less" if one.open else f"{deserved:g}",
        f"**{got}**" if more else got,
    ]


def _random_row(target: str, found: dict[str, Any]) -> list[str]:
    ends = ", ".join(f"{end} {count:,}" for end, count in found["ends"].items())
    failures = [f"{found[what]:,}" for what in ("infra_error", "crash", "hang")]
    return [target, f"{found['cases']:,}", *failures, ends, f"{found['processor_seconds']}", found["date"]]


def _row(attack: Attack, found: dict[str, Any]) -> list[str]:
    expected = _plain(attack.expects)
    deserved = expected[1]
    cells = [_text(expected, deserved)]
    for way in ("sandbox", "limits"):
        result = found[way].get(attack.name)
        cells.append("not tried" if result is None else _text(result, deserved))
    stock = found["stock"].get(attack.name)
    cells.append("" if stock is None else _text([None, *stock[1:]], deserved))
    return [attack.name.partition("/")[2], attack.tries, *cells]


def _text(result: list, deserved: float) -> str:
    status, points, flags = result
    parts = [] if status in (None, "graded") else [status.replace("student_crash", "crash")]
    text = "no score" if points is None else f"{points:g}"
    parts.append(f"**{text}**" if points is not None and points > deserved else text)
    parts += [{"got": "**gets it**", "shown": "**shown**"}[flag] for flag in flags]
    return ", ".join(parts)


if __name__ == "__main__":
    main()
