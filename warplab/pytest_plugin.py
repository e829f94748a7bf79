"""`pytest --warplab`: unmodified tests of GPU code on the simulator, with its checks and counters.

A plug-in of pytest, found by its entry point where the package is installed, else by `-p warplab.pytest_plugin`. It
imports nothing until it is asked for. A defect fails the test that launched the kernel, at the kernel's line, whether
the test lets the error pass or catches it. With xdist each worker runs so; the reports of all become one.
"""

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    from warplab.running.run_command import FORMATS, add_settings

    group = parser.getgroup("warplab", "GPU kernels on Warp Lab's simulator")
    group.addoption("--warplab", action="store_true", help="run kernels of numba.cuda, CuPy, ... on the simulator")
    add_settings(group.addoption, "--warplab-")
    for name in FORMATS:
        group.addoption(f"--warplab-{name}", metavar="FILE", help=f"write the report on kernels as {name.upper()}")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before any of the tests' own files is imported."""
    options = early_config.known_args_namespace
    if not getattr(options, "warplab", False):
        return
    from warplab.running import run_command, session

    try:
        chosen = run_command.settings(
            options.warplab_card, options.warplab_strict, options.warplab_suppress, options.warplab_max_seconds
        )
    except run_command.BadInput as error:
        raise pytest.UsageError(str(error).replace("--max", "--warplab-max")) from None
    running = session.begin(chosen)
    if not running.first:
        running.part()
    _replace_importorskip()
    early_config.pluginmanager.register(Running(), "warplab-running")


def _replace_importorskip() -> None:
    """Give tests the stand-in that ask for a library by pytest.importorskip, whatever its version."""
    from warplab.dropin import imports

    plain = pytest.importorskip

    def importorskip(modname: str, minversion: str | None = None, reason: str | None = None, **more):
        if not imports.is_replaced(modname):
            return plain(modname, minversion, reason, **more)
        try:
            return imports.standin(modname)
        except ImportError as error:
            pytest.skip(reason or str(error), allow_module_level=True)

    pytest.importorskip = importorskip


class Running:
    """What is done while `--warplab` is on. `before`: how often each defect was found so far. `outside`: whether some
    were found while no test ran."""

    def __init__(self) -> None:
        self.before: dict[tuple, int] = {}
        self.outside = False

    def _new(self) -> list[dict]:
        now = _defects()
        found = [d for key, d in now.items() if d["times"] > self.before.get(key, 0) and not d["suppressed"]]
        self.before = {key: defect["times"] for key, defect in now.items()}
        return found

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem):
        self.outside |= bool(self._new())
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo):
        outcome = yield
        report = outcome.get_result()
        if report.when == "setup" and not report.failed:
            return
        found = self._new()
        if found and report.when != "setup" and not hasattr(report, "wasxfail"):
            caught = report.passed
            report.outcome = "failed"
            report.longrepr = "\n\n".join(_shown(defect, caught) for defect in found)
        elif report.failed and call.excinfo is not None and hasattr(call.excinfo.value, "_render_traceback_"):
            from warplab.compile.short_traceback import short_traceback

            report.longrepr = "\n".join(short_traceback(call.excinfo.value))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter, config: pytest.Config) -> None:
        from warplab.running import report_files, report_text, session

        running = session.current()
        if running is None or not running.first:
            return
        report = running.report()
        terminalreporter.section("Warp Lab")
        terminalreporter.write_line(report_text.text(report, "the tests"))
        for name, function in report_files.FORMATS.items():
            path = config.getoption(f"warplab_{name}")
            status = int(terminalreporter._session.exitstatus)
            wrong = path and report_files.write(path, function(report, "pytest", status))
            if wrong:
                terminalreporter.write_line(f"error: the report {wrong}")
                terminalreporter._session.exitstatus = status or 2

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the session where a defect was found while no test ran: at import, or in a process that ended later."""
        self.outside |= bool(self._new())
        if self.outside and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["warplab_outside"] = self.outside
        self._finish()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        self.outside |= getattr(node, "workeroutput", {}).get("warplab_outside", False)

    def _finish(self) -> None:
        from warplab.running import session

        running = session.current()
        if running is not None:
            running.finish()  # in a worker of xdist

    def pytest_unconfigure(self) -> None:
        from warplab.running import session

        running = session.current()
        if running is not None:
            running.close()


def _defects() -> dict[tuple, dict]:
    from warplab.running import session

    running = session.current()
    found: dict[tuple, dict] = {}
    for defect in running.defects() if running is not None and os.path.isdir(running.folder) else ():
        same = found.setdefault(tuple(map(str, _key(defect))), {**defect, "times": 0})
        same["times"] += defect["times"]
    return found


def _key(defect: dict) -> list:
    return [defect[name] for name in ("error", "kernel", "path", "line", "launched_at", "suppressed")]


def _shown(defect: dict, caught: bool) -> str:
    """Return a defect as pytest shows the place of an error: path:line: class, with the message below."""
    from warplab.running.report_text import shown_path

    lines = [f"{defect['error']}: {defect['message']}"]
    if defect["launched_at"]:
        lines.append(f"launched at {shown_path(defect['launched_at'][0])}:{defect['launched_at'][1]}")
    if caught:
        lines.append("The test caught the error; a defect of a kernel fails it all the same (--warplab-suppress).")
    return "\n".join([*lines, "", f"{shown_path(defect['path'])}:{defect['line']}: {defect['error']}"])
