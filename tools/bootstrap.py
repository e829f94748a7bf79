"""Find a Python that the course runs on and let it prepare .venv (tools/environment.py, which gets the arguments).

Any Python from 2.7 on must be able to run this file, so that an old one says what is needed.
PYTHON=NAME in the environment names the interpreter to use; otherwise the first that fits is taken.
"""

from __future__ import print_function

import os
import subprocess
import sys

OLDEST, NEWEST = (3, 11), (3, 14)  # requires-python in warpcourse/pyproject.toml says the same
NEWEST_FOR_TENSORFLOW = (3, 13)
RANGE = "Python 3.11, 3.12, 3.13 or 3.14"
INSTALL = "On Debian or Ubuntu: sudo apt install python3.12 python3.12-venv"

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The base interpreter, not the virtual environment that may be active: .venv must not hang on another one.
PROBE = """
import sys
try:
    import ensurepip, venv
    complete = 1
except ImportError:
    complete = 0
print("%d %d %d %d" % (sys.version_info[:3] + (complete,)))
print(getattr(sys, "_base_executable", None) or sys.executable)
"""


def probe(command):
    """Return (version, has venv and ensurepip, path) of an interpreter, or None if it does not run."""
    try:
        process = subprocess.Popen([command, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = process.communicate()[0].decode().splitlines()
        numbers = [int(word) for word in lines[0].split()]
        return tuple(numbers[:3]), bool(numbers[3]), lines[1]
    except (OSError, ValueError, IndexError):
        return None


def choose(candidates):
    """Return (path, None) of the first interpreter that fits, or (None, what is wrong and what to do).

    One that TensorFlow has packages for is taken before those that lack them.
    """
    problem = without_tensorflow = None
    for command in candidates:
        found = probe(command)
        if found is None:
            continue
        version, complete, path = found
        if OLDEST <= version[:2] <= NEWEST and complete:
            if version[:2] <= NEWEST_FOR_TENSORFLOW:
                return path, None
            without_tensorflow = without_tensorflow or path
        elif problem is None or OLDEST <= version[:2] <= NEWEST:
            problem = describe(command, version)
    if without_tensorflow:
        return without_tensorflow, None
    return None, problem or "%s is no Python that runs. Warp Lab needs %s." % (" or ".join(candidates), RANGE)


def describe(command, version):
    number = ".".join(str(part) for part in version)
    minor = "%d.%d" % version[:2]
    if version[:2] < OLDEST:
        return "Python 3.11 or newer needed: %s is Python %s. Warp Lab runs on %s. %s" % (
            command,
            number,
            RANGE,
            INSTALL,
        )
    if version[:2] > NEWEST:
        return "Python %s is too new: nobody has tried Warp Lab on it. Warp Lab runs on %s. %s" % (
            number,
            RANGE,
            INSTALL,
        )
    return "Python %s (%s) lacks its venv module. On Debian or Ubuntu: sudo apt install python%s-venv" % (
        number,
        command,
        minor,
    )


def main():
    named = os.environ.get("PYTHON")
    if named:
        candidates = [named]
    else:
        candidates = [sys.executable, "python3", "python3.13", "python3.12", "python3.11", "python3.14"]
        candidates.append(os.path.join(ROOT, ".venv", "bin", "python"))
    path, problem = choose(candidates)
    if problem:
        print("error: %s\nThen repeat, or name another: PYTHON=/path/to/python3.12 make lab" % problem, file=sys.stderr)
        return 1
    os.chdir(ROOT)
    os.execv(path, [path, "-m", "tools.environment"] + sys.argv[1:] + (["--this-python"] if named else []))


if __name__ == "__main__":
    sys.exit(main())
