"""Which tests `make test` runs: as much as fits a budget of processor time, by what each took when all last ran.

`durations.json` holds seconds of processor time, children included, by file, test and case, and `share`: the most that
the cases of one test may take together in `make test`. Cases run cheapest first until the share is used up; what is
left gets the mark `thorough`, and so does a test whose cheapest case alone costs more. But each file keeps a test, a
test marked `always` runs with all cases that are not marked `thorough` themselves, and what has no record runs.
`make test-all` writes the file anew, and then the share is the largest for which all fits the budget. What a test
imports, and the cleaning up after its file, is the file's cost: whichever test runs first, or last, would pay it.
"""

from __future__ import annotations

import json
from collections.abc import Container
from itertools import accumulate, islice
from pathlib import Path
from statistics import fmean

TESTS = Path(__file__).resolve().parents[1]
DURATIONS = TESTS / "durations.json"
# Seconds of processor time of all tests of `make test`: 10 minutes on two cores. What is recorded is less than what it
# takes, since what tests of a file share is paid by the first that runs, which may be one that is left out.
BUDGET = 600.0
LONG = 10.0  # seconds
LEAST = 0.1  # seconds; cases that took less are kept as their mean
# File -> test -> case -> seconds. The case "" stands for each that is not named, the test "" for each test not named;
# its case "all" is what the file took, "shared" what of it was no test's own.
Seconds = dict[str, dict[str, dict[str, float]]]


def read() -> tuple[float, Seconds]:
    """Return the share and the durations; no limit and none if there is no record."""
    if not DURATIONS.exists():
        return float("inf"), {}
    content = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return content["share"], content["seconds"]


def parts(nodeid: str) -> tuple[str, str, str]:
    """Split a test's id into file, test (with its class) and case."""
    file, _, rest = nodeid.partition("::")
    test, _, case = rest.partition("[")
    return file, test, case.removesuffix("]")


def cost(seconds: Seconds, nodeid: str) -> float:
    """Return what a test took, or one like it in its file; 0 if the file has no record."""
    file, test, case = parts(nodeid)
    tests = seconds.get(file, {})
    cases = tests.get(test) or tests.get("", {})
    return cases.get(case, cases.get("", 0.0))


def cost_of_file(seconds: Seconds, file: str) -> float:
    """Return what all tests of a file took together; 0 if it has no record."""
    return seconds.get(file, {}).get("", {}).get("all", 0.0)


def shared_of_file(seconds: Seconds, file: str) -> float:
    """Return what of `cost_of_file` was no test's own: imports, and cleaning up."""
    return seconds.get(file, {}).get("", {}).get("shared", 0.0)


def beyond(share: float, costs: Seconds, always: Container[tuple[str, str]]) -> set[str]:
    """Return the ids of tests that do not fit. `costs`: file -> test -> id -> seconds; `always`: (file, test)."""
    out: set[str] = set()
    for file, tests in costs.items():
        every = {nodeid: seconds for cases in tests.values() for nodeid, seconds in cases.items()}
        left = {
            one for test, cases in tests.items() if (file, test) not in always for one in _unaffordable(share, cases)
        }
        if left == every.keys():
            left.discard(min(every, key=lambda nodeid: every[nodeid]))
        out |= left
    return out


def _unaffordable(share: float, cases: dict[str, float]) -> set[str]:
    """Return the cases that are left when the cheapest have used up the share."""
    ids = sorted(cases, key=lambda nodeid: cases[nodeid])
    used = accumulate(cases[nodeid] for nodeid in ids)
    return {nodeid for nodeid, so_far in zip(ids, used, strict=True) if so_far > share}


def largest_share(costs: Seconds, always: Container[tuple[str, str]], shared: float = 0.0) -> float:
    """Return the share with which what is not `beyond`, and `shared`, take at most BUDGET, to a twentieth.

    Raises ValueError if what runs with the least share, `always` above all, already takes more.
    """
    every = {nodeid: s for tests in costs.values() for cases in tests.values() for nodeid, s in cases.items()}

    def takes(share: float) -> float:
        return shared + sum(every.values()) - sum(every[one] for one in beyond(share, costs, always))

    low, high = LEAST, 60.0
    if takes(low) > BUDGET:
        chosen = sum(
            s
            for file, tests in costs.items()
            for test, cases in tests.items()
            if (file, test) in always
            for s in cases.values()
        )
        raise ValueError(
            f"`make test` takes {takes(low):.0f} s of processor time with the least share, {BUDGET:.0f} are allowed; "
            f"tests marked `always` take {chosen:.0f} of it: take the mark from some, or make them shorter"
        )
    while high > 1.05 * low:
        share = (low * high) ** 0.5
        low, high = (share, high) if takes(share) <= BUDGET else (low, share)
    return int(100 * low) / 100


def arrange(costs: list[float], first: list[bool], workers: int) -> list[int]:
    """Return the order in which tests go to so many workers, each of which begins with an equal part of them.

    Tests that are `first` begin the first worker's part; those of LONG seconds and more begin all parts, so that none
    runs alone at the end.
    """
    every = range(len(costs))
    heads = [[i for i in every if first[i]], *([] for _ in range(workers - 1))]
    long = sorted((i for i in every if costs[i] >= LONG and not first[i]), key=lambda i: -costs[i])
    for i in long:
        min(heads, key=lambda head: sum(costs[j] for j in head)).append(i)
    rest = iter(i for i in every if costs[i] < LONG and not first[i])
    order: list[int] = []
    for number, head in enumerate(heads):
        size = (len(costs) - len(order)) // (workers - number)
        order += head + list(islice(rest, max(0, size - len(head))))
    return order + list(rest)


def compact(tests: dict[str, dict[str, float]], shared: float = 0.0) -> dict[str, dict[str, float]]:
    """Return one file's test -> case -> seconds with all that takes little kept as a mean, as in durations.json."""
    found, rest = {}, []
    for test, cases in tests.items():
        small = [seconds for seconds in cases.values() if seconds < LEAST]
        if sum(cases.values()) < LEAST:
            rest += small
            continue
        found[test] = {case: round(seconds, 1) for case, seconds in cases.items() if seconds >= LEAST}
        if small:
            found[test][""] = round(fmean(small), 3)
    every = shared + sum(seconds for cases in tests.values() for seconds in cases.values())
    return found | {"": {"": round(fmean(rest or [0]), 3), "all": round(every, 1), "shared": round(shared, 1)}}


def write(share: float, seconds: Seconds) -> None:
    """Write durations.json, a line for each file."""
    lines = ",\n".join(f"{json.dumps(file)}: {json.dumps(seconds[file])}" for file in sorted(seconds))
    DURATIONS.write_text(f'{{"share": {share}, "seconds": {{\n{lines}\n}}}}\n', encoding="utf-8")
