"""Functions of the grader's own that read what students made, called under limits of processor time and memory.

    with Limited("warpcourse.grading.judge.inert", seconds=10, memory_bytes=1 << 30) as limited:
        limited("inert_html", text)         # raises TooCostly if it needs more

Parsers, sanitizers and renderers are linear for what people write, but not for what an attacker does. They run in a
process of their own, which is started when it is first needed and replaced when it has died.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import signal
import sys
import time
from typing import Any, NoReturn

from warpcourse.processes.child import Child, ChildFailed, module
from warpcourse.processes.messages import read, reply, take_over

START_SECONDS = 120.0
_PATIENCE = 20  # wall-clock seconds per second of processor time, on a machine that does many other things


class TooCostly(Exception):
    """A call needed more processor time or memory than allowed, or its process died. The message says which."""


class Limited:
    """Calls of functions of `module`, with JSON in and out. Use as a context manager. Not thread-safe.

    `seconds`: processor time of one call. `memory_bytes`: address space beyond what the process has after its imports.
    An exception of a function is raised as RuntimeError, with its text.
    """

    def __init__(self, module: str, seconds: float, memory_bytes: int) -> None:
        self._module, self.seconds, self.memory_bytes = module, seconds, memory_bytes
        self.used = 0.0  # processor time of the last call, the limit if it failed
        self._child: Child | None = None

    def __call__(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        """Call a function. `seconds`: less processor time than usual. Raises `TooCostly`."""
        seconds = self.seconds if seconds is None else min(seconds, self.seconds)
        if seconds <= 0:
            raise TooCostly("no processor time is left")
        child, self.used = self._started(), seconds
        message = {"function": function, "arguments": arguments, "seconds": seconds}
        try:
            answer = child.exchange(message, _PATIENCE * seconds + START_SECONDS)
        except ChildFailed as error:
            code = child.process.returncode
            self.close()
            if code == -signal.SIGXCPU:
                raise TooCostly(f"it needed more than {max(1, round(seconds))} s of processor time") from None
            raise TooCostly(f"it could not be done within {self.memory_bytes >> 20} MiB of memory ({error})") from None
        except BaseException:
            self.close()
            raise
        self.used = answer.get("used", seconds)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        if "costly" in answer:
            self.close()  # what it could not free stays with it
            raise TooCostly(f"it needed more than {self.memory_bytes >> 20} MiB of memory")
        return answer["result"]

    def _started(self) -> Child:
        if self._child is None:
            child = Child(module(__name__, self._module, str(self.memory_bytes)), {"WARPLAB_BACKEND": "simulator"})
            try:
                child.receive(START_SECONDS)
            except ChildFailed as error:
                child.kill()
                raise RuntimeError(f"a process of the grader's own does not start: {error}") from None
            except BaseException:
                child.kill()
                raise
            self._child = child
        return self._child

    def close(self) -> None:
        """End the process, if there is one. The next call starts another."""
        if self._child is not None:
            child, self._child = self._child, None
            child.kill()

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -- in the process ----------------------------------------------------------------------------------------------


def main(name: str, memory_bytes: str) -> NoReturn:
    """Answer calls until standard input ends."""
    calls, answers = take_over()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    functions = importlib.import_module(name).__dict__
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))  # see limits.SubmissionLimits
    most = mapped + int(memory_bytes)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    reply(answers, {"ready": True})
    while True:
        with contextlib.suppress(MemoryError):
            if (message := read(calls)) is None:
                os._exit(0)
            before = time.process_time()
            answer = _answer(functions, message[0])
            reply(answers, answer | {"used": time.process_time() - before})
            continue
        reply(answers, {"costly": True})


def _answer(functions: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # Whole seconds are what Linux limits. SIGXCPU ends the process, whatever it is busy with.
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + call["seconds"]) + 1, hard))
    try:
        return {"result": functions[call["function"]](*call["arguments"])}
    except MemoryError:
        return {"costly": True}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}


if __name__ == "__main__":
    main(*sys.argv[1:])
