"""Pytest plugin of the make targets: what is `thorough`, progress, and what a run took (`--target NAME`).

In every run each test's processor time is taken, children included, and `tiers.beyond` marks what `make test` leaves
out. With `--target` a calm line says from time to time how far the run is, and the last line is JSON, for all stages of
a target so far. The target `test-all` also writes what `make test` is chosen by, durations.json, and, if all
passed on a clean checkout, whole_runs.json, from which `tests.support.changed_tests` starts. `--target=durations` with
whole files writes what these took; `--collect-only --target=share` fits the share to what durations.json and marks say.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader

import pytest

from tests.support import tiers, verdicts
from tests.support.verdicts import spent

WHOLE_RUNS = tiers.TESTS / "whole_runs.json"
KEPT = 20  # whole runs
EVERY = 15.0  # seconds between two lines of progress
RECENT = 180.0  # seconds over which the rate is taken, by which the time left is estimated
SILENCE = 60.0  # seconds without the end of a test, until a line says so
EARLIER = "warplab/earlier-stages"  # where pytest's cache keeps what the next stage adds
# Of a test: its own seconds of processor time, the mark that it was given by hand, seconds charged to its file.
Took = tuple[float, str, float]
ADDED = ("passed", "failed", "skipped", "seconds", "processor_seconds", "verdicts_kept")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--target", default="", help="the make target that runs: shows progress, ends with JSON")
    parser.addoption("--stage", default="0/0", help="NUMBER/LAST of a target that runs in several: adds up all so far")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--target") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Run(config), "warplab-run")
        if config.getoption("--stage").startswith("1/"):
            config.cache.set(EARLIER, {})  # if this stage is killed, the next adds nothing of an earlier run


def _git(*arguments: str) -> str:
    """Return what a git command prints; "" if it fails, as it does without git or a checkout."""
    try:
        return subprocess.run(["git", *arguments], cwd=tiers.TESTS, capture_output=True, text=True).stdout
    except OSError:
        return ""


_by_hand: dict[str, str] = {}  # id of a test -> `always` or `thorough`


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark what is `thorough`, and when that is left out, arrange the rest for several workers."""
    share, seconds = tiers.read()
    costs: tiers.Seconds = defaultdict(lambda: defaultdict(dict))
    always = set()
    for item in items:
        file, test, _ = tiers.parts(item.nodeid)
        mark = next((name for name in ("thorough", "always") if item.get_closest_marker(name)), "")
        _by_hand[item.nodeid] = mark
        if mark != "thorough" and not item.get_closest_marker("gpu"):
            costs[file][test][item.nodeid] = tiers.cost(seconds, item.nodeid)
        if mark == "always":
            always.add((file, test))
    if config.getoption("--target") == "share":
        if config.args != config.getini("testpaths"):
            raise pytest.UsageError("--target=share reads all tests: name no files")
        share = tiers.largest_share(costs, always, sum(tiers.shared_of_file(seconds, file) for file in costs))
        tiers.write(share, seconds)
    left = tiers.beyond(share, costs, always)
    for item in items:
        if item.nodeid in left:
            item.add_marker(pytest.mark.thorough)
    yield
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        first = [item.get_closest_marker("tensorflow") is not None for item in items]
        costs = [tiers.cost(seconds, item.nodeid) for item in items]
        items[:] = [items[i] for i in tiers.arrange(costs, first, workers)]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Fail a file that imports TensorFlow at its head: every worker reads it, and would carry 0.4 GB to its end."""
    before = "tensorflow" in sys.modules
    report = yield
    if not before and "tensorflow" in sys.modules:
        report.outcome, report.longrepr = "failed", "imports TensorFlow as it is read: use tests.support.lazily.module"
    return report


_begun = 0.0
_shared = 0.0  # seconds of processor time in this test that are charged to its file
_sharing = False


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """Charge what runs inside to the file, not to the test that happens to run it."""
    global _shared, _sharing
    if _sharing:  # what a module imports is part of its own import
        yield
        return
    _sharing, before = True, spent()
    try:
        yield
    finally:
        _sharing, _shared = False, _shared + spent() - before


@contextlib.contextmanager
def _imports_shared() -> Iterator[None]:
    exec_module = SourceFileLoader.exec_module

    def timed(loader: SourceFileLoader, module: object) -> None:
        with shared():
            exec_module(loader, module)

    SourceFileLoader.exec_module = timed
    try:
        yield
    finally:
        SourceFileLoader.exec_module = exec_module


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _begun, _shared
    _begun, _shared = spent(), 0.0
    with _imports_shared():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    if call.when == "teardown":
        seconds = spent() - _begun - _shared + verdicts.seconds_saved()
        took = (round(seconds, 3), _by_hand.get(item.nodeid, ""), round(_shared, 3))
        report.user_properties.append(("processor", took))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["used"] = _used()


def _used() -> tuple[float, int]:
    """Return seconds of processor time and most bytes of memory of this process."""
    return spent(), 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Run:
    """A make target's run, seen from the process that shows it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.target = config, config.getoption("--target")
        _, self.known = tiers.read()
        self.begun = self.said = time.monotonic()
        self.ids: list[str] = []
        self.left = self.total = 0.0
        self.done: Counter[str] = Counter()
        self.now = ""
        self.took: dict[str, Took] = {}
        self.workers: list[tuple[float, int]] = []
        self.recent: deque[tuple[float, float]] = deque()  # when a line was written, and the cost then left
        self.over = threading.Event()

    # -- progress ------------------------------------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._starts([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids: list[str]) -> None:
        if not self.ids:
            self._starts(ids)
            threading.Thread(target=self._watch, daemon=True).start()  # tests run in other processes

    def _starts(self, ids: list[str]) -> None:
        self.ids = ids
        self.left = self.total = sum(self._cost(one) for one in ids)
        self.recent.append((self.begun, self.total))
        self._say(f"{len(ids):,} tests, {self.total / 60:.0f} minutes of processor time when last recorded")

    def _cost(self, nodeid: str) -> float:
        return tiers.cost(self.known, nodeid) + 0.005

    def pytest_report_teststatus(self, report: pytest.TestReport):
        """No dot for what passed or was skipped."""
        if report.when == "call" and report.passed:
            return "passed", "", ""
        if report.skipped and not hasattr(report, "wasxfail"):
            return "skipped", "", ""
        return None

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.now = tiers.parts(nodeid)[0].removeprefix("tests/")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.done["failed"] += 1
            self._say(f"FAILED {report.nodeid}")
        elif report.skipped:
            self.done["skipped"] += 1
        elif report.when == "call":
            self.done["passed"] += 1
        if report.when == "teardown":
            self.took[report.nodeid] = dict(report.user_properties).get("processor", (0.0, "", 0.0))
            self.left -= self._cost(report.nodeid)
            if time.monotonic() > self.said + EVERY:
                self._progress()

    def _progress(self) -> None:
        self.said = time.monotonic()
        share = 1 - self.left / self.total
        text = f"{100 * share:3.0f} %  {len(self.took):,} of {len(self.ids):,} tests"
        self.recent.append((self.said, self.left))
        while self.recent[1][0] < self.said - RECENT:
            self.recent.popleft()
        then, left = self.recent[0]
        if share >= 0.1 and left > self.left:
            text += f", some {self.left * (self.said - then) / (left - self.left) / 60:.0f} min left"
        self._say(f"{text}; now {self.now}")

    def _watch(self) -> None:
        while not self.over.wait(EVERY):
            if time.monotonic() > self.said + SILENCE:
                self.said = time.monotonic()
                self._say(f"no test has ended for a minute or longer; now {self.now}")

    def _say(self, text: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        reporter.ensure_newline()
        reporter.write_line(text)

    # -- the end -------------------------------------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error: object) -> None:
        if "used" in getattr(node, "workeroutput", {}):
            self.workers.append(node.workeroutput["used"])

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self.over.set()
        own = time.process_time() if self.workers else spent()
        used = [*self.workers, (own, _used()[1])]
        figures = {
            "target": self.target,
            **{name: self.done[name] for name in ("passed", "failed", "skipped")},
            "seconds": round(time.monotonic() - self.begun),
            "processor_seconds": round(sum(seconds for seconds, _ in used)),
            "most_mb_per_worker": max(size for _, size in used) >> 20,
            "workers": len(self.workers) or 1,
            "verdicts_kept": verdicts.taken,
            "load": round(os.getloadavg()[0], 1),
            "device": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
            "date": datetime.date.today().isoformat(),
        }
        stage, last = map(int, self.config.getoption("--stage").split("/"))
        ended = stage > 0 and not self.config.option.keyword and len(self.took) == len(self.ids) > 0
        if stage > 1:
            earlier = self.config.cache.get(EARLIER, {})
            if earlier.get("stage") == stage - 1:  # otherwise that one was killed
                self.took |= earlier["took"]
                figures |= {name: figures[name] + earlier["figures"][name] for name in ADDED}
                figures["most_mb_per_worker"] = max(one["most_mb_per_worker"] for one in (figures, earlier["figures"]))
            ended = ended and earlier.get("stage") == stage - 1 and earlier["ended"]
        if stage:
            self.config.cache.set(EARLIER, {"stage": stage, "figures": figures, "took": self.took, "ended": ended})
        if self.target == "test-all" and stage == last:
            if ended:
                self._record(figures)
            else:
                print("not kept as a whole run: some tests did not run", file=sys.stderr)
        if self.target == "durations" and len(self.took) == len(self.ids):
            share, known = tiers.read()
            tiers.write(share, known | durations(self.took))
        print(json.dumps(figures))

    def _record(self, figures: dict[str, object]) -> None:
        write_durations(self.took)
        commit, changed = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
        ours = {f"tests/{path.name}" for path in (tiers.DURATIONS, WHOLE_RUNS)}
        if figures["failed"] or not commit or {line[3:] for line in changed.splitlines()} - ours:
            print("not kept as a whole run: something failed, or the checkout has changes", file=sys.stderr)
            return
        runs = json.loads(WHOLE_RUNS.read_text()) if WHOLE_RUNS.exists() else []
        runs = [*runs, {"commit": commit.strip(), **figures}][-KEPT:]
        WHOLE_RUNS.write_text("[\n" + ",\n".join(json.dumps(run) for run in runs) + "\n]\n")


def durations(took: dict[str, Took]) -> tiers.Seconds:
    """Return what durations.json keeps of the files of these tests."""
    every: tiers.Seconds = defaultdict(lambda: defaultdict(dict))
    shared_by: dict[str, float] = defaultdict(float)
    for nodeid, (seconds, _, besides) in sorted(took.items()):
        file, test, case = tiers.parts(nodeid)
        every[file][test][case] = seconds
        shared_by[file] += besides
    return {file: tiers.compact(tests, shared_by[file]) for file, tests in every.items()}


def write_durations(took: dict[str, Took]) -> None:
    """Write tests/durations.json from what each test took."""
    fit: tiers.Seconds = defaultdict(lambda: defaultdict(dict))
    always = set()
    for nodeid, (seconds, mark, _) in took.items():
        file, test, _ = tiers.parts(nodeid)
        if mark != "thorough":
            fit[file][test][nodeid] = seconds
        if mark == "always":
            always.add((file, test))
    try:
        share = tiers.largest_share(fit, always, sum(besides for _, _, besides in took.values()))
    except ValueError as error:
        share = tiers.LEAST
        print(f"error: {error}", file=sys.stderr)
    tiers.write(share, durations(took))
