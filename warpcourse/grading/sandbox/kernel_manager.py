"""A sandboxed kernel for nbclient, over IPC sockets in a folder that only the grader can reach.

    zygotes = Zygotes(find())
    with SandboxedKernelManager(zygotes, files={"data.csv": b"..."}, limits=SubmissionLimits()) as manager:
        NotebookClient(notebook, km=manager).execute()
    manager.ended                              # why the kernel ended: zygote_client.Ended

The judge binds the sockets and hands their descriptors to the kernel, so the two share no folder. The judge's own
clients connect to a second set of sockets; `relay` joins the two sets and counts what comes from the kernel.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import tempfile
import time
from pathlib import Path
from queue import Empty
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerBase

from warpcourse.grading.sandbox.isolation import Sandbox, find
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.grading.sandbox.relay import Relay
from warpcourse.grading.sandbox.zygote_client import Ended, ZygoteClient

# In the order in which kernel_app.CHANNELS binds them.
_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
_FOLDER_BYTES = 70  # a socket's path has at most 107 bytes; the rest is for names inside the folder
_WAITING_MESSAGES = 64  # received but not yet read, per socket; more wait in the kernel's process


class Zygotes:
    """A supply of zygotes, one at a time: replaced after `submissions` or when it has died. Not thread-safe."""

    def __init__(self, sandbox: Sandbox | None = None, submissions: int = 200, warmth: str = "course") -> None:
        self.sandbox = sandbox or find()
        self._most, self._warmth = submissions, warmth
        self._zygote: ZygoteClient | None = None

    def take(self, limits: SubmissionLimits, warmth: str = "") -> ZygoteClient:
        """Return a zygote that can take a submission. A submission that still runs in it is ended.

        `warmth`: what the submission needs, if that is not what most need. It replaces a zygote of another kind.
        """
        wanted = warmth or self._warmth
        if self._zygote is not None and (
            not self._zygote.fresh or self._zygote.used >= self._most or self._zygote.warmth != wanted
        ):
            self.close()
        if self._zygote is None:
            self._zygote = ZygoteClient(self.sandbox, wanted, disk_bytes=limits.disk_bytes)
        elif self._zygote.used:
            self._zygote.kill()
        return self._zygote

    def close(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def __enter__(self) -> Zygotes:
        return self

    def __exit__(self, *_) -> None:
        self.close()


class _Provisioner(KernelProvisionerBase):
    """The zygote behind the interface through which jupyter_client handles a kernel's process."""

    manager: SandboxedKernelManager
    zygote: ZygoteClient | None = None
    ended: Ended | None = None

    @property
    def has_process(self) -> bool:
        return self.zygote is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        return {"cmd": []}  # the judge's environment and folder are not the kernel's

    async def launch_kernel(self, cmd: list[str], **_: Any) -> KernelConnectionInfo:
        self.ended = None
        self.zygote = self.manager.zygotes.take(self.manager.limits, self.manager.warmth)
        try:
            self.connection_info = self.manager.open_channels(self.zygote)
        except BaseException:
            self.zygote = None
            raise
        return self.connection_info

    async def poll(self) -> int | None:
        if self.zygote is None:
            return 0
        if self.ended is None:
            self.ended = self.zygote.status()
        if self.ended is None:
            return None
        return self.ended.code if self.ended.code is not None else -9

    async def wait(self) -> int | None:
        await self.kill()
        code = await self.poll()
        self.zygote = None
        return code

    async def send_signal(self, signum: int) -> None:
        """Interrupt the kernel, whatever the signal."""
        if self.zygote is not None and self.ended is None:
            self.zygote.interrupt()

    async def kill(self, restart: bool = False) -> None:
        if self.zygote is not None and self.ended is None:
            self.ended = self.zygote.kill()

    async def terminate(self, restart: bool = False) -> None:
        await self.kill()

    async def cleanup(self, restart: bool = False) -> None:
        await self.kill()


def _listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    listener.setblocking(False)
    return listener


class _Client(AsyncKernelClient):
    async def _async_wait_for_ready(self, timeout: float | None = None) -> None:
        """Wait as jupyter_client does, but without its fixed 0.2 s: the kernel's "idle" is its last message."""
        deadline = time.monotonic() + (timeout if timeout is not None else math.inf)
        while True:
            asked = self.kernel_info()
            try:
                while not _says_idle(await self.get_iopub_msg(timeout=1), asked):
                    pass
                while (reply := await self.get_shell_msg(timeout=1))["parent_header"].get("msg_id") != asked:
                    pass
            except Empty:  # it answered before the connection to its output was there
                if not await self._async_is_alive():
                    raise RuntimeError("Kernel died before replying to kernel_info") from None
                if time.monotonic() > deadline:
                    raise RuntimeError(f"Kernel didn't respond in {timeout} seconds") from None
            else:
                self._handle_kernel_info_reply(reply)
                return

    wait_for_ready = _async_wait_for_ready


def _says_idle(message: dict, asked: str) -> bool:
    about = message["parent_header"].get("msg_id") == asked
    return about and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"


class SandboxedKernelManager(AsyncKernelManager):
    """One submission's kernel. `files`: the student's, by relative path, copied into its working folder.

    `warmth`: as for `Zygotes.take`.
    A shutdown kills at once, since nothing that a student's code does at its end matters.
    """

    def __init__(
        self,
        zygotes: Zygotes,
        files: dict[str, bytes] | None = None,
        limits: SubmissionLimits | None = None,
        warmth: str = "",
        **options: Any,
    ) -> None:
        super().__init__(client_class=f"{__name__}.{_Client.__name__}", **options)
        self.zygotes, self.files, self.limits = zygotes, dict(files or {}), limits or SubmissionLimits()
        self.warmth = warmth
        self._waited = 0.0
        self._channels = contextlib.ExitStack()  # the relay, its sockets, their folder
        self._clients: list[AsyncKernelClient] = []
        self._kernel_spec = KernelSpec(argv=["sandboxed"], display_name="Python 3", language="python")
        self.provisioner = self._processes = _Provisioner(kernel_spec=self._kernel_spec, parent=self)
        self._processes.manager = self
        # Defaults for all sockets of this context: a student decides what the kernel sends.
        self.context.setsockopt(zmq.MAXMSGSIZE, self.limits.message_bytes)
        self.context.setsockopt(zmq.RCVHWM, _WAITING_MESSAGES)

    @property
    def ended(self) -> Ended | None:
        """Return why the kernel ended; None while it runs and before it was started."""
        if self._processes.ended is None and self._processes.zygote is not None:
            self._processes.ended = self._processes.zygote.status()
        return self._processes.ended

    def waited(self) -> float:
        """Return for how many seconds the kernel has waited for a processor."""
        if self.ended is None and self._processes.zygote is not None:
            self._waited = self._processes.zygote.waited
        return self._waited

    def open_channels(self, zygote: ZygoteClient) -> KernelConnectionInfo:
        """Start the kernel on sockets in a new private folder. Return jupyter_client's connection information."""
        self._channels.close()
        parent = next((p for p in (tempfile.gettempdir(), "/tmp") if len(os.fsencode(p)) < _FOLDER_BYTES), None)
        folder = Path(self._channels.enter_context(tempfile.TemporaryDirectory(prefix="warplab-", dir=parent)))
        inner = [str(folder / f"kernel-{number}") for number in range(1, len(_CHANNELS) + 1)]
        outer = [
            self._channels.enter_context(_listen(str(folder / f"judge-{n}"))) for n in range(1, len(_CHANNELS) + 1)
        ]
        self.connection_file = str(folder / "connection.json")
        information: Any = {  # its TypedDict has no computed keys, and the key as text
            **{f"{channel}_port": number for number, channel in enumerate(_CHANNELS, start=1)},
            "transport": "ipc",
            "ip": str(folder / "judge"),
            "key": self.session.key,
            "signature_scheme": self.session.signature_scheme,
        }
        connection = {"key": self.session.key.decode(), "signature_scheme": self.session.signature_scheme}
        with contextlib.ExitStack() as ours:
            descriptors = [ours.enter_context(_listen(path)).fileno() for path in inner]
            zygote.start(self.files, self.limits, {"connection": connection}, descriptors)
        relay = Relay(outer, inner, self.limits, self._stop_flood)
        relay.start()
        self._channels.callback(relay.stop)
        return information

    def _stop_flood(self, reason: str) -> None:
        self.log.warning("Stopping the kernel: %s", reason)
        if self._processes.zygote is not None:
            self._processes.ended = self._processes.zygote.kill("output")

    async def _async_request_shutdown(self, restart: bool = False) -> None:
        await self._processes.kill()

    request_shutdown = _async_request_shutdown

    def client(self, **options: Any) -> AsyncKernelClient:  # type: ignore[override]  # as AsyncKernelManager's is
        """Return a client, as AsyncKernelManager does; its channels are closed with the manager."""
        self._clients.append(super().client(**options))
        return self._clients[-1]

    def close(self) -> None:
        """End the kernel and close the sockets. Safe at any time, and repeatedly."""
        if self._processes.zygote is not None and self._processes.ended is None:
            self._processes.ended = self._processes.zygote.kill()
        self._processes.zygote = None
        for client in self._clients:
            client.stop_channels()
        self._clients = []
        self._close_control_socket()
        self.context.destroy(linger=0)
        self._channels.close()

    def __enter__(self) -> SandboxedKernelManager:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
