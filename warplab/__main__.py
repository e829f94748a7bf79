"""Warp Lab's command line: `python -m warplab COMMAND`.

The commands are the course's and come with its package, warpcourse, where that is installed beside this one.
"""

import importlib
import sys


def main(arguments):
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is there to be run by whatever Python the machine has
        version = "{}.{}".format(*sys.version_info[:2])
        print(
            f"error: Warp Lab needs Python 3.11 or newer, this is Python {version}. Try: make doctor", file=sys.stderr
        )
        return 1
    try:
        # By name: the engine knows no module of the course.
        commands = importlib.import_module("warpcourse.commands")
    except ModuleNotFoundError as error:
        if error.name not in ("warpcourse", "warpcourse.commands"):
            raise
        print("error: the commands come with the package warpcourse, which is not installed here", file=sys.stderr)
        return 2
    return commands.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
