"""A real browser for tests: Chromium without a window, driven through chromedriver's W3C WebDriver interface."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.support.waiting import HANG, until

_HERE = ("127.0.0.1", "localhost")


def missing() -> str:
    """Return what is missing for `chromium`, "" if nothing is."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"needs {' and '.join(absent)} (Debian: chromium, chromium-driver)" if absent else ""


class Chromium:
    """An open browser with one window."""

    def __init__(self, driver: str) -> None:
        self._driver, self._session = driver, ""
        options = [
            "--headless=new",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            # Only this machine: a page that waits for a server elsewhere would make a test wait, too.
            f"--host-resolver-rules=MAP * ~NOTFOUND{''.join(f', EXCLUDE {name}' for name in _HERE)}",
        ]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # Chromium refuses to run as root with it
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": options},
            "unhandledPromptBehavior": "accept",
            # Milliseconds; WebDriver's own 30 s for a script are too few on a busy machine.
            "timeouts": {"script": int(1000 * HANG), "pageLoad": int(1000 * HANG)},
        }
        answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{answer['sessionId']}"

    def open(self, address: str) -> None:
        """Load a page, with its pictures and scripts. Returns after its `load` event."""
        self._send("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page and return what it returns. The page's own rules do not bind it."""
        return self._send("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str) -> Any:
        """Run JavaScript whose last argument is a function to call with the result; return that."""
        return self._send("POST", f"{self._session}/execute/async", {"script": script, "args": []})

    def click(self, element: dict[str, str]) -> None:
        """Click on an element that `run` returned, as a hand does: it must be in sight."""
        self._send("POST", f"{self._session}/element/{_name(element)}/click", {})

    def type(self, element: dict[str, str], text: str) -> None:
        """Type into an element; "\\ue007" is Enter."""
        self._send("POST", f"{self._session}/element/{_name(element)}/value", {"text": text})

    def picture(self) -> bytes:
        """Return the page as it is seen, as PNG."""
        return base64.b64decode(self._send("GET", f"{self._session}/screenshot"))

    def size(self, width: int, height: int) -> None:
        """Set the size of the window in pixels."""
        self._send("POST", f"{self._session}/window/rect", {"width": width, "height": height})

    def new_window(self) -> str:
        """Open a second window and go on in it. Returns a name for `close_window`."""
        window = self._send("POST", f"{self._session}/window/new", {"type": "window"})["handle"]
        self._send("POST", f"{self._session}/window", {"handle": window})
        return str(window)

    def close_window(self, window: str) -> None:
        """Close a window, and go on in another one."""
        self._send("POST", f"{self._session}/window", {"handle": window})
        left = self._send("DELETE", f"{self._session}/window")
        self._send("POST", f"{self._session}/window", {"handle": left[0]})

    def devtools(self, command: str, parameters: dict[str, Any] | None = None) -> Any:
        """Ask the browser itself, by a command of the DevTools protocol, such as Emulation.setEmulatedMedia."""
        return self._send("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters or {}})

    @property
    def address(self) -> str:
        return str(self._send("GET", f"{self._session}/url"))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._send("DELETE", self._session)

    def _send(self, method: str, path: str, content: Any = None) -> Any:
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self._driver}{path}", body, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=HANG) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"chromedriver: {error.read().decode()[:500]}") from error


def _name(element: dict[str, str]) -> str:
    return next(iter(element.values()))


@contextlib.contextmanager
def chromium() -> Iterator[Chromium]:
    """Open a browser with a fresh profile, and close it in the end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        port = free_port()
        environment = {**os.environ, "HOME": home, "TMPDIR": home}
        driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: listens(port), "the start of chromedriver")
            browser = Chromium(f"http://127.0.0.1:{port}")
            try:
                yield browser
            finally:
                browser.close()
        finally:
            driver.terminate()
            driver.wait()


def free_port() -> int:
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return int(any_socket.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
