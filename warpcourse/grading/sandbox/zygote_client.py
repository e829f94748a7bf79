"""The judge's side of a zygote: start it in a sandbox, run one submission at a time in it, learn why each ended.

with ZygoteClient(find()) as zygote:
    zygote.start(files, limits, ...)   # usually through kernel_manager.SandboxedKernelManager
    ended = zygote.kill()
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpcourse.grading.sandbox import memory_group
from warpcourse.grading.sandbox.isolation import Sandbox, find
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.grading.sandbox.memory_group import MemoryGroup
from warpcourse.grading.sandbox.users import pooled_user
from warpcourse.grading.sandbox.zygote import receive, send

_START_SECONDS = 120.0
_ANSWER_SECONDS = 120.0  # more than a zygote waits for a submission to start

_TEXTS = {
    "exit": "the kernel ended by itself",
    "killed": "the grader ended the kernel",
    "wall": "the notebook took longer than {wall_seconds:g} seconds in all",
    "cpu": "the notebook used more than {cpu_seconds:g} seconds of processor time in all",
    "memory": "the notebook used more than {memory} MiB of memory",
    "output": "the notebook sent more than {traffic} MiB in all, or {message} MiB at once",
    "lost": "the processes of the notebook were lost",
}
_KILLED = "all processes of the kernel were killed at once, by itself or for want of memory"


class SandboxError(RuntimeError):
    """The sandbox itself failed: the grader's fault, not the student's."""


@dataclass(frozen=True)
class Ended:
    """The end of a submission's processes.

    `reason`: "exit" (by itself), "killed" (by the grader), "wall", "cpu", "memory" or "output" (a limit), or "lost" (a
    failure of the sandbox). `code`: exit status, or minus the signal; None if all processes were killed at once.
    `text`: the reason in words that a student may read. Times are in seconds.
    """

    reason: str
    text: str
    code: int | None = None
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    wall_seconds: float = 0.0

    @property
    def is_limit(self) -> bool:
        return self.reason in ("wall", "cpu", "memory", "output")

    @classmethod
    def of(cls, data: dict, limits: SubmissionLimits) -> Ended:
        mebibytes = {name: getattr(limits, f"{name}_bytes") >> 20 for name in ("memory", "traffic", "message")}
        text = _TEXTS[data["reason"]].format(**limits.as_dict(), **mebibytes)
        code = data["code"]
        if data["reason"] == "exit" and code is None:
            text = _KILLED
        elif data["reason"] == "exit" and code < 0:
            with contextlib.suppress(ValueError):
                text = f"the kernel died of signal {signal.Signals(-code).name}"
        elif data["reason"] == "exit":
            text += f", with exit status {code}"
        return cls(text=text, **data)


class ZygoteClient:
    """The judge's handle of a zygote: a warmed process in the sandbox, which runs one submission at a time.

    Raises SandboxError if it does not start or its sandbox refuses. `warm_seconds`: time its imports took. `used`:
    submissions started. `waited`: seconds for which the submission was known to have waited for a processor at the last
    `status`. `warmth`: as given.
    """

    def __init__(self, sandbox: Sandbox | None = None, warmth: str = "course", disk_bytes: int | None = None) -> None:
        """Start a zygote. `warmth`: what to import in advance, one of `zygote.WARMTHS`; each submission imports the
        rest itself.

        `disk_bytes`: the disk limit, which a sandbox whose `isolation` is "once" must know before it starts.
        """
        self.sandbox = sandbox or find()
        if refusal := self.sandbox.refusal():
            raise SandboxError(refusal)
        self._disk_bytes = disk_bytes or SubmissionLimits().disk_bytes
        self.warmth = warmth
        self.used = 0
        self._limits = SubmissionLimits()
        self.waited = 0.0
        self._broken = False
        self._group: MemoryGroup | None = None
        self._kills = 0  # by Linux, before the submission that runs
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        try:
            self._start_process()
        except BaseException:
            self.close()
            raise

    def _start_process(self) -> None:
        if parents := memory_group.given():
            try:
                self._group = MemoryGroup(parents)
            except OSError as error:
                folders = ":".join(map(str, parents))
                raise SandboxError(
                    f"{memory_group.SWITCH} names {folders}, in which no group with a limit of memory can be made "
                    f"({error}); name a delegated cgroup, or unset {memory_group.SWITCH}"
                ) from error
            self._stack.callback(self._group.close)
        user = self._stack.enter_context(pooled_user())
        scratch = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="warplab-", ignore_cleanup_errors=True))
        )
        scratch.chmod(0o711)  # the pooled user passes through
        self._errors = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel = self._stack.enter_context(ours)
        with theirs:
            command = self.sandbox.command(theirs.fileno(), scratch, user, self._disk_bytes)
            command += ["--warmth", self.warmth]
            self._process = subprocess.Popen(
                command if self._group is None else self._group.command(command),
                pass_fds=[theirs.fileno()],
                env=self.sandbox.environment(),
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                start_new_session=True,
            )
        ready = self._receive(_START_SECONDS)
        if ready.get("threads") != 1:
            raise SandboxError(f"the zygote has {ready.get('threads')} threads, so it cannot fork safely: {ready}")
        self.warm_seconds: float = ready["seconds"]

    def __enter__(self) -> ZygoteClient:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Return the pid of the process that was started: bubblewrap, or the zygote itself."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None and not self._broken

    @property
    def fresh(self) -> bool:
        """Return whether it may take another submission."""
        return self.alive and not (self.used and self.sandbox.isolation == "once")

    def start(
        self,
        files: dict[str, bytes],
        limits: SubmissionLimits,
        header: dict | None = None,
        descriptors: Iterable[int] = (),
        program: str = "kernel",
    ) -> None:
        """Start a submission.

        `files`, by relative path, go to its working folder; `header` and copies of `descriptors` go to the program.
        Raises ValueError for a path that leads elsewhere or for files that fill the submission's disk, SandboxError if
        it does not start.
        """
        if sum(map(len, files.values())) > limits.disk_bytes // 2:
            raise ValueError(f"the submission's files take more than half of its {limits.disk_bytes >> 20} MiB of disk")
        for name in files:
            if not name or "\0" in name or os.path.isabs(name) or ".." in Path(name).parts:
                raise ValueError(f"a submission's file must have a relative path without '..', got {name!r}")
        self._limits, self.waited = limits, 0.0
        self.used += 1
        if self._group is not None:
            self._group.allow(limits.memory_bytes)
            self._kills = self._group.kills()
        head = json.dumps({**(header or {}), "files": [[name, len(data)] for name, data in files.items()]}).encode()
        with tempfile.TemporaryFile() as payload:
            payload.write(len(head).to_bytes(8, "big") + head)
            for data in files.values():
                payload.write(data)
            payload.flush()
            message = {"op": "start", "program": program, "limits": limits.as_dict()}
            answer = self._ask(message, [payload.fileno(), *descriptors])
        if "error" in answer:
            raise SandboxError(f"a submission could not be started: {answer['error']}")

    def status(self) -> Ended | None:
        """Return why the submission ended, None while it runs."""
        return self._ended({"op": "status"})

    def interrupt(self) -> None:
        """Interrupt the submission, like Ctrl-C in a notebook. A student's code may ignore it."""
        self._ask({"op": "interrupt"})

    def kill(self, reason: str = "killed") -> Ended:
        """End the submission if it still runs, and return why it ended. None of its processes is left then."""
        ended = self._ended({"op": "kill", "reason": reason})
        assert ended is not None
        return ended

    def close(self) -> None:
        """End the zygote and all that it started."""
        if hasattr(self, "_channel"):
            self._channel.close()
        if hasattr(self, "_process"):
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._stack.close()

    def _ended(self, message: dict) -> Ended | None:
        try:
            answer = self._ask(message)
        except SandboxError:
            if self.sandbox.isolation != "nested" and self.used:
                return Ended("exit", _KILLED)  # the submission could reach the zygote, and killed it
            return Ended("lost", _TEXTS["lost"])
        if "ended" not in answer:
            self.waited = answer.get("waited", 0.0)
            return None
        ended = answer["ended"]
        if ended["reason"] == "exit" and self._group is not None and self._group.kills() > self._kills:
            ended["reason"] = "memory"
        return Ended.of(ended, self._limits)

    def _ask(self, message: dict, descriptors: Sequence[int] = ()) -> dict:
        with self._lock:
            self._broken, broken = True, self._broken  # until it has answered
            if broken:
                raise SandboxError("the zygote is gone")
            try:
                send(self._channel, message, descriptors)
            except OSError as error:
                raise SandboxError(f"the zygote is gone ({error})") from error
            answer = self._receive(_ANSWER_SECONDS)
            self._broken = False
            return answer

    def _receive(self, seconds: float) -> dict:
        try:
            if not select.select([self._channel], [], [], seconds)[0]:
                raise SandboxError(f"the zygote did not answer within {seconds:g} s{self._last_words()}")
            return receive(self._channel)[0]
        except (OSError, EOFError, ValueError) as error:
            time.sleep(0.05)  # its last words may be on their way
            raise SandboxError(f"the zygote ended{self._last_words()}") from error

    def _last_words(self) -> str:
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        text = self._errors.read().decode(errors="replace").strip()
        return f": {text}" if text else ""
