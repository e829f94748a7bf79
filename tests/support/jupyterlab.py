"""JupyterLab as a learner meets it, in a real browser: notebooks are opened, run and looked at."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.chromium import Chromium, chromium, free_port, listens
from tests.support.waiting import until

_CURRENT = "const panel = jupyterapp.shell.currentWidget; const cells = panel.content.widgets;"


class JupyterLab:
    """A page of a running JupyterLab. `browser`: the Chromium that shows it."""

    def __init__(self, browser: Chromium, port: int, token: str) -> None:
        self.browser, self._port, self._token = browser, port, token

    def open(self, path: str = "") -> None:
        """Open a file of the server, or what it opens by itself; returns when the page shows it."""
        place = f"lab/tree/{urllib.parse.quote(path)}" if path else ""
        self.browser.open(f"http://127.0.0.1:{self._port}/{place}?token={self._token}&reset")
        until(lambda: self.browser.run("return !!(window.jupyterapp && jupyterapp.shell)"), "the start of JupyterLab")
        self.browser.wait("const done = arguments[0]; jupyterapp.restored.then(() => done(true))")

    def open_notebook(self, path: str) -> None:
        """Open a notebook and wait for its cells and its kernel."""
        self.open(path)
        ready = (
            "const panel = jupyterapp.shell.currentWidget;"
            "return !!(panel && panel.content && panel.content.widgets && panel.content.widgets.length"
            " && panel.sessionContext && panel.sessionContext.session && panel.sessionContext.session.kernel"
            " && panel.sessionContext.session.kernel.status == 'idle')"
        )
        until(lambda: self.browser.run(ready), f"the opening of {path}")

    def run_cell(self, index: int) -> None:
        """Run a cell of the open notebook, as Shift+Enter does."""
        script = (
            f"{_CURRENT} const done = arguments[0]; panel.content.activeCellIndex = {index};"
            "panel.content.deselectAll();"
            "jupyterapp.commands.execute('notebook:run-cell').then(() => done(true), error => done(String(error)))"
        )
        assert self.browser.wait(script) is True

    def element(self, index: int, selector: str) -> Any:
        """A part of a cell, by its selector, None if there is none."""
        script = f"{_CURRENT} return cells[arguments[0]].node.querySelector(arguments[1])"
        return self.browser.run(script, index, selector)

    def output(self, index: int) -> str:
        """What the outputs of a cell say."""
        script = f"{_CURRENT} const area = cells[{index}].outputArea; return area ? area.node.innerText : ''"
        return str(self.browser.run(script))

    def save(self) -> None:
        """Save the open notebook."""
        script = "const done = arguments[0]; jupyterapp.commands.execute('docmanager:save').then(() => done(true))"
        self.browser.wait(script)

    def theme(self, name: str) -> None:
        """Change the colours: "JupyterLab Light" or "JupyterLab Dark"."""
        script = (
            "const done = arguments[0];"
            f"jupyterapp.commands.execute('apputils:change-theme', {{theme: {name!r}}})"
            ".then(() => setTimeout(done, 500, 1))"
        )
        self.browser.wait(script)


@contextlib.contextmanager
def jupyterlab(root: Path, arguments: Sequence[str] = (), **environment: str) -> Iterator[JupyterLab]:
    """Start JupyterLab in the folder `root` with the arguments of a command line, and show it in Chromium."""
    port, token = free_port(), secrets.token_hex(8)
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += [f"--IdentityProvider.token={token}", "--ServerApp.port_retries=0", "--expose-app-in-browser"]
    command += [*arguments, *(["--allow-root"] if os.geteuid() == 0 else [])]
    state = root / ".jupyter-of-a-test"
    state.mkdir(parents=True, exist_ok=True)
    folders = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    folders |= {"JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces"}
    own = {name: str(state / folder) for name, folder in folders.items()}
    with open(state / "server.log", "wb") as log:
        server = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, **own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: listens(port) or server.poll() is not None, "the start of JupyterLab's server")
        assert server.poll() is None, (state / "server.log").read_text()
        with chromium() as browser:
            yield JupyterLab(browser, port, token)
    finally:
        server.terminate()
        server.wait()
