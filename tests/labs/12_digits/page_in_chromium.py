"""The page of lab 12 as a learner meets it: the app started, its page opened, clicked and typed into in Chromium.

    with page_in_chromium(tmp_path) as page:
        page.press("Train")
        page.fill("Epochs", "3")
        page.press("Start training")
        page.until_says("done")

Controls are found as a learner finds them: by the text on a button, by the label beside an input.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psutil

from tests.support.chromium import Chromium, chromium, free_port
from tests.support.waiting import until
from warpcourse.paths import COURSE

# Elements in sight, in the order of the page. A panel that is not open is display: none, and so not in sight.
_HELPERS = """
const seen = element => element.checkVisibility({visibilityProperty: true});
const words = element => (element?.textContent || "").replace(/\\s+/g, " ").trim();
const buttons = (name, start) => [...document.querySelectorAll("button, a[href], summary")]
    .filter(one => seen(one) && (start ? words(one).startsWith(start) : words(one) == name));
const labelled = name => {
    const exact = [...document.querySelectorAll("label")].filter(one => seen(one) && words(one) == name);
    return exact.map(one => one.control || one.querySelector("input, select, textarea")
        || one.parentElement.querySelector("input, select, textarea, [role=slider], .noUi-handle")).filter(Boolean);
};
"""
_NAMED = {"button", "checkbox", "combobox", "image", "img", "link", "listbox", "progressbar", "radio", "slider"}
_NAMED |= {"spinbutton", "tab", "tablist", "tabpanel", "textbox", "region", "table"}
_KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Space": (32, " "),
    "End": (35, ""),
    "Home": (36, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
}
# Runs before the page's own scripts: keeps what its policy refused, and what went wrong.
_WATCH = """
window.digitsRefused = [];
window.digitsErrors = [];
document.addEventListener("securitypolicyviolation",
    event => window.digitsRefused.push(event.violatedDirective + " " + event.blockedURI));
window.addEventListener("error", event => window.digitsErrors.push(String(event.message)));
window.addEventListener("unhandledrejection", event => window.digitsErrors.push(String(event.reason)));
const say = console.error;
console.error = (...what) => { window.digitsErrors.push(what.map(String).join(" ")); say(...what); };
"""


class DigitsPage:
    """An open page. `browser` shows it, `workspace` is the folder behind it, `address` holds the token."""

    def __init__(self, browser: Chromium, workspace: Path, address: str, server: subprocess.Popen) -> None:
        self.browser, self.workspace, self.address, self.server = browser, workspace, address, server
        self._devtools("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})

    def open(self) -> None:
        """Load the page, or load it again, and wait until it can be used."""
        self.browser.open(self.address)
        until(lambda: self._ask("return !!document.querySelector('.digits-steps button')"), "the page's widgets")
        until(lambda: not self._ask("return !!document.getElementById('loading')"), "the page's first beat")

    def press(self, name: str, place: int = 0) -> None:
        """Press the button or follow the link with this text, as soon as it is there and not disabled.

        Args:
            name: The whole text.
            place: Which one of several, in the order of the page.
        """
        script = "const found = buttons(arguments[0])[arguments[1]]; return found && !found.disabled ? found : null"
        self._click(self._found(script, name, place, what=f"the button {name!r}"))

    def is_pressable(self, name: str) -> bool:
        """Return whether there is a button with this text that is not disabled."""
        return bool(self._ask("const found = buttons(arguments[0])[0]; return !!found && !found.disabled", name))

    def fill(self, label: str, text: str, place: int = 0) -> None:
        """Type a text into the input with this label in place of what is there, and press Enter."""
        element = self._control(label, place)
        self._ask(
            "arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus(); arguments[0].select()", element
        )
        multiline = self._ask("return arguments[0].tagName == 'TEXTAREA'", element)
        self.browser.type(element, text + ("" if multiline else "\ue007"))
        if multiline:
            self._ask("arguments[0].blur()", element)

    def choose(self, label: str, option: str, place: int = 0) -> None:
        """Choose from the list with this label the option with this text."""
        there = "return [...arguments[0].options].some(one => words(one) == arguments[1])"
        until(lambda: self._ask(there, self._control(label, place), option), f"the option {option!r} of {label!r}")
        change = (
            "const list = arguments[0], options = [...list.options];"
            "list.selectedIndex = options.findIndex(one => words(one) == arguments[1]);"
            "list.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        self._ask(change, self._control(label, place), option)

    def tick(self, label: str, on: bool = True, place: int = 0) -> None:
        """Tick the box with this label, or clear it."""
        element = self._control(label, place)
        if self._ask("return arguments[0].checked", element) != on:
            self._click(element)

    def upload(self, label: str, *files: Path) -> None:
        """Press the upload button that starts with this text, and choose files in the dialogue that it opens.

        ipywidgets keeps the input outside the document and clicks on it; WebDriver writes only into one inside.
        """
        self._ask(
            "HTMLInputElement.prototype.click = function () {"
            " window.digitsInput = this; this.value = ''; this.style.display = 'block'; document.body.append(this); }"
        )
        script = "return buttons(null, arguments[0]).find(one => !one.disabled) || null"
        self._click(self._found(script, label, what=f"the upload button {label!r}"))
        element = self._found("return window.digitsInput || null", what="the dialogue for files")
        self.browser.type(element, "\n".join(str(file.resolve()) for file in files))
        self._ask("window.digitsInput.remove(); delete window.digitsInput; delete HTMLInputElement.prototype.click")

    def value(self, label: str, place: int = 0) -> str:
        """Return what the control with this label holds."""
        script = "return arguments[0].selectedOptions ? words(arguments[0].selectedOptions[0]) : arguments[0].value"
        return str(self._ask(script, self._control(label, place)))

    def options(self, label: str, place: int = 0) -> list[str]:
        """Return the options of the list with this label."""
        return list(self._ask("return [...arguments[0].options].map(words)", self._control(label, place)))

    def text(self, selector: str = "main") -> str:
        """Return what is to be read in the first element of a selector, "" if there is none in sight."""
        script = "const one = [...document.querySelectorAll(arguments[0])].find(seen); return one ? one.innerText : ''"
        return str(self._ask(script, selector))

    def says(self, text: str, selector: str = "main") -> bool:
        """Return whether a text stands in the page."""
        return text in self.text(selector)

    def until_says(self, text: str, selector: str = "main") -> None:
        """Wait until a text stands in the page."""
        try:
            until(lambda: self.says(text, selector), f"{text!r} in the page")
        except AssertionError as error:
            raise AssertionError(f"{error}. The page says:\n{self.text('body')}\n{self.log()}") from error

    def count(self, selector: str) -> int:
        """Return how many elements of a selector are in sight."""
        return int(self._ask("return [...document.querySelectorAll(arguments[0])].filter(seen).length", selector))

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page; `seen`, `words`, `buttons` and `labelled` are there. See `_HELPERS`."""
        return self._ask(script, *arguments)

    def key(self, name: str, times: int = 1) -> None:
        """Press a key, as a hand does, with what has the focus: one of `_KEYS`."""
        code, text = _KEYS[name]
        about = {"key": text or name, "code": name, "windowsVirtualKeyCode": code}
        for _ in range(times):
            down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            self._devtools("Input.dispatchKeyEvent", about | down)
            self._devtools("Input.dispatchKeyEvent", about | {"type": "keyUp"})

    def focused(self) -> str:
        """Return the text or the label of what has the focus."""
        script = (
            "const one = document.activeElement; if (!one || one === document.body) return '';"
            "return one.labels && one.labels.length ? words(one.labels[0])"
            " : one.getAttribute('aria-label') || words(one)"
        )
        return str(self._ask(script))

    def size(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Show the page as on a screen so wide, in CSS pixels, with the colours that the reader prefers."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)
        self._devtools("Emulation.setScrollbarsHidden", {"hidden": True})
        colours = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._devtools("Emulation.setEmulatedMedia", {"features": colours})

    def picture(self, path: Path, whole: bool = True) -> Path:
        """Write a PNG of the page.

        Args:
            path: Where to.
            whole: Whether all of the page, not only what a screen shows at once.
        """
        answer = self._devtools("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def nameless(self) -> list[str]:
        """Return the controls and pictures that assistive technology finds no name for, as Chromium computes it."""
        self._devtools("Accessibility.enable", {})
        nodes = self._devtools("Accessibility.getFullAXTree", {})["nodes"]
        found = []
        for node in nodes:
            role = node.get("role", {}).get("value")
            if not node.get("ignored") and role in _NAMED and not node.get("name", {}).get("value"):
                asked = self._devtools("DOM.describeNode", {"backendNodeId": node["backendDOMNodeId"]})["node"]
                found.append(f"{role} {asked.get('attributes')}")
        return found

    def hosts(self) -> set[str]:
        """Return the hosts of all that the page has asked for since it was loaded, sockets and refused requests too."""
        loaded = self._ask("return performance.getEntriesByType('resource').map(one => one.name).concat(location.href)")
        refused = [one.split(" ", 1)[1] for one in self.refused()]
        addresses = [one for one in [*loaded, *refused] if "://" in one]
        return {one.split("://", 1)[1].split("/", 1)[0].split(":")[0] for one in addresses}

    def refused(self) -> list[str]:
        """Return what the page's policy refused: directive and address."""
        return list(self._ask("return window.digitsRefused || []"))

    def errors(self) -> list[str]:
        """Return what the page's scripts wrote as errors to the browser's console."""
        return list(self._ask("return window.digitsErrors || []"))

    def check(self) -> None:
        """Assert that the page asked no other host, and that neither it nor its policy has anything to complain of."""
        assert self.hosts() <= {"127.0.0.1"}
        assert (self.refused(), self.errors(), self.log()) == ([], [], "")

    def kernels(self) -> list[int]:
        """Return the process ids of the kernels of the open pages."""
        found = []
        for child in psutil.Process(self.server.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has just ended
                if any("ipykernel_launcher" in part for part in child.cmdline()):
                    found.append(child.pid)
        return found

    def log(self) -> str:
        """Return what the page wrote to its log: the tracebacks of what went wrong."""
        path = self.workspace / "page.log"
        return path.read_text() if path.exists() else ""

    def _control(self, label: str, place: int) -> dict[str, str]:
        script = "return labelled(arguments[0])[arguments[1]] || null"
        return self._found(script, label, place, what=f"the control {label!r}")

    def _found(self, script: str, *arguments: Any, what: str) -> dict[str, str]:
        found: list[Any] = []

        def look() -> bool:
            found[:] = [self._ask(script, *arguments)]
            return found[0] is not None

        try:
            until(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}. The page says:\n{self.text('body')}\n{self.log()}") from error
        return found[0]

    def _click(self, element: dict[str, str]) -> None:
        self._ask("arguments[0].scrollIntoView({block: 'center'})", element)
        self.browser.click(element)

    def _ask(self, script: str, *arguments: Any) -> Any:
        return self.browser.run(_HELPERS + script, *arguments)

    def _devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self.browser.devtools(command, parameters)


@contextlib.contextmanager
def app(
    workspace: Path, port: int = 0, silent: bool = False, **environment: str
) -> Iterator[tuple[str, subprocess.Popen]]:
    """Start the app on a workspace, at a free port if none is given. Yields its address with the token, its process.

    `silent`: fail if it wrote anything to standard error.
    """
    port = port or free_port()
    command = [sys.executable, "-m", "digits.app", "--no-browser", f"--port={port}", f"--workspace={workspace}"]
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complaints:
        server = subprocess.Popen(
            command,
            cwd=COURSE,
            env={**os.environ, "WARPLAB_BACKEND": "simulator", **environment},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complaints,
        )
        try:
            yield _address(server, said), server
        finally:
            server.terminate()
            server.wait()
        complaints.seek(0)
        words = complaints.read()
        assert not (silent and words), f"the server wrote on the user's terminal:\n{words}"


@contextlib.contextmanager
def page_in_chromium(workspace: Path, **environment: str) -> Iterator[DigitsPage]:
    """Start the app on a workspace, open its page in Chromium, and end both in the end. The jobs end by themselves."""
    with app(workspace, silent=True, **environment) as (address, server), chromium() as browser:
        page = DigitsPage(browser, workspace, address, server)
        page.size(1280)
        page.open()
        yield page


def jobs(workspace: Path) -> list[int]:
    """Return the process ids that the states of runs in a workspace name, for a test that ends what it started."""
    found = []
    for state in workspace.glob("runs/*/state.json"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(json.loads(state.read_text()).get("pid") or 0))
    return [pid for pid in found if pid]


def _address(server: subprocess.Popen, said: IO[str]) -> str:
    def lines() -> str:
        said.seek(0)
        return said.read()

    until(lambda: "token=" in lines() or server.poll() is not None, "the start of the app")
    found = re.search(r"http://\S+", lines())
    assert found, f"the app ended with {server.poll()}:\n{lines()}"
    return found[0]
