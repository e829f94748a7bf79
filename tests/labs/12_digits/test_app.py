"""The server of the page: who gets in, what it hands out, and what it leaves behind. No browser."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib
import json
import os
import re
import shutil
import signal
import socket
import urllib.parse
import uuid
from types import SimpleNamespace

import psutil
import pytest
import tornado.httpclient
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.websocket import websocket_connect

from digits import app
from digits.page import server
from digits.workspace import Workspace
from tests.support.waiting import until

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
stub = importlib.import_module("tests.labs.12_digits.run_stub")


class Served:
    """A running app. `get` asks it for a path; `cookies` holds what it gave us."""

    def __init__(self, address, server, workspace):
        self.address, self.server, self.workspace = urllib.parse.urlsplit(address), server, workspace
        self.token = urllib.parse.parse_qs(self.address.query)["token"][0]
        self.cookies = ""

    def get(self, path, method="GET", token=False, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.address.port, timeout=600)
        with contextlib.closing(connection):
            headers |= {"Cookie": self.cookies} if self.cookies else {}
            connection.request(method, f"{path}?token={self.token}" if token else path, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            if cookies := answer.headers.get_all("Set-Cookie"):
                self.cookies = "; ".join(one.split(";")[0] for one in cookies)
            return answer, body.decode(errors="replace")

    def kernels(self):
        return [
            child
            for child in psutil.Process(self.server.pid).children(recursive=True)
            if any("ipykernel_launcher" in part for part in child.cmdline())
        ]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    workspace = tmp_path_factory.mktemp("app") / "workspace"
    run = stub.written(Workspace(workspace), "mine")
    (run.folder / "model.keras").write_bytes(b"a network")
    (workspace / "secret.txt").write_text("not for download")
    with harness.app(workspace) as (address, process):
        yield Served(address, process, workspace)


@pytest.fixture
def page(served):
    """The page as the server sends it to a browser that has the token."""
    served.cookies = ""
    answer, body = served.get("/", token=True)
    assert answer.status == 200
    return answer, body


def test_without_the_token_nobody_gets_in(served):
    served.cookies = ""
    before = len(served.kernels())
    for path in ("/", "/api/kernels/00000000-0000-0000-0000-000000000000", "/files/runs/x/model.keras"):
        answer, body = served.get(path)
        assert answer.status in (302, 403)
        assert "widget" not in body
    answer, _ = served.get("/?token=wrong")
    assert answer.status in (302, 403)
    assert len(served.kernels()) == before


def test_no_other_page_can_send_the_cookie_along(served):
    served.cookies = ""
    answer, _ = served.get("/", token=True)
    cookies = answer.headers.get_all("Set-Cookie")
    assert any("_xsrf=" in one for one in cookies)  # without it a closed page could not end its kernel
    for one in cookies:
        assert "samesite=strict" in one.lower()
    assert any("httponly" in one.lower() for one in cookies if "username" in one)


def test_another_name_for_this_machine_is_refused(served):
    """DNS rebinding: a page of elsewhere whose name points here."""
    served.cookies = ""
    answer, _ = served.get("/", token=True, Host="elsewhere.example")
    assert answer.status == 403


def test_only_this_machine_can_reach_it(served):
    listening = [one for one in psutil.Process(served.server.pid).net_connections() if one.status == "LISTEN"]
    assert {one.laddr.ip for one in listening} == {"127.0.0.1"}


def test_the_page_asks_no_other_host_and_holds_no_script(page):
    answer, body = page
    policy = answer.getheader("Content-Security-Policy")
    assert "script-src 'self';" in policy
    assert "default-src 'self'" in policy
    assert "https:" not in policy
    assert "*" not in policy.replace("ws://127.0.0.1:*", "").replace("ws://localhost:*", "")
    assert re.findall(r"https?://", body) == []
    for script in re.findall(r"<script([^>]*)>", body):
        assert "src=" in script or "json" in script
    assert re.findall(r"<[^>]*\s(on\w+)=", body) == []
    assert "digits-page" in body


def test_scripts_and_styles_of_the_page_are_there(served, page):
    _, body = page
    wanted = re.findall(r'(?:src|href)="(/[^"]+)"', body)
    assert len(wanted) >= 4
    for path in wanted:
        answer, text = served.get(path)
        assert answer.status == 200, path
        if "page.js" in path or "theme.css" in path:
            assert re.findall(r"https?://", text) == []


def test_a_runs_files_can_be_downloaded_with_the_token_and_nothing_else(served, page):
    (run,) = (path.name for path in (served.workspace / "runs").iterdir())
    answer, body = served.get(f"/files/runs/{run}/model.keras")
    assert (answer.status, body) == (200, "a network")
    assert answer.getheader("Content-Disposition") == "attachment"
    assert json.loads(served.get(f"/files/runs/{run}/run.json")[1])["name"] == "mine"
    for path in (
        "secret.txt",
        "runs/../secret.txt",
        "runs/%2e%2e/secret.txt",
        f"runs/{run}/../../secret.txt",
        f"runs/{run}/%2e%2e/%2e%2e/secret.txt",
        f"runs/{run}/.hidden",
        "/etc/passwd",
        "runs//etc/passwd",
    ):
        answer, body = served.get(f"/files/{path}")
        assert answer.status >= 300, path
        assert "not for download" not in body
        assert "root:" not in body


class Channels:
    """A page's connection to its kernel, as the browser has it."""

    def __init__(self, served, body):
        self.kernel = json.loads(re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', body)[1])["kernelId"]
        address = f"ws://127.0.0.1:{served.address.port}/api/kernels/{self.kernel}/channels"
        self.request = tornado.httpclient.HTTPRequest(address, headers={"Cookie": served.cookies})

    async def open(self):
        self.socket = await websocket_connect(self.request, max_message_size=1 << 30)

    async def send(self, kind, content, **metadata):
        header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "a test", "username": "", "version": "5.3"}
        message = {"header": header, "parent_header": {}, "metadata": metadata, "content": content, "channel": "shell"}
        await self.socket.write_message(json.dumps(message))
        return header["msg_id"]

    async def until(self, kind, of=None):
        """Return the first message of a kind that answers `of`."""
        while True:
            text = await self.socket.read_message()
            assert text is not None, "the server closed the connection"
            message = json.loads(text) if isinstance(text, str) else _of_bytes(text)
            assert message["msg_type"] != "stream", message["content"]
            if message["msg_type"] == kind and of in (None, message["parent_header"].get("msg_id")):
                return message


def _of_bytes(data):
    """Jupyter's binary messages: number of parts, their offsets, the parts; the first is the message."""
    count = int.from_bytes(data[:4], "big")
    offsets = [int.from_bytes(data[4 * at : 4 * at + 4], "big") for at in range(1, count + 1)]
    return json.loads(data[offsets[0] : offsets[1] if count > 1 else None])


def test_uploads_fit_through(served, page):
    """Tornado's own limit is 10 MiB for a message."""
    channels = Channels(served, page[1])

    async def ask():
        await channels.open()
        asked = await channels.send("kernel_info_request", {}, upload="x" * (24 << 20))
        return await channels.until("kernel_info_reply", asked)

    assert asyncio.run(ask())["content"]["status"] == "ok"


def test_pictures_fit_through(tmp_path):
    """Jupyter drops what a kernel sends beyond 1 MB/s, unless it is told not to, by a setting that must be there."""
    settings = server.settings(tmp_path, 8800, 0, False)
    assert settings.ZMQChannelsWebsocketConnection.limit_rate is False
    assert ZMQChannelsWebsocketConnection.class_traits(config=True)["limit_rate"].default_value is True


def test_the_browser_cannot_have_code_of_its_own_run(served, page):
    channels = Channels(served, page[1])

    async def ask():
        await channels.open()
        await channels.send("execute_request", {"code": "open('taken', 'w')", "silent": False})
        asked = await channels.send("kernel_info_request", {})
        while True:
            message = json.loads(await channels.socket.read_message())
            assert message["msg_type"] not in ("execute_reply", "execute_input")
            if message["parent_header"].get("msg_id") == asked and message["msg_type"] == "kernel_info_reply":
                return

    asyncio.run(ask())


def test_a_kernel_that_no_browser_comes_back_to_ends(monkeypatch):
    """The real manager of kernels counts the browsers."""
    kernels = AsyncMappingKernelManager()
    served = server.Server.__new__(server.Server)
    clock = [0.0]
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: clock[0]))  # asyncio keeps its own
    monkeypatch.setattr(server.Server, "kernel_manager", kernels, raising=False)
    served.kernels_seen = {}

    async def look(at):
        clock[0] = at
        await served._end_kernels_left_alone()
        return set(kernels.list_kernel_ids())

    async def test():
        opened, left, killed = [await kernels.start_kernel() for _ in range(3)]
        try:
            for kernel in (opened, killed):
                kernels.notify_connect(kernel)
            await kernels.get_kernel(killed).signal_kernel(signal.SIGKILL)
            await asyncio.to_thread(kernels.get_kernel(killed).provisioner.process.wait)
            assert await look(0) == {opened, left, killed}
            assert await look(server.GONE) == {opened, left, killed}
            states = [kernels.kernel_model(kernel)["execution_state"] for kernel in (opened, killed)]
            assert [state == "dead" for state in states] == [False, True]
            for kernel in (opened, killed):
                kernels.notify_disconnect(kernel)  # its page was closed
            assert await look(server.GONE + 1) == {opened, left, killed}
            assert await look(2 * server.GONE + 0.5) == {left}
            assert await look(server.OPENING) == {left}  # it works before its browser can connect
            assert await look(server.OPENING + 1) == set()
        finally:
            await kernels.shutdown_all(now=True)

    asyncio.run(test())


def test_a_page_closed_while_a_kernel_ends_is_no_fault(monkeypatch):
    kernels = AsyncMappingKernelManager()
    served = server.Server.__new__(server.Server)
    monkeypatch.setattr(server.Server, "kernel_manager", kernels, raising=False)

    async def test():
        left, closed, opened = [await kernels.start_kernel() for _ in range(3)]
        try:
            kernels.notify_connect(opened)
            served.kernels_seen = {left: float("-inf")}
            await asyncio.gather(served._end_kernels_left_alone(), kernels.shutdown_kernel(closed, now=True))
            assert kernels.list_kernel_ids() == [opened]
            assert opened in served.kernels_seen
        finally:
            await kernels.shutdown_all(now=True)

    asyncio.run(test())


def test_a_port_that_is_taken_is_said(tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert app.main([f"--port={port}", f"--workspace={tmp_path}"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: Port {port} cannot be used (Address already in use). Name another one")


def test_a_workspace_that_cannot_be_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert app.main([f"--workspace={tmp_path / 'file' / 'inside'}"]) == 1
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_a_port_that_is_none_is_said(port, capsys):
    with pytest.raises(SystemExit, match="2"):
        app.main([f"--port={port}"])
    error = capsys.readouterr().err
    assert "a port is a number from 1 to 65535" in error or "expected one argument" in error


def test_the_end_of_the_server_ends_its_kernels_and_leaves_no_files(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    with harness.app(tmp_path / "workspace", TMPDIR=str(folder)) as (address, process):
        served = Served(address, process, tmp_path)
        assert served.get("/", token=True)[0].status == 200
        (kernel,) = served.kernels()
        assert os.listdir(folder)
    until(lambda: not kernel.is_running() or kernel.status() == psutil.STATUS_ZOMBIE, "the end of the kernel")
    assert process.returncode == 0
    assert os.listdir(folder) == []


def test_a_page_that_cannot_be_opened_says_why(tmp_path):
    workspace = tmp_path / "workspace"
    with harness.app(workspace) as (address, process):
        shutil.rmtree(workspace)
        workspace.write_text("a file <b> in its place")
        _, body = Served(address, process, workspace).get("/", token=True)
    said = re.search(r'<p role="alert" class="digits-error">(.*?)</p>', body)[1]
    assert said.startswith("The page could not be opened: DigitsError: Cannot use ")
    assert "Traceback" not in body


def test_a_second_app_has_a_token_of_its_own(served, tmp_path):
    with harness.app(tmp_path) as (address, _):
        assert urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["token"] != [served.token]
