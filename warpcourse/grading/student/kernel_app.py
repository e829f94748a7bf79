"""IPython's kernel inside the sandbox, on sockets that the judge hands it.

The judge binds the five sockets in a folder outside the sandbox and passes them on as file descriptors. So there is no
shared folder that a student could fill or plant symlinks in, and no other kernel's socket in reach.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import zmq
from ipykernel.control import ControlThread
from ipykernel.heartbeat import Heartbeat
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.shellchannel import ShellChannelThread
from traitlets import Type

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")


class _Heartbeat(Heartbeat):
    def __init__(self, context: zmq.Context, address: tuple, descriptor: int) -> None:
        super().__init__(context, address)
        self._descriptor = descriptor

    def _try_bind_socket(self) -> None:
        self.socket.setsockopt(zmq.USE_FD, self._descriptor)
        super()._try_bind_socket()


class _Kernel(IPythonKernel):
    """A kernel that answers every request to execute, whenever an interrupt strikes.

    IPython's lets SIGINT in while it handles a message, its own work included: one that strikes there costs the reply,
    and between two messages the kernel. Here SIGINT is ignored but for the execution itself.
    """

    def pre_handler_hook(self) -> None:
        pass

    def post_handler_hook(self) -> None:
        pass

    async def do_execute(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            reply = await super().do_execute(*arguments, **options)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return reply
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            error = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": ["KeyboardInterrupt"]}
            return {"status": "error", **error, "execution_count": 0, "user_expressions": {}, "payload": []}


class SandboxedKernelApp(IPKernelApp):
    """IPython's kernel without a connection file, a debugger or a history on disk."""

    kernel_class: type = Type(_Kernel, klass="ipykernel.kernelbase.Kernel")  # type: ignore[assignment]  # a trait

    def __init__(self, connection: dict, descriptors: list[int], **options) -> None:
        super().__init__(**options)
        # The sockets' numbers, 1 to 5, serve as ports; the descriptors behind them are bound already.
        self._descriptors = dict(zip(range(1, 6), descriptors, strict=True))
        self.transport, self.ip = "ipc", "kernel"
        for port, channel in enumerate(CHANNELS, start=1):
            setattr(self, f"{channel}_port", port)
        self.session.key = connection["key"].encode()
        self.session.signature_scheme = connection["signature_scheme"]

    def init_connection_file(self) -> None:
        pass

    def write_connection_file(self, **_) -> None:
        pass

    def cleanup_connection_file(self) -> None:
        pass

    def _try_bind_socket(self, s: zmq.Socket, port: int) -> int:
        s.setsockopt(zmq.USE_FD, self._descriptors[port])
        return super()._try_bind_socket(s, port)

    def init_control(self, context: zmq.Context) -> None:
        """Set up as IPKernelApp does, but leave the debugger unconnected: the shell socket has no path here."""
        self.control_socket = context.socket(zmq.ROUTER)
        self.control_socket.linger = 1000
        self.control_port = self._bind_socket(self.control_socket, self.control_port)
        self.control_socket.router_handover = 1
        self.debugpy_socket = context.socket(zmq.STREAM)
        self.debug_shell_socket = context.socket(zmq.DEALER)
        self.debugpy_socket.linger = self.debug_shell_socket.linger = 0
        self.control_thread = ControlThread(daemon=True)
        self.shell_channel_thread = ShellChannelThread(context, daemon=True)

    def init_heartbeat(self) -> None:
        address = (self.transport, self.ip, self.hb_port)
        self.heartbeat = _Heartbeat(zmq.Context(), address, self._descriptors[self.hb_port])
        self.heartbeat.start()


def run(header: dict, channels: list[int], ready: Callable[[], None]) -> None:
    """Run a kernel until told to stop. `header["connection"]`: the session's key and signature scheme."""
    np.random.seed()  # noqa: NPY002 - otherwise every fork draws the same numbers from the zygote's generator
    app = SandboxedKernelApp(header["connection"], channels)
    app.initialize(["--log-level=CRITICAL", "--HistoryManager.enabled=False", f"--ipython-dir={os.environ['HOME']}"])
    _integrate(app.shell)
    ready()
    app.start()


def _integrate(shell) -> None:
    """Do what some modules do when a notebook first imports them: the zygote imported them, without a notebook."""
    from warplab.dropin import magic

    magic.register(shell)
    if "matplotlib_inline.backend_inline" in sys.modules:
        sys.modules["matplotlib_inline.backend_inline"]._enable_matplotlib_integration()
