"""Pages that show submissions, opened in Chromium: nbgrader's formgrader on a Jupyter server, and feedback pages.

A script of an attack, if it runs, marks the page and writes a file through the server's contents API (`SCRIPT`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.chromium import Chromium, free_port, listens
from tests.support.waiting import until

MARK = "data-script-of-a-student"
TAKEN = "taken-over-by-a-student.txt"
# Without quotation marks of either kind, so that it fits into any attribute; in one line.
SCRIPT = (
    f"document.documentElement.setAttribute(`{MARK}`,`ran`);"
    f"fetch(`/api/contents/{TAKEN}`,{{method:`PUT`,"
    "headers:{[`X-XSRFToken`]:(document.cookie.match(/_xsrf=([^;]*)/)||[0,0])[1]},"
    "body:JSON.stringify({type:`file`,format:`text`,content:document.cookie})})"
)
# Every link, in turn: a script behind one runs now. A link to another page is followed by `opened_by_links`.
_CLICK = "for (const link of document.links) if (link.protocol == 'javascript:') link.click()"
_OWN_LINKS = "return [...document.links].filter(a => a.closest('#notebook')).map(a => a.href)"
# After this answer, whatever the page asked of the server before has been answered or is refused.
_SETTLE = (
    "const done = arguments[0];"
    "setTimeout(() => fetch('/api/contents?settle', {cache: 'no-store'}).then(done, done).then(() => 0), 50)"
)


@dataclass
class Formgrader:
    """A running Jupyter server with nbgrader's formgrader. `root`: the folder of the course."""

    root: Path
    port: int
    token: str

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    @property
    def taken(self) -> bool:
        """Return whether a script wrote a file through the server, and remove that."""
        path = self.root / TAKEN
        found = path.exists()
        path.unlink(missing_ok=True)
        return found


@contextlib.contextmanager
def formgrader(root: Path) -> Iterator[Formgrader]:
    """Start a Jupyter server with the formgrader in a course's folder, and end it in the end."""
    port, token = free_port(), secrets.token_hex(8)
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += [f"--IdentityProvider.token={token}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}"]
    command += ["--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}"]
    if os.geteuid() == 0:
        command.append("--allow-root")
    with open(root / "server.log", "wb") as log:
        server = subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: listens(port) or server.poll() is not None, "the start of a Jupyter server")
        assert server.poll() is None, (root / "server.log").read_text()
        yield Formgrader(root, port, token)
    finally:
        server.terminate()
        server.wait()


def log_in(browser: Chromium, server: Formgrader) -> None:
    browser.open(server.address(f"login?token={server.token}"))
    browser.open(server.address("formgrader/manage_assignments"))
    assert "formgrade" in browser.run("return document.title")


def script_ran(browser: Chromium, address: str, server: Formgrader | None = None) -> str:
    """Open a page, click on what it offers, and return what a script of a student's did: "", "ran" or "took over"."""
    browser.open(address)
    done = _done(browser, server)
    followed = browser.run(_OWN_LINKS)
    for link in followed:
        own = address.split("/formgrader/")[0] if server else address.rpartition("/")[0]
        if not done and link.startswith(own) and "#" not in link:
            browser.open(link)
            done = _done(browser, server)
    return done


def _done(browser: Chromium, server: Formgrader | None) -> str:
    browser.run(_CLICK)
    if server:
        browser.wait(_SETTLE)
    ran = browser.run(f"return document.documentElement.getAttribute('{MARK}') || ''")
    return "took over" if server and server.taken else str(ran)
