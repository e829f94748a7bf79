"""The server of the page: Voilà, to this machine alone, with what this page needs added.

A page that a browser opens is a kernel of its own, in which one cell runs: `digits.page.page.Page()`. Added are a
token, limits that uploads and pictures fit through, a policy that lets the browser ask no other host, the runs' files
for download, and an end for kernels whose page is gone. Jobs do not belong to it.
"""

import html
import json
import logging
import os
import secrets
import sys
import tempfile
import time
import webbrowser
from pathlib import Path

import nbformat
import tornado.ioloop
import tornado.web
from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import AuthenticatedFileHandler
from traitlets.config import Config
from voila.app import Voila
from voila.tornado.handler import TornadoVoilaHandler

from digits.page import api
from digits.workspace import Workspace
from warpcourse.paths import COURSE

HOST = "127.0.0.1"
TEMPLATES = Path(__file__).parent / "template"
KERNEL = "digits"
CELL = "from digits.page.page import Page\nPage()"
# What a browser may download of the workspace: what a run or a plan is made of, and no images of others' datasets.
FILES = r"((?:runs|plans)/[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9][A-Za-z0-9_.-]*)"
UPLOAD = 1 << 30  # bytes of one message from the browser: all files of one upload
GONE, OPENING = 60.0, 600.0  # seconds without a browser after which a page's kernel ends, once one was there or not yet
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
        tornado.ioloop.PeriodicCallback(self._end_kernels_left_alone, 1000).start()
        self.looks = api.Looks()
        tornado.ioloop.PeriodicCallback(self.looks.rest, 1000 * GONE).start()
        calls = api.handlers(self.server_url, self.workspace, self.looks)
        files = (rf"{self.server_url}files/{FILES}", _Download, {"path": str(self.workspace.root)})
        return [files, *calls, *map(_with_cookie, super().init_handlers())]

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
            if kernel not in self.kernel_manager:  # its page was closed while another's kernel ended
                continue
            if not await ensure_async(self.kernel_manager.is_alive(kernel)):
                self.kernel_manager.get_kernel(kernel).execution_state = "dead"  # page.js asks for it
            if self.kernel_manager.kernel_model(kernel)["connections"]:
                self.kernels_seen[kernel] = now
            elif now - self.kernels_seen.setdefault(kernel, now + OPENING - GONE) > GONE:
                del self.kernels_seen[kernel]
                await ensure_async(self.kernel_manager.shutdown_kernel(kernel, now=True))


class _Page(TornadoVoilaHandler):
    """The page, with the cookie without which the browser could not end the page's kernel when it is closed."""

    @tornado.web.authenticated
    async def get(self, path: str | None = None) -> None:
        self.xsrf_token  # noqa: B018 - reading it sets the cookie
        await super().get(path)


def _with_cookie(handler: tuple) -> tuple:
    return tuple(_Page if part is TornadoVoilaHandler else part for part in handler)


class _Download(AuthenticatedFileHandler):
    """A file of a run or a plan, as an attachment: never shown as a page of this server."""

    @tornado.web.authenticated
    async def get(self, path: str, include_body: bool = True) -> None:
        self.set_header("Content-Disposition", "attachment")
        await tornado.web.StaticFileHandler.get(self, path, include_body)

    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.set_header("Cache-Control", "no-store")


def serve(workspace: Workspace, folder: Path, port: int, retries: int, browser: bool) -> None:
    """Serve the page of a workspace until the process is asked to end.

    `folder`: an empty one for what the server writes. `retries`: how many ports near `port` are tried where it is
    taken. `browser`: whether one is opened.
    """
    _set_environment(workspace, folder)
    # Jupyter's time for pongs is longer than Tornado takes, which is nothing that a user can mend.
    logging.getLogger("tornado.general").addFilter(lambda record: "websocket_ping_timeout" not in str(record.msg))
    logging.getLogger("tornado.access").setLevel(logging.ERROR)  # what was refused is told to who asked
    server = Server.instance(config=settings(folder, port, retries, browser))
    server.workspace = workspace
    server.initialize([])
    server.start()


def settings(folder: Path, port: int, retries: int, browser: bool) -> Config:
    """Return Voilà's settings, and write the notebook that it runs, with its kernel, into `folder`."""
    kernel = folder / "kernels" / KERNEL
    kernel.mkdir(parents=True)
    # This Python, not what a user may have registered under the usual name.
    launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", f"--log-level={logging.ERROR}"]
    about = {"argv": launch, "display_name": "DIGITS", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(about))
    notebook = folder / "digits.ipynb"
    cells = [nbformat.v4.new_code_cell(CELL)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": KERNEL} | about}), notebook)
    settings = Config()
    settings.Voila = Config(
        {
            "notebook_path": str(notebook),
            "ip": HOST,
            "port": port,
            "port_retries": retries,
            "open_browser": browser,
            "token": secrets.token_urlsafe(24),
            "log_level": logging.ERROR,
            "connection_dir_root": str(folder),
            "tornado_settings": {
                "headers": {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"},
                "xsrf_cookie_kwargs": {"samesite": "Strict"},
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
            "show_tracebacks": True,  # else a page that cannot be opened would not say why
            "extension_allowlist": ["@jupyter-widgets/jupyterlab-manager", "@voila-dashboards/widgets-manager8"],
            # Voilà would write a script into a page that starts slowly, which the policy forbids.
            "http_keep_alive_timeout": 3600,
        }
    )
    # Another page, at another port of this machine too, cannot have this one opened with the cookie: no kernel for it.
    settings.IdentityProvider.cookie_options = {"samesite": "Strict"}
    # A page with pictures sends more than Jupyter's 1 MB/s; what is over the limit would silently be dropped.
    settings.ZMQChannelsWebsocketConnection.limit_rate = False
    # A new kernel under the old name would know none of the page's widgets. The page says that its kernel is gone.
    settings.KernelManager.autorestart = False
    return settings


def _set_environment(workspace: Workspace, folder: Path) -> None:
    """Let the kernels, which inherit it, find course and workspace, and Voilà its template and kernel."""
    first = {"PYTHONPATH": str(COURSE), "JUPYTER_PATH": os.pathsep.join([str(TEMPLATES), str(folder)])}
    for name, path in first.items():
        os.environ[name] = os.pathsep.join(filter(None, [path, os.environ.get(name)]))
    os.environ["WARPLAB_DIGITS"] = str(workspace.root)
