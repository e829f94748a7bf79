"""Warp Lab's command line: `python -m warplab COMMAND`."""

import glob
import importlib
import os
import sys

COURSE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
USAGE = """usage: python -m warplab COMMAND

  lab                        bring your own copy of the lessons up to date and open JupyterLab on it
  doctor                     say what this machine has, which backend runs and why, and what to do if something is off
  check EXERCISE             run your notebook of an exercise in a fresh process and show the points by problem;
                             EXERCISE is its number, such as 01, its folder or its notebook
  progress                   show what is done of each lesson and exercise, and what is next
  grade ASSIGNMENT           for instructors: grade what a class handed in, into nbgrader's gradebook
  similar ASSIGNMENT         for instructors: list pairs of graded submissions whose kernels are alike

{applications}See python -m warplab COMMAND --help.
"""


def main(arguments):
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is there to be run by whatever Python the machine has
        version = "{}.{}".format(*sys.version_info[:2])
        print(
            f"error: Warp Lab needs Python 3.11 or newer, this is Python {version}. Try: make doctor", file=sys.stderr
        )
        return 1
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command == "doctor":
        from warplab.doctor import main as run
    elif command == "lab":
        run = _lab
    elif command == "progress":
        run = _progress
    elif command == "check":
        run = _check
    elif command == "grade":
        run = _grade
    elif command == "similar":
        run = _similar
    elif command in applications():
        return _with_packages(command + ".app", rest)
    else:
        print(f"error: there is no command {command!r}\n\n{usage()}", end="", file=sys.stderr)
        return 2
    return run(rest)


def applications():
    """Labs that are applications: packages of the course, each with its record in lab.py and `main` in app.py."""
    folders = [os.path.dirname(path) for path in glob.glob(os.path.join(COURSE, "*", "app.py"))]
    return sorted(os.path.basename(folder) for folder in folders if os.path.exists(os.path.join(folder, "lab.py")))


def usage():
    lines = [f"  {name:<27}open this application of the course in the browser\n" for name in applications()]
    return USAGE.format(applications="".join(lines + ["\n"] if lines else []))


def _lab(arguments):
    return _with_packages("warplab.desk.lab_command", arguments)


def _progress(arguments):
    return _with_packages("warplab.desk.progress_page", arguments)


def _check(arguments):
    return _with_packages("warplab.desk.own_exercise", arguments)


def _grade(arguments):
    return _with_packages("warplab.grading.course.grade_command", arguments)


def _similar(arguments):
    return _with_packages("warplab.grading.course.similar_command", arguments)


def _with_packages(module, arguments):
    """Run a command that needs the course's packages."""
    modules: dict = sys.modules
    modules.setdefault("rfc3987_syntax", None)  # saves 2 s; see warplab/grading/__init__.py
    try:
        run = importlib.import_module(module).main
    except ImportError as error:
        print(
            f"error: {error}. Run the course with its own Python, .venv/bin/python; see make doctor.", file=sys.stderr
        )
        return 2  # nothing was checked; 1 means less than full marks
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
