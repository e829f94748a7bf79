"""A measurement in a process of its own, for what may hang, or end a process's CUDA context.

    call("kernels.memory_access.unified_memory:measure", limit=90)

runs `measure()` of that module in a new Python process and returns its result, in JSON types. `command` gives the
command line alone, for programs such as ncu that start the process themselves.
"""

import importlib
import json
import subprocess
import sys
from typing import Any

from warpcourse.paths import COURSE
from warpcourse.processes.child import module

_MARK = "result of the isolated call: "


def command(function: str, *arguments: Any) -> list[str]:
    """Return the command that calls `function`, "module:name", with `arguments` in JSON types and prints the result."""
    return module("warpcourse.processes.isolated_call", function, *map(json.dumps, arguments))


def call(function: str, *arguments: Any, limit: float = 120) -> Any:
    """Return the result of `function(*arguments)`, called in a new process.

    Raise RuntimeError, with what the process wrote to stderr, when it ends without a result, and
    subprocess.TimeoutExpired after `limit` seconds.
    """
    done = subprocess.run(command(function, *arguments), capture_output=True, text=True, timeout=limit, cwd=COURSE)
    results = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not results:
        raise RuntimeError(f"{function} ended with code {done.returncode} and without a result:\n{done.stderr}")
    return json.loads(results[-1].removeprefix(_MARK))


def main() -> None:
    """Call the function that the command line names and print its result."""
    target, *arguments = sys.argv[1:]
    where, _, name = target.partition(":")
    result = getattr(importlib.import_module(where), name)(*map(json.loads, arguments))
    print(_MARK + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
