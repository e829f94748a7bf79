"""`check("01")` in a cell: the report of `python -m warplab check 01`, without a terminal."""

import datetime
import subprocess
import sys
from pathlib import Path

from warpcourse.desk.own_exercise import meant, missing, names
from warpcourse.learner.form import in_notebook
from warpcourse.paths import COURSE


def check(exercise: str) -> None:
    """Run the saved notebook of an exercise from the top in a fresh process and print the points by problem.

    `exercise`: its number or name, such as "01" or "01_vector_multiply". Does nothing while the notebook itself is run
    from the top, as by the button Validate or by this check. Raises ValueError for an exercise that is not there.
    """
    if not _a_person_runs_this():
        print("Run this cell by itself to see your points.")
        return
    for name in names(exercise):
        path = meant(name)
        if not path.is_file():
            raise ValueError(missing(exercise))
        if not _checked(path):
            return


def _checked(path: Path) -> bool:
    """Print the report on a notebook. Returns False if it was interrupted."""
    saved = datetime.datetime.fromtimestamp(path.stat().st_mtime).strftime("%H:%M:%S")
    print(f"Checking {path.name} as it was saved at {saved}.\nWhat you wrote since then does not count: save first.")
    command = [sys.executable, "-m", "warplab", "check", str(path)]
    with subprocess.Popen(command, cwd=COURSE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            report, problems = process.communicate()
        except KeyboardInterrupt:
            process.terminate()
            print("Interrupted; nothing was scored.")
            return False
    warnings = [line for line in problems.splitlines() if line and not line.startswith("Running ")]
    print("\n".join([*warnings, report.rstrip()]).strip())
    return True


def _a_person_runs_this() -> bool:
    """Return whether a frontend runs the cell that could ask a person something; programs cannot."""
    if not in_notebook():
        return True
    from IPython import get_ipython

    return bool(getattr(get_ipython().kernel, "_allow_stdin", True))
