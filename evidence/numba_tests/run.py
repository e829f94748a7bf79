"""Run numba-cuda's own tests against the stand-in for numba.cuda, and write README.md from what came out.

    python -m evidence.numba_tests.run                       run all, write the page
    python -m evidence.numba_tests.run --resume              run what is left of a run that was broken off
    python -m evidence.numba_tests.run --only cudapy/test_array.py [...]
                                                             run some files, keep the results of the others
    python -m evidence.numba_tests.run --page                write the page from the last results, results.json

The tests come with numba-cuda. Each file runs in processes of its own under a time limit; what a process leaves undone
by crashing or hanging runs in the next one. shim.py makes the tests' numba.cuda the stand-in's;
rules.py says which tests do not apply.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from evidence.numba_tests import page, shim
from evidence.numba_tests.rules import DIFFERENCES, RULES, used_names
from warpcourse.paths import COURSE

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).with_name("README.md")
FILE_SECONDS = 1800  # for a file, however many processes it takes
TEST_SECONDS = 900  # for one test
# numba-cuda's testing/pytest.ini, but for what names a plugin of benchmarks. A warning that Numba does not give fails.
WARNINGS = """
    error
    ignore:.*Grid size .* will likely result in GPU under-utilization.+:numba.cuda.core.errors.NumbaPerformanceWarning
    ignore:.*Grid size .* will likely result in GPU under-utilization.+:numba.core.errors.NumbaPerformanceWarning
    ignore:.*dynamic initialization is not supported for a function-scope static __shared__.*:UserWarning
    ignore:.*The keyword argument .nopython=False. was supplied.+:numba.core.errors.NumbaDeprecationWarning
    ignore:.*nvJitLink is not installed or too old.*:RuntimeWarning
    ignore:.*libnvJitLink.*is too old.*:RuntimeWarning
    ignore:.*float16 relies on LTO for performance.*:numba.cuda.core.errors.NumbaPerformanceWarning
    ignore:.*The CUDA driver version is older than the backend version.*:RuntimeWarning
    ignore:.*class "double4" was declared deprecated.*:UserWarning
    ignore:All-NaN slice encountered:RuntimeWarning
    ignore:Mean of empty slice:RuntimeWarning
    ignore:(invalid value|divide by zero) encountered in.+:RuntimeWarning
    ignore:.*Compilation is falling back to object mode WITHOUT looplifting.*:numba.cuda.core.errors.NumbaWarning
    ignore:\\nCompilation is falling back to object mode WITHOUT looplifting.*:numba.core.errors.NumbaWarning
    ignore:overflow encountered in scalar .+:RuntimeWarning
    ignore:.*Host array used in CUDA kernel will incur.*:numba.cuda.core.errors.NumbaPerformanceWarning
    ignore:NVRTC log messages.*Architectures prior to.*are deprecated.*:UserWarning
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", metavar="FILE", help="files of numba/cuda/tests, such as cudapy/test_sm.py"
    )
    parser.add_argument("--resume", action="store_true", help="run what is left of a run that was broken off")
    parser.add_argument("--page", action="store_true", help="write the page from the last results")
    chosen = parser.parse_args(arguments)
    if not chosen.page:
        _run(chosen.only, chosen.resume)
    results = load()
    results["left"] = [file for file in _every() if file not in results["files"]]
    for file, found in results["files"].items():
        found["uses"] = _uses(tests_folder() / file, found["tests"])
    _write(results)
    results = load()
    PAGE.write_text(page.page(results), encoding="utf-8")
    print(json.dumps(page.totals(results)))
    return 0


def load() -> dict:
    """Read the results: {"version", "device", "left", "files": {file: {"date", "error", "uses", "tests"}}}."""
    results = json.loads(RESULTS.read_text())
    for file in results["files"].values():
        plain = {test: {"outcome": outcome} for outcome, tests in file.pop("plain").items() for test in tests}
        file["tests"] = dict(sorted((plain | file["tests"]).items()))
    return results


def _write(results: dict) -> None:
    """Write the results, one line per file of tests. Tests with nothing to tell but their outcome are listed by it."""
    files = {}
    for name, file in sorted(results["files"].items()):
        told = {test: result for test, result in file["tests"].items() if len(result) > 1}
        plain: dict[str, list[str]] = {}
        for test in sorted(set(file["tests"]) - set(told)):
            plain.setdefault(file["tests"][test]["outcome"], []).append(test)
        files[name] = file | {"tests": told, "plain": plain}
    head = {name: value for name, value in sorted(results.items()) if name != "files"}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    rows = [f"{json.dumps(name)}: {json.dumps(file, sort_keys=True)}" for name, file in files.items()]
    RESULTS.write_text(_portable("\n".join(["{", *lines, '"files": {', ",\n".join(rows), "}}"])) + "\n")


def tests_folder() -> Path:
    return Path(importlib.util.find_spec("numba.cuda.tests").origin).parent


def _portable(text: str) -> str:
    """Leave of the paths in a text what does not depend on the machine."""

    def shorter(match: re.Match) -> str:
        parts = match[0].split("/")
        kept = parts[parts.index("warplab") :] if "warplab" in parts else parts[-2:]
        return "/" + "/".join(kept)

    return re.sub(r"(?<![\w.])(?:/[\w.@+-]+){3,}", shorter, text)


def _every() -> list[str]:
    folder = tests_folder()
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("test_*.py"))


def _run(only: list[str] | None, resume: bool) -> None:
    folder, every = tests_folder(), _every()
    unknown = set(only or ()) - set(every)
    if unknown:
        raise SystemExit(f"error: {folder} has no {', '.join(sorted(unknown))}; give paths such as cudapy/test_sm.py")
    results = {"version": importlib.metadata.version("numba-cuda"), "files": {}}
    if (only or resume) and RESULTS.exists():
        results = load()
    wanted = only or [file for file in every if file not in results["files"]]
    _warm_up()
    for number, file in enumerate(wanted, 1):
        start = time.monotonic()
        found = run_file(folder / file)
        results["files"][file] = {"date": f"{datetime.date.today()}", **found}
        results["device"] = f"{platform.machine()}, {os.cpu_count()} cores, no GPU"
        _write(results)
        counts = {outcome: 0 for outcome in ("passed", "failed", "skipped", "xfailed", "crashed", "hung", "not run")}
        for test in found["tests"].values():
            counts[test["outcome"]] += 1
        shown = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        print(
            f"{number}/{len(wanted)} {file}: {shown or 'no tests'} ({time.monotonic() - start:.0f} s)",
            flush=True,
        )


def run_file(path: Path) -> dict:
    """Run a file of tests; return {"error": why it was not read, "tests": {test: its outcome and details}}.

    A file that names nothing that the stand-in replaces is not run.
    """
    if _numba_alone(path.read_text()):
        return {"error": None, "tests": {test: {"outcome": "not run"} for test in sorted(used_names(path.read_text()))}}
    tests: dict[str, dict] = {}
    found: list[str] = []
    error = None
    started = time.monotonic()
    while True:
        left = FILE_SECONDS - (time.monotonic() - started)
        events, ended = _process(path, sorted(tests), left)
        running, aborted = None, True
        for event in events:
            test = event["test"]
            match event["event"]:
                case "found":
                    found.append(test)
                case "start":
                    running = test
                case "end":
                    running = None
                case "outcome":
                    _add(tests, test, {k: v for k, v in event.items() if k not in ("event", "test")})
                case "collect" | "collect_skip":
                    error = event["message"]
        aborted = running is not None
        if not aborted:
            break
        tests[running] = {"outcome": "hung" if ended == "limit" else "crashed", "message": ended}
        if time.monotonic() - started > FILE_SECONDS:
            for test in found:
                tests.setdefault(test, {"outcome": "hung", "message": "the file's time was over"})
            break
    if error and not tests:
        skipped = any(event["event"] == "collect_skip" for event in events)
        outcome = {"outcome": "skipped", "reason": error} if skipped else {"outcome": "failed", "error": "not imported"}
        tests = {test: {**outcome, "message": error[-500:]} for test in used_names(path.read_text())}
    return {"error": error, "tests": {test: _compact(tests[test]) for test in sorted(tests)}}


def _compact(result: dict) -> dict:
    """Keep of a test's outcome what the page is made from."""
    kept = {name: value for name, value in result.items() if name != "classes"}
    if "classes" in result:
        kept["reported"] = page.REPORTED in result["classes"]
    if "message" in kept:
        kept["message"] = " ".join(kept["message"].split())[:300]
    return {name: value for name, value in kept.items() if value not in (False, "") and name != "seconds"}


def _add(tests: dict[str, dict], test: str, result: dict) -> None:
    """Keep the worst of what is reported on a test: its set-up, itself, its subtests, its end."""
    order = ("passed", "xfailed", "skipped", "failed")
    before = tests.get(test)
    if before is None or order.index(result["outcome"]) > order.index(before["outcome"]):
        tests[test] = result


def _numba_alone(source: str) -> bool:
    """Whether a file names nothing that the stand-in replaces, not even in a program that it starts."""
    if "from numba import cuda" in source:
        return False
    return not any(shim.replaces(*name) for name in shim.imported(source))


def _uses(path: Path, tests: dict[str, dict]) -> dict[str, list[str]]:
    """Return by rule the tests that it says do not apply."""
    source = path.read_text()
    if _numba_alone(source):
        return {page.NUMBA_ALONE: sorted(tests)}
    used = used_names(source)
    found: dict[str, list[str]] = {}
    for test in tests:
        names = used.get(test.split("[")[0], set())
        for rule in (*RULES, *DIFFERENCES):
            if rule.applies_to(names):
                found.setdefault(rule.name, []).append(test)
                break
    return found


def _process(path: Path, done: list[str], seconds: float) -> tuple[list[dict], str]:
    """Run the tests of a file that are not done; return what the process wrote, and how it ended."""
    with tempfile.TemporaryDirectory(prefix="numba-tests-") as temporary:
        work = Path(temporary)
        events, output = work / "events", work / "output"
        events.touch()
        (work / "pytest.ini").write_text(f"[pytest]\nfilterwarnings ={WARNINGS}")
        command = ["-q", "-c", str(work / "pytest.ini"), f"--rootdir={path.parent}", "--tb=no", "-s"]
        # What a destructor says of the missing driver is told of the test that runs at that moment.
        command += [
            part for plugin in ("cacheprovider", "xdist", "unraisableexception") for part in ("-p", f"no:{plugin}")
        ]
        command += [str(path)]
        command += [f"--deselect={path.name}::{test}" for test in done]
        # Forked from this one, which has imported Numba and compiled a kernel; that takes longer than most files.
        process = os.fork()
        if not process:
            _child(command, work, events, output)
        ended = _wait(process, events, seconds)
        text = output.read_text(errors="replace") if output.exists() else ""
        lines = [json.loads(line) for line in events.read_text().splitlines()]
    if not lines and ended not in ("", "0", "5"):
        lines = [{"event": "collect", "test": "", "message": text[-2000:]}]
    return lines, ended if ended == "limit" else f"the process ended with {ended}: {text[-500:]}"


def _child(command: list[str], work: Path, events: Path, output: Path) -> None:
    code = 1
    try:
        os.setsid()
        with open(output, "wb") as file:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)
        os.chdir(work)
        os.environ[shim.EVENTS] = str(events)
        code = int(pytest.main(command, plugins=[shim]))
    finally:
        os._exit(code)


def _wait(process: int, events: Path, seconds: float) -> str:
    """Wait for a process; end it and return "limit" when it, or one of its tests, takes too long, else its status."""
    end, size, changed = time.monotonic() + seconds, 0, time.monotonic()
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return str(os.waitstatus_to_exitcode(status))
        time.sleep(0.05)
        now = time.monotonic()
        if events.stat().st_size != size:
            size, changed = events.stat().st_size, now
        if now > end or now - changed > TEST_SECONDS:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return "limit"


def _warm_up() -> None:
    """Import what all tests need, and compile and launch a kernel."""
    os.environ |= {"PYTHONPATH": str(COURSE), "WARPLAB_BACKEND": "simulator"}
    shim.install()
    from warplab.dropin import numba_cuda as cuda

    @cuda.jit
    def nothing(x):
        x[cuda.grid(1)] = 0

    nothing[1, 32](cuda.device_array(32))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
