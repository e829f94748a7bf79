"""README.md: numba-cuda's own tests against the stand-in, in figures, with what does not pass and why."""

from __future__ import annotations

from collections import Counter

from evidence.numba_tests.rules import DIFFERENCES, RULES

NUMBA_ALONE = "Numba alone"
_REASONS = {NUMBA_ALONE: "the file names nothing that the stand-in replaces: it tests Numba's compiler by itself"}
_REASONS |= {rule.name: rule.reason for rule in (*RULES, *DIFFERENCES)}
_ON_PURPOSE = {rule.name for rule in DIFFERENCES}
_SKIPPED = "skipped by itself"
REPORTED = "SimulatorError"  # the class of what the simulator's checks find in a kernel
# What the stand-in raises for what it does not have.
_MISSING = {"AttributeError", "NotImplementedError", "ImportError", "UnsupportedInstruction"}

HEAD = """# numba-cuda's own tests

<!-- Written by `python -m evidence.numba_tests.run`; do not edit. -->

Without a GPU, `cuda` of this course is a stand-in for `numba.cuda`. These are the tests of numba-cuda {version}, run
against it on {dates} ({device}; no time is measured). `make evidence PARTS=numba-tests` runs them again; the result of
each is in results.json. In the tests, and only there, `from numba import cuda` is the stand-in, and so are the names
that it has of the modules of `numba.cuda`.

Of {total:,} tests {alone:,} name nothing that the stand-in replaces, and {not_applying:,} do not apply.
**Of the {applying:,} that apply {passed:,} pass ({percent:.1f} %); {faults} are faults, {missing} want what is missing,
{differences} differ on purpose.** A test that numba-cuda expects to fail on a GPU passes if it fails here, too.

- *fault*: a wrong result, another error than Numba's, a crash or a hang.
- *on purpose*: mostly what the simulator's checks find in the test's own kernel (races, accesses beyond an array, reads
  of what nothing wrote), which a GPU does not tell. Each is listed below.
  compute-sanitizer on an H100 reports the accesses beyond an array in `test_dispatcher.py` and `test_localmem.py`, too
  (2026-11-23).
- *missing*: the stand-in says that it does not have what the test asks for.
- *does not apply*: by a rule below, which looks at what a test names and never at its result; a test to which a rule
  applies is not counted where it passes, either.
"""

TAIL = """## What Numba does and the stand-in does not, on purpose

- A kernel with one signature takes in Numba whatever array it is given and reads its memory as the signature says. Here
  an array of another dtype, number of axes or layout is refused, as the values would be nonsense. Numbers are converted
  as in Numba.
- A kernel that races, reads what nothing wrote or leaves an array goes on in Numba, with whatever comes out. Here it
  stops with the thread, the line and the array.
- Events have no times: the simulator's speed says nothing about a GPU's.
- Lines are always recorded, and memory is freed at once.
- A process that `multiprocessing` forks after the device was used is refused, as on a GPU; after a plain `os.fork()`
  the simulator goes on.
- A launch of more than 2³⁵ thread instructions is stopped, and says so.
- Warnings of small grids and of host arrays are off until they are asked for (`cuda.config`), as the simulator has
  neither cost.
- `cache=True` keeps PTX under a name of its own beside Numba's files, so that neither reads the other's.
"""


def kind(file: dict, test: str) -> tuple[str, str]:
    """Return what a test counts as, and by which rule or why: passed, fault, missing, difference, no (does not apply),
    alone."""
    result = file["tests"][test]
    rule = next((name for name, tests in file["uses"].items() if test in tests), None)
    if rule == NUMBA_ALONE:
        return "alone", rule
    if result["outcome"] == "skipped":
        return "no", _SKIPPED
    if rule in _ON_PURPOSE:
        return ("passed", "") if result["outcome"] in ("passed", "xfailed") else ("difference", rule)
    if rule is not None:
        return "no", rule
    if result["outcome"] in ("passed", "xfailed"):
        return "passed", ""
    if result.get("error") in _MISSING and "/warplab/" in result.get("raised_in", ""):
        return "missing", _line(result)
    if result.get("reported"):
        return "difference", _line(result)
    return "fault", _line(result)


def totals(results: dict) -> dict:
    """Return the figures of the page, with the device and the date."""
    counts = Counter(kind(file, test)[0] for file in results["files"].values() for test in file["tests"])
    applying = sum(counts[name] for name in ("passed", "fault", "missing", "difference"))
    return {
        "benchmark": "numba-cuda's tests",
        "version": results["version"],
        "total": counts.total(),
        "alone": counts["alone"],
        "not_applying": counts["no"],
        "applying": applying,
        "passed": counts["passed"],
        "percent": 100 * counts["passed"] / applying if applying else 0.0,
        "faults": counts["fault"],
        "missing": counts["missing"],
        "differences": counts["difference"],
        "device": results["device"],
        "dates": " and ".join(sorted({file["date"] for file in results["files"].values()})),
    }


def page(results: dict) -> str:
    lines = [HEAD.format(**totals(results))]
    if left := results.get("left"):
        lines += [f"Not run this time, and not in the figures: {', '.join(f'`{file}`' for file in left)}.", ""]
    lines += _rules(results)
    for name, title in (
        ("fault", "Faults"),
        ("missing", "Missing"),
        ("difference", "On purpose"),
    ):
        lines += _listed(results, name, title)
    lines += _skipped(results)
    return "\n".join(lines) + "\n" + TAIL


def _rules(results: dict) -> list[str]:
    counts: Counter[str] = Counter()
    passing: Counter[str] = Counter()
    for file in results["files"].values():
        for test, result in file["tests"].items():
            name, why = kind(file, test)
            if name == "no" and why != _SKIPPED:
                counts[why] += 1
                passing[why] += result["outcome"] in ("passed", "xfailed")
    lines = ["## What does not apply", "", "| Rule | tests | of which pass | Reason |", "| --- | ---: | ---: | --- |"]
    lines += [f"| {why} | {n} | {passing[why] or ''} | {_REASONS[why]} |" for why, n in counts.most_common()]
    return [*lines, ""]


def _listed(results: dict, wanted: str, title: str) -> list[str]:
    lines = [f"## {title}", ""]
    for name, file in sorted(results["files"].items()):
        for test in file["tests"]:
            found, why = kind(file, test)
            if found == wanted:
                reason = _REASONS.get(why, f"`{why}`")
                lines.append(f"- `{name}` {test.replace('::', '.')}: {reason}")
    return [*(lines if len(lines) > 2 else [*lines, "None."]), ""]


def _skipped(results: dict) -> list[str]:
    reasons: Counter[str] = Counter()
    for file in results["files"].values():
        for test, result in file["tests"].items():
            if kind(file, test) == ("no", _SKIPPED):
                reasons[result["reason"].removeprefix("Skipped: ")] += 1
    lines = ["## What numba-cuda skips by itself", "", "| Its reason | tests |", "| --- | ---: |"]
    lines += [f"| {reason} | {n} |" for reason, n in reasons.most_common()]
    return [*lines, ""]


def _line(result: dict) -> str:
    text = " ".join(result.get("message", "").split())[:160].replace("`", "'").replace("|", "/")
    return f"{result.get('error', result['outcome'])}: {text}"
