"""NVIDIA's Multi-Process Service for the processes of one measurement: started, asked and ended here.

    with mps.daemon() as mps_daemon:
        subprocess.Popen(..., env={**os.environ, **mps_daemon.environment})

The daemon's pipes and logs are in a folder of its own, so that no other process of the machine finds it, and clients
find it by two environment variables. It is told to quit in the end, also after an error. The GPU's compute mode stays
as it is: MPS works in the default mode, too. NVIDIA, "Multi-Process Service": docs.nvidia.com/deploy/mps.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warpcourse.processes.tree import is_running

CONTROL = "nvidia-cuda-mps-control"
PATIENCE = 20  # seconds for a command to be answered


class NoMps(RuntimeError):
    """MPS is not installed here, or its daemon does not start."""


@dataclass(frozen=True)
class Daemon:
    """A running daemon. `environment`: what a process needs in its environment to become a client."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "CUDA_MPS_PIPE_DIRECTORY": str(self.folder / "pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(self.folder / "log"),
        }

    def ask(self, command: str) -> str:
        """Return what the daemon answers to a command such as "get_server_list"."""
        done = subprocess.run(
            [CONTROL],
            input=f"{command}\n",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, **self.environment},
        )
        return done.stdout.strip()

    def clients(self) -> int:
        """Return how many processes are connected to the daemon's servers."""
        servers = [line for line in self.ask("get_server_list").split() if line.isdigit()]
        return sum(len(self.ask(f"get_client_list {server}").split()) for server in servers)

    def logs(self) -> str:
        """Return the last lines of the daemon's and the servers' logs."""
        texts = [path.read_text(errors="replace") for path in sorted((self.folder / "log").glob("*.log"))]
        return "\n".join(line for text in texts for line in text.splitlines()[-20:])


def installed() -> bool:
    """Return whether the daemon's program is on this machine."""
    return shutil.which(CONTROL) is not None


@contextmanager
def daemon() -> Iterator[Daemon]:
    """Start a daemon for this block, and end it. Clients must have ended before. Raises NoMps."""
    if not installed():
        raise NoMps(f"{CONTROL} is not installed here; it comes with NVIDIA's driver for Linux. Use time slices.")
    with tempfile.TemporaryDirectory(prefix="mps-", ignore_cleanup_errors=True) as name:
        mps_daemon = Daemon(Path(name))
        for folder in mps_daemon.environment.values():
            Path(folder).mkdir()
        try:
            _start(mps_daemon)
            yield mps_daemon
        finally:
            _quit(mps_daemon)


def _start(mps_daemon: Daemon) -> None:
    output = mps_daemon.folder / "start.txt"
    with output.open("w") as file:  # not a pipe: the daemon would keep its end open
        done = subprocess.run(
            [CONTROL, "-d"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            timeout=PATIENCE,
            env={**os.environ, **mps_daemon.environment},
        )
    if done.returncode:
        raise NoMps(f"{CONTROL} -d ended with code {done.returncode}: {output.read_text()}{mps_daemon.logs()}")


def _quit(mps_daemon: Daemon) -> None:
    """Tell the daemon to quit and wait until it has."""
    pid_file = mps_daemon.folder / "pipe" / f"{CONTROL}.pid"
    pid = pid_file.read_text().strip("\0 \n") if pid_file.exists() else ""
    try:
        mps_daemon.ask("quit")
    except subprocess.TimeoutExpired:  # a client has not ended
        mps_daemon.ask("quit -t 1")
    end = time.monotonic() + PATIENCE
    while pid.isdigit() and is_running(int(pid)) and time.monotonic() < end:
        time.sleep(0.02)
