"""`python -m warplab digits`: the page of lab 12, served by Voilà to this machine alone.

A page that a browser opens is a kernel of its own, in which one cell runs: `digits.page.page.Page()`. The server adds
to Voilà what this page needs: a token, limits that uploads and pictures fit through, a policy that lets the browser ask
no other host, the workspace's files for download, and an end for kernels whose page is gone. Jobs do not belong to it.
"""

from __future__ import annotations

import argparse
import html
import logging
import os
import secrets
import socket
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import Any

import nbformat
import tornado.ioloop
import tornado.web
from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import AuthenticatedFileHandler
from traitlets.config import Config
from voila.app import Voila

from digits.files import DigitsError
from digits.workspace import Workspace
from warplab.paths import COURSE

HOST = "127.0.0.1"
PORT = 8812
TEMPLATES = Path(__file__).parent / "page" / "template"
CELL = "from digits.page.page import Page\nPage()"
# What a browser may download of the workspace: what a run or a plan is made of, and no images of others' datasets.
FILES = r"((?:runs|plans)/[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9][A-Za-z0-9_.-]*)"
UPLOAD = 1 << 30  # bytes of one message from the browser: all files of one upload
GONE = 60.0  # seconds without a browser after which a page's kernel ends
# The browser asks this server for everything, and runs no script that stands in the page's own HTML: a name that
# escaped the escaping would still be no script. Widgets set styles of elements, hence unsafe-inline for styles alone.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        f"connect-src 'self' ws://{HOST}:* ws://localhost:*",
        "frame-src 'none'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


class Server(Voila):
    """Voilà with what the page needs. All but Voilà's own scripts and styles asks for the token."""

    workspace: Workspace
    kernels_seen: dict[str, float]

    def init_handlers(self) -> list:
        self.kernels_seen = {}
        tornado.ioloop.PeriodicCallback(self._end_kernels_left_alone, 1000 * GONE / 6).start()
        files = (rf"{self.server_url}files/{FILES}", _Download, {"path": str(self.workspace.root)})
        return [files, *super().init_handlers()]

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def launch_browser(self) -> None:
        """Open the browser by a file that only this user can read: arguments of processes are seen by everybody."""
        with tempfile.NamedTemporaryFile("w", suffix=".html", dir=self.root_dir, delete=False) as file:
            address = html.escape(self.address)
            file.write(f'<meta http-equiv="refresh" content="0;url={address}"><a href="{address}">DIGITS</a>')
        try:
            webbrowser.open(f"file://{file.name}")
        except webbrowser.Error as error:
            print(f"No browser was found ({error}). Open the address above in one.", flush=True)

    def listen(self) -> None:
        # Voilà's own listen() goes on in the event loop; what is to be said is said from inside it.
        tornado.ioloop.IOLoop.current().add_callback(self._say)
        super().listen()

    def _say(self) -> None:
        print(f"DIGITS is at {self.address}\nEnd it with Ctrl+C. Training goes on without it.", flush=True)

    async def _end_kernels_left_alone(self) -> None:
        """End the kernels that no browser has been connected to for a while: a closed page's, a crashed browser's."""
        now = time.monotonic()
        for kernel in self.kernel_manager.list_kernel_ids():
            if self.kernel_manager.notify_connections(kernel):
                self.kernels_seen[kernel] = now
            elif now - self.kernels_seen.setdefault(kernel, now) > GONE:
                del self.kernels_seen[kernel]
                await ensure_async(self.kernel_manager.shutdown_kernel(kernel, now=True))


class _Download(AuthenticatedFileHandler):
    """A file of a run or a plan, as an attachment: never shown as a page of this server."""

    @tornado.web.authenticated
    async def get(self, path: str, include_body: bool = True) -> None:
        self.set_header("Content-Disposition", "attachment")
        await tornado.web.StaticFileHandler.get(self, path, include_body)

    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.set_header("Cache-Control", "no-store")


def main(argv: list[str] | None = None) -> int:
    """Serve the page until it is ended. Returns 1 where workspace or port cannot be had."""
    arguments = _arguments(argv)
    try:
        workspace = Workspace(arguments.workspace)
        if arguments.port:
            _free(arguments.port)
    except DigitsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="digits-") as folder:
        serve(workspace, Path(folder), arguments.port, arguments.browser)
    return 0


def serve(workspace: Workspace, folder: Path, port: int | None = None, browser: bool = True) -> None:
    """Serve the page until the process is asked to end.

    Args:
        workspace: Whose datasets, runs and plans the page shows.
        folder: An empty folder for what the server writes.
        port: The port; `PORT` or, where that is taken, one near it if None.
        browser: Whether a browser is opened.
    """
    notebook = folder / "digits.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)]), notebook)
    _set_environment(workspace)
    settings = Config()
    settings.Voila = Config(
        {
            "notebook_path": str(notebook),
            "ip": HOST,
            "port": port or PORT,
            "port_retries": 0 if port else 50,
            "open_browser": browser,
            "token": secrets.token_urlsafe(24),
            "log_level": logging.WARNING,
            "connection_dir_root": str(folder),
            "tornado_settings": {
                "headers": {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"},
                "websocket_max_message_size": UPLOAD,
                # A request under another name than this machine's own is refused: DNS rebinding.
                "allow_remote_access": False,
                "local_hostnames": ["localhost"],
            },
        }
    )
    settings.VoilaConfiguration = Config(
        {
            "template": "digits",
            "allow_template_override": "NO",
            "allow_theme_override": "NO",
            "file_allowlist": [],
            "extension_allowlist": ["@jupyter-widgets/jupyterlab-manager", "@voila-dashboards/widgets-manager8"],
            # Voilà would write a script into a page that starts slowly, which the policy forbids.
            "http_keep_alive_timeout": 3600,
        }
    )
    # A page with pictures sends more than Jupyter's 1 MB/s; what is over the limit would silently be dropped.
    settings.ZMQChannelsWebsocketConnection.limit_rate = False
    # A new kernel under the old name would know none of the page's widgets. The page says that its kernel is gone.
    settings.KernelRestarter.restart_limit = 0
    settings.KernelManager.autorestart = False
    server = Server.instance(config=settings)
    server.workspace = workspace
    server.initialize([])
    server.start()


def _set_environment(workspace: Workspace) -> None:
    """Let the kernels, which inherit it, find course and workspace, and Voilà the template."""
    first = {"PYTHONPATH": str(COURSE), "JUPYTER_PATH": str(TEMPLATES)}
    for name, path in first.items():
        os.environ[name] = os.pathsep.join(filter(None, [path, os.environ.get(name)]))
    os.environ["WARPLAB_DIGITS"] = str(workspace.root)


def _free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise DigitsError(
                f"Port {port} cannot be used ({error.strerror}). Name another one, or none: --port {port + 1}"
            ) from error


def _arguments(argv: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        "python -m warplab digits",
        description="Open a page in which networks are trained, looked into and deployed, for this machine alone.",
    )
    parser.add_argument("--port", type=_port, help=f"port of the page (default: {PORT}, or a free one near it)")
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="only say the address")
    parser.add_argument("--workspace", help="folder of datasets, runs and plans (default: digits/ in your own folder)")
    return parser.parse_args(argv)


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
