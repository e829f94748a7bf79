"""`python -m warplab lab`: bring the learner's copy up to date and open JupyterLab on it."""

import os
import sys
import urllib.parse
from pathlib import Path

from warpcourse.bench.lab import labs, left_out
from warpcourse.desk import copies
from warpcourse.desk.own_version import PROGRESS
from warpcourse.desk.progress import next_step, steps
from warpcourse.paths import COURSE, own_folder

SETTINGS = Path(__file__).parent / "jupyter"
# nbgrader's parts for instructors, which would otherwise answer to anybody who opens their addresses.
INSTRUCTORS = ("formgrader", "assignment_list", "course_list")


def main(argv: list[str] | None = None) -> int:
    """Replace this process by JupyterLab's. Returns 1 where the learner's folder cannot be written."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] in (["-h"], ["--help"]):
        print(
            "usage: python -m warplab lab [ARGUMENTS OF JUPYTER LAB]\n\n"
            f"Bring your own copy of lessons and exercises ({own_folder()}) up to date and open JupyterLab on it.\n"
            "WARPLAB_MINE names another folder for the copy."
        )
        return 0
    try:
        said = copies.refresh()
    except OSError as error:
        print(
            f"error: your copy of the lessons cannot be written: {error}. Set WARPLAB_MINE to a folder of your own, "
            "such as WARPLAB_MINE=~/warplab",
            file=sys.stderr,
        )
        return 1
    for sentence in said:
        print(sentence)
    if without := left_out():
        print(f"Left out, as there is no TensorFlow here: {', '.join(lab.slug for lab in without)}. See make doctor.")
    elif wanting := [f"{lab.number:02}" for lab in labs() if lab.missing]:
        print(f"Labs {', '.join(wanting)} need packages not installed; for the first: make lab LABS={wanting[0]}")
    sys.stdout.flush()
    os.execvpe(sys.executable, [sys.executable, "-m", "jupyterlab", *options(), *arguments], environment())


def options() -> list[str]:
    """Return the arguments with which JupyterLab opens on the learner's copy, with what is next for the learner."""
    found = steps()
    labs_asked = {f"{lab:0>2}" for lab in os.environ.get("LABS", "").split()}  # make lab LABS=07
    asked = [step for step in found if step.notebook.number in labs_asked]
    following = next_step(asked) or next_step(found)
    start = urllib.parse.quote(str(following.notebook.own if following else PROGRESS))
    extensions = {f"nbgrader.server_extensions.{name}": False for name in INSTRUCTORS}
    return [
        f"--ServerApp.root_dir={own_folder().resolve()}",
        f"--LabApp.default_url=/lab/tree/{start}",
        f"--ServerApp.jpserver_extensions={extensions}",
        "--LanguageServerManager.autodetect=False",  # its list of what is missing would hide the address
        f"--LabApp.extra_labextensions_path={SETTINGS / 'labextensions'}",
        # No login shell, which JupyterLab starts if it has no terminal itself: /etc/profile would forget our PATH.
        f"--ServerApp.terminado_settings={ {'shell_command': [os.environ.get('SHELL') or 'sh']} }",
        # JupyterLab refuses to run as root unless told so; in a container root is the usual user.
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]


def environment() -> dict[str, str]:
    """Return this process's variables, and those by which JupyterLab, terminals and kernels find settings."""
    first = {
        "JUPYTER_CONFIG_PATH": SETTINGS,
        "PYTHONPATH": COURSE,
        "PATH": Path(sys.executable).parent,  # so that `python` in a terminal is the course's
    }
    changed = {name: os.pathsep.join(filter(None, [str(path), os.environ.get(name)])) for name, path in first.items()}
    return {**os.environ, **changed, "WARPLAB_MINE": str(own_folder().resolve())}
