"""The commands of the course: what `python -m warplab COMMAND` runs. Needs no package until one runs."""

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
  collect ASSIGNMENT ARCHIVE for instructors: put a learning platform's archive of a class where it is graded
  grade ASSIGNMENT           for instructors: grade what a class handed in, into nbgrader's gradebook
  export gradescope ASSIGNMENT  for instructors: write the autograder that Gradescope runs, a zip to upload there
  board ASSIGNMENT           for instructors: list the right kernels of a class by estimated time
  similar ASSIGNMENT         for instructors: list pairs of graded submissions whose kernels are alike
  measure-card [NAME]        on a GPU: measure it for estimates, and print its paragraph of cards.toml (untried)

  run SCRIPT ...             run any program of numba.cuda, CuPy, ... on the simulator, and report on its kernels
  judge TASK ANSWER          judge a kernel by a task: right, defects, counters, estimated time (docs/run.md)

{applications}See python -m warplab COMMAND --help.
"""

MODULES = {
    "board": "grading.course.board_command",
    "check": "desk.own_exercise",
    "collect": "grading.course.collect_command",
    "export": "grading.course.export_command",
    "grade": "grading.course.grade_command",
    "lab": "desk.lab_command",
    "measure-card": "bench.sweeps.card",
    "progress": "desk.progress_page",
    "similar": "grading.course.similar_command",
}


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    known = command in MODULES or command == "doctor"
    if known and not any(os.path.isdir(os.path.join(COURSE, name)) for name in ("notebooks", "exercises")):
        told = f"error: {command} needs the lessons, which the package warpcourse, installed in {COURSE}, is without: "
        print(f"{told}clone the course's repository and run make lab there.", file=sys.stderr)
        return 2
    if command == "doctor":
        from warpcourse.doctor import main as run

        return run(rest)
    if command in applications():
        return _with_packages(command + ".app", command, rest)
    if command in MODULES:
        return _with_packages("warpcourse." + MODULES[command], command, rest)
    print(f"error: there is no command {command!r}\n\n{usage()}", end="", file=sys.stderr)
    return 2


def applications():
    """Return labs that are applications: packages of the course, each with its record in lab.py and `main` in
    app.py."""
    folders = [os.path.dirname(path) for path in glob.glob(os.path.join(COURSE, "*", "app.py"))]
    return sorted(os.path.basename(folder) for folder in folders if os.path.exists(os.path.join(folder, "lab.py")))


def usage():
    lines = [f"  {name:<27}open this application of the course in the browser\n" for name in applications()]
    return USAGE.format(applications="".join(lines + ["\n"] if lines else []))


def _with_packages(module, command, arguments):
    """Run a command that needs the course's packages, by the course's own Python where this one lacks them: in a
    terminal of JupyterLab `python` may be the one that conda or pyenv put first."""
    modules: dict = sys.modules
    modules.setdefault("rfc3987_syntax", None)  # saves 2 s; see warpcourse/grading/__init__.py
    try:
        run = importlib.import_module(module).main
    except ImportError as error:
        own = os.path.join(COURSE, ".venv")
        python = os.path.join(own, "bin", "python")
        if os.path.exists(python) and os.path.realpath(own) != os.path.realpath(sys.prefix):
            os.execv(python, [python, "-m", "warplab", command, *arguments])
        print(f"error: {error}. Run the course with its own Python, {python}; see make doctor.", file=sys.stderr)
        return 2  # nothing was checked; 1 means less than full marks
    return run(arguments)
