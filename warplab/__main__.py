"""Warp Lab's command line: `python -m warplab COMMAND`.

`run` and `judge` are the engine's own. The other commands are the course's and come with its package, warpcourse, where
that is installed beside this one.
"""

import importlib
import os
import sys

USAGE = """usage: python -m warplab COMMAND

  run SCRIPT ...             run a program of numba.cuda, CuPy, ... on the simulator, with its checks, and report
  judge TASK ANSWER          judge a kernel by a task: right, defects, counters, estimated time
"""
COURSE = "Install its wheel: pip install warpcourse. Lessons come with its repository: clone it and run make lab there."
MODULES = {"run": "warplab.running.run_command", "judge": "warplab.judging.command"}


def main(arguments):
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is there to be run by whatever Python the machine has
        version = "{}.{}".format(*sys.version_info[:2])
        print(
            f"error: Warp Lab needs Python 3.11 or newer, this is Python {version}. Try: make doctor", file=sys.stderr
        )
        return 1
    if arguments[:1] and arguments[0] in MODULES:
        try:
            here = os.getcwd()
        except OSError as error:
            print(f"error: the current folder cannot be used: {error.strerror}", file=sys.stderr)
            return 2
        if sys.path[:1] == [here]:  # by `python -m`: behind Python's own modules, which a file there would hide
            sys.path.append(sys.path.pop(0))
        return importlib.import_module(MODULES[arguments[0]]).main(arguments[1:])
    try:
        # By name: the engine knows no module of the course.
        commands = importlib.import_module("warpcourse.commands")
    except ModuleNotFoundError as error:
        if error.name not in ("warpcourse", "warpcourse.commands"):
            raise
        wants_help = not arguments or arguments[0] in ("-h", "--help", "help")
        wrong = "" if wants_help else f"there is no command {arguments[0]!r} without the package warpcourse. {COURSE}"
        print(f"error: {wrong}\n\n{USAGE}" if wrong else USAGE, end="", file=sys.stderr if wrong else sys.stdout)
        return 2 if wrong or not arguments else 0
    return commands.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
