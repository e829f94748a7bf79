"""A plain Python file in the place of a student's kernel: for code that needs the sandbox, but no notebook."""

import os
import runpy
import sys
from collections.abc import Callable


def run(header: dict, channels: list[int], ready: Callable[[], None]) -> None:
    """Run the submitted file that `header["script"]` names, as a program.

    Its one argument is the number of a file descriptor, the first of `channels`, for its answer.
    """
    ready()
    sys.argv = [header["script"], str(channels[0])]
    sys.path.insert(0, os.getcwd())
    runpy.run_path(header["script"], run_name="__main__")
