"""`python -m warplab check 01`: which notebook is meant, then the check itself."""

import sys
from pathlib import Path

import nbformat

from warpcourse.desk.course_order import Shipped, shipped
from warpcourse.exercises import check_command
from warpcourse.paths import COURSE, own_folder


def main(argv: list[str] | None = None) -> int:
    """Run the check of an exercise that is given by its number, its folder or its notebook. Returns its exit code, the
    worst of them where a number stands for several exercises."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for place, argument in enumerate(arguments):
        if not argument.startswith("-"):
            paths = [meant(name) for name in names(argument)]
            if argument.isdigit() and not paths[0].exists():
                print(f"error: {missing(argument)}", file=sys.stderr)
                return 2
            before, after = arguments[:place], arguments[place + 1 :]
            return max([check_command.main([*before, str(path), *after]) for path in paths])
    return check_command.main(arguments)


def names(argument: str) -> list[str]:
    """Return the names of a lab's exercises where it has several and `argument` is its number, else `argument`."""
    found = [one.path.stem for one in exercises() if argument in (one.number, one.number.lstrip("0"))]
    return found if len(found) > 1 else [argument]


def meant(argument: str) -> Path:
    """Return the learner's notebook that `argument` names, `argument` itself where it names no exercise of the course.

    The folder exercises/ of the course names the learner's copy, too, as long as nobody wrote into the course's own.
    """
    path = Path(argument)
    for one in exercises():
        own, given = own_folder() / one.own, COURSE / one.path
        if not path.exists() and argument in (one.number, one.number.lstrip("0"), one.path.stem):
            if not own.exists() and not _has_answers(given):
                print(f"There is no {own} yet (make lab lays it there): checking the course's own.", file=sys.stderr)
            return own if own.exists() else given
        names_it = path.exists() and path.resolve() in (given.resolve(), given.parent.resolve())
        if names_it and own.exists() and not _has_answers(given):
            print(f"Checking your copy, {own}.", file=sys.stderr)
            return own
    return path


def missing(argument: str) -> str:
    """Return the sentence that there is no exercise of that number or name, and which there are."""
    if argument.zfill(2) in {one.number for one in shipped()} - {one.number for one in exercises()}:
        argument = f"{argument.zfill(2)}: lab {argument.zfill(2)} has a lesson only"
    return f"there is no exercise {argument}; give one of {', '.join(one.path.stem for one in exercises())}"


def exercises() -> list[Shipped]:
    """Return the exercises of the course, in order."""
    return [one for one in shipped() if one.is_exercise]


def _has_answers(path: Path) -> bool:
    """Return whether somebody wrote into the course's own notebook: an answer differs from what nbgrader released."""
    from nbgrader.utils import compute_checksum, is_solution

    cells = nbformat.read(path, as_version=4).cells
    return any(is_solution(c) and compute_checksum(c) != c.metadata.nbgrader.get("checksum") for c in cells)
