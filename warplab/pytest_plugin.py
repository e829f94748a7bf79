"""`pytest --warplab`: unmodified tests of GPU code on the simulator, with its checks and counters.

A plug-in of pytest, found by its entry point where the package is installed, else by `-p warplab.pytest_plugin`. It
imports nothing until it is asked for. A defect fails the test that launched the kernel, at the kernel's line, whether
the test lets the error pass or catches it. With xdist each worker runs so; the reports of all become one.
"""

from __future__ import annotations

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
    session.begin(chosen)
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
    """What is done while `--warplab` is on."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem):
        self.before = _times()
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo):
        outcome = yield
        report = outcome.get_result()
        if report.when == "setup" and not report.failed:
            return
        found = [d for key, d in _defects().items() if d["times"] > self.before.get(key, 0) and not d["suppressed"]]
        self.before = _times()
        if found and report.when != "setup" and not hasattr(report, "wasxfail"):
            caught = report.passed
            report.outcome = "failed"
            report.longrepr = "\n\n".join(_shown(defect, caught) for defect in found)

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
            if path:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(function(report, "pytest", int(terminalreporter._session.exitstatus)))

    def pytest_sessionfinish(self) -> None:
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
    collected = running.collected if running is not None else None
    return {} if collected is None else {tuple(map(str, _key(d))): d for d in collected.defects}


def _key(defect: dict) -> list:
    return [defect[name] for name in ("error", "kernel", "path", "line", "launched_at", "suppressed")]


def _times() -> dict[tuple, int]:
    return {key: defect["times"] for key, defect in _defects().items()}


def _shown(defect: dict, caught: bool) -> str:
    """Return a defect as pytest shows the place of an error: path:line: class, with the message below."""
    from warplab.running.report_text import shown_path

    lines = [f"{defect['error']}: {defect['message']}"]
    if defect["launched_at"]:
        lines.append(f"launched at {shown_path(defect['launched_at'][0])}:{defect['launched_at'][1]}")
    if caught:
        lines.append("The test caught the error; a defect of a kernel fails it all the same (--warplab-suppress).")
    return "\n".join([*lines, "", f"{shown_path(defect['path'])}:{defect['line']}: {defect['error']}"])
