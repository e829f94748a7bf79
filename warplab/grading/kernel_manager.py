"""A kernel in the sandbox for nbclient, over IPC sockets in a folder that only the grader can reach.

    zygotes = Zygotes(find())
    with SandboxedKernelManager(zygotes, files={"data.csv": b"..."}, limits=Limits()) as manager:
        NotebookClient(notebook, km=manager).execute()
    manager.ended                              # why the kernel ended: sandbox.Ended

The judge makes and binds the sockets and hands their descriptors to the kernel, so the folder need not be shared.
"""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerBase

from warplab.grading.limits import Limits
from warplab.grading.sandbox import Ended, Sandbox, Zygote, find

# In the order in which kernel_app.CHANNELS binds them.
_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
_PATH_BYTES = 90  # sun_path has 108, with "-1" and the name of the folder
_WAITING_MESSAGES = 64  # received but not yet read, of one socket; more wait in the kernel's process


class Zygotes:
    """One zygote at a time, replaced when it has served `submissions` or has died. Not for several threads."""

    def __init__(self, sandbox: Sandbox | None = None, submissions: int = 200) -> None:
        self.sandbox = sandbox or find()
        self._most = submissions
        self._zygote: Zygote | None = None

    def take(self) -> Zygote:
        """A zygote that can take a submission. The one that runs in it, if any, is ended."""
        if self._zygote is not None and (not self._zygote.fresh or self._zygote.used >= self._most):
            self.close()
        if self._zygote is None:
            self._zygote = Zygote(self.sandbox)
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
    """What jupyter_client asks of a kernel's process, answered by the zygote."""

    manager: SandboxedKernelManager
    zygote: Zygote | None = None
    ended: Ended | None = None

    @property
    def has_process(self) -> bool:
        return self.zygote is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        return {"cmd": []}  # the judge's environment and folder are not the kernel's

    async def launch_kernel(self, cmd: list[str], **_: Any) -> dict:
        self.ended = None
        self.zygote = self.manager.zygotes.take()
        self.connection_info = self.manager.bind()
        header = {key: self.connection_info[key] for key in ("signature_scheme",)}
        header["key"] = self.connection_info["key"].decode()
        listening = self.manager.listening
        try:
            self.zygote.start(
                self.manager.files,
                self.manager.limits,
                {"connection": header},
                [listener.fileno() for listener in listening],
            )
        except BaseException:
            self.zygote = None
            raise
        finally:
            for listener in listening:
                listener.close()
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
        """Any signal but those that end a process is delivered as an interrupt."""
        if self.zygote is not None and self.ended is None:
            self.zygote.interrupt()

    async def kill(self, restart: bool = False) -> None:
        if self.zygote is not None and self.ended is None:
            self.ended = self.zygote.kill()

    async def terminate(self, restart: bool = False) -> None:
        await self.kill()

    async def cleanup(self, restart: bool = False) -> None:
        await self.kill()


class SandboxedKernelManager(AsyncKernelManager):
    """One submission's kernel. `files`: the student's, by relative path, copied into its working folder.

    A shutdown kills at once: nothing that a student's code does at its end can matter.
    """

    def __init__(
        self, zygotes: Zygotes, files: dict[str, bytes] | None = None, limits: Limits | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.zygotes, self.files, self.limits = zygotes, dict(files or {}), limits or Limits()
        self.listening: list[socket.socket] = []
        self._folder: tempfile.TemporaryDirectory | None = None
        self._kernel_spec = KernelSpec(argv=["sandboxed"], display_name="Python 3", language="python")
        self.provisioner = _Provisioner(kernel_spec=self._kernel_spec, parent=self)
        self.provisioner.manager = self
        # Defaults of the sockets that this context makes: what the kernel sends is a student's.
        self.context.setsockopt(zmq.MAXMSGSIZE, self.limits.message_bytes)
        self.context.setsockopt(zmq.RCVHWM, _WAITING_MESSAGES)

    @property
    def ended(self) -> Ended | None:
        """None while the kernel runs and before it was started; afterwards why it ended."""
        if self.provisioner.ended is None and self.provisioner.zygote is not None:
            self.provisioner.ended = self.provisioner.zygote.status()
        return self.provisioner.ended

    def bind(self) -> dict:
        """Make the sockets in a new private folder. Returns jupyter_client's connection information."""
        self._remove_folder()
        parent = next((p for p in (tempfile.gettempdir(), "/tmp") if len(os.fsencode(p)) < _PATH_BYTES - 30), None)
        self._folder = tempfile.TemporaryDirectory(prefix="warplab-", dir=parent, ignore_cleanup_errors=True)
        prefix = str(Path(self._folder.name) / "k")
        for number in range(1, len(_CHANNELS) + 1):
            listener = socket.socket(socket.AF_UNIX)
            self.listening.append(listener)
            listener.bind(f"{prefix}-{number}")
            listener.listen(16)
            listener.setblocking(False)
        self.connection_file = f"{prefix}.json"
        return {
            **{f"{channel}_port": number for number, channel in enumerate(_CHANNELS, start=1)},
            "transport": "ipc",
            "ip": prefix,
            "key": self.session.key,
            "signature_scheme": self.session.signature_scheme,
        }

    async def _async_request_shutdown(self, restart: bool = False) -> None:
        await self.provisioner.kill()

    request_shutdown = _async_request_shutdown

    def close(self) -> None:
        """End the kernel and close the sockets. May be called at any time, and again."""
        if self.provisioner.zygote is not None and self.provisioner.ended is None:
            self.provisioner.ended = self.provisioner.zygote.kill()
        self.provisioner.zygote = None
        self._close_control_socket()
        self.context.destroy(linger=0)
        self._remove_folder()

    def _remove_folder(self) -> None:
        for listener in self.listening:
            listener.close()
        self.listening = []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> SandboxedKernelManager:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
