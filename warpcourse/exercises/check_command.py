"""`python -m warplab check PATH`: a learner's own score by problem."""

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution

from warpcourse.exercises import release, score, worked_solution
from warpcourse.exercises.recognise import recognise, restore
from warpcourse.learner import record
from warpcourse.paths import COURSE


class BadInput(Exception):
    """A path with nothing to check; the message says why and what to do."""


class Exercise(NamedTuple):
    """What is checked: the learner's notebook and the course's release of the same exercise.

    `notes`: what to tell about cells that had lost their names.
    """

    topic: str
    path: Path
    submitted: NotebookNode
    release: NotebookNode
    notes: tuple[str, ...] = ()


def main(argv: list[str] | None = None) -> int:
    """Check an exercise; return 0 for full marks, 1 for less, 2 if there is nothing to check."""
    parser = argparse.ArgumentParser(
        prog="python -m warplab check",
        description="Run your notebook of an exercise in a fresh process and show the points by problem.",
    )
    parser.add_argument("path", type=Path, help="folder of an exercise, or its notebook")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--course", type=Path, default=COURSE, metavar="FOLDER", help="the course of the exercise (default: this one)"
    )
    parser.add_argument("--timeout", type=int, default=60, metavar="SECONDS", help="limit per cell (default: 60; more on a busy machine)")
    arguments = parser.parse_args(argv)
    try:
        exercise = find(arguments.path, arguments.course)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2

    locked = [cell for cell in exercise.release.cells if is_locked(cell)]
    edited = [str(score.cell_id(cell)) for cell in locked if not score.as_released(cell)]
    if edited:
        print(
            f"warning: the course's own cells {', '.join(edited)} were edited, and there is no other copy here. "
            "Get a fresh copy of the exercise and put your answers into it: a class is graded with the original cells.",
            file=sys.stderr,
        )
    for note in exercise.notes:
        print(f"warning: {note}", file=sys.stderr)
    print(f"Running {exercise.path} ...", file=sys.stderr, flush=True)
    notebook = score.assemble(exercise.submitted, exercise.release)
    try:
        ended = score.run(notebook, exercise.path.parent, arguments.timeout)
    except RuntimeError as error:
        print(
            f"error: nothing was checked, as the notebook's Python process did not start: {error}. Is the machine busy? "
            "Try again later, or with a longer --timeout.",
            file=sys.stderr,
        )
        return 2
    for note in score.notes(notebook):
        print(f"warning: {note}", file=sys.stderr)
    problems = score.score(notebook, exercise.submitted, exercise.release, ended)
    points, possible = sum(p.points for p in problems), sum(p.possible for p in problems)
    if arguments.json:
        print(json.dumps(as_dict(exercise.topic, problems), indent=1))
    else:
        print(table(exercise.topic, problems))
    if arguments.course == COURSE:
        _keep(exercise.topic, problems)
        solution = worked_solution.write(exercise.topic) if points == possible else None
        if solution and not arguments.json:
            print(f"Full marks. A worked solution to compare yours with: {solution}")
    return 0 if points == possible else 1


def _keep(topic: str, problems: list[score.Problem]) -> None:
    """Keep the best points by problem, for the page that shows what is done."""
    best = dict(record.entry("exercises", topic).get("problems", {}))
    for problem in problems:
        earlier = best.get(problem.title, [0, 0])
        same = earlier[1] == problem.possible
        best[problem.title] = [max(problem.points, earlier[0]) if same else problem.points, problem.possible]
    titles = [problem.title for problem in problems]
    record.keep("exercises", topic, {"problems": {title: best[title] for title in titles}})


def find(path: Path, course: Path = COURSE) -> Exercise:
    """Find the notebook at `path` and the release in `course` that it belongs to. Raises `BadInput`."""
    notebook = _notebook_in(path)
    try:
        submitted = nbformat.read(notebook, as_version=4)
        nbformat.validate(submitted)
    except Exception as error:  # nbformat raises a dozen classes for malformed JSON
        reason = (str(error) or type(error).__name__).splitlines()[0][:120]
        raise BadInput(f"{notebook} is not a Jupyter notebook ({reason}). Get a fresh copy of it.") from error
    graded = {score.cell_id(cell) for cell in submitted.cells if is_grade(cell) or is_solution(cell)}
    releases = {topic: release.release_notebook(topic, course) for topic in release.topics(course)}

    def shared(topic: str) -> int:
        return len(graded & {score.cell_id(cell) for cell in releases[topic].cells})

    def found(topic: str) -> int:
        """Return how many cells have names, or are recognised if none has one."""
        return shared(topic) or len(recognise(submitted, releases[topic]).places)

    # Cells decide, since downloads get renamed; the file's name settles a tie.
    known = {topic: found(topic) for topic in releases if not any(map(shared, releases)) or shared(topic)}
    topic = max(known, key=lambda topic: (known[topic], topic == notebook.stem), default=None)
    if topic is not None and known[topic]:
        recognised = recognise(submitted, releases[topic])
        restore(submitted, releases[topic], recognised)
        return Exercise(topic, notebook, submitted, releases[topic], tuple(recognised.notes()))
    if not graded:
        raise BadInput(
            f"{notebook} has no graded cells. Give the notebook of an exercise, such as exercises/01_vector_multiply. "
            "If it is one, another program dropped nbgrader's metadata: put your answers into a fresh copy of it."
        )
    names = ", ".join(releases) or "it has none"
    raise BadInput(f"{notebook} is not an exercise of this course. Give the notebook of one ({names}).")


def _notebook_in(path: Path) -> Path:
    if not path.exists():
        raise BadInput(f"{path} does not exist. Give the folder of an exercise, or its notebook.")
    if path.is_file():
        if path.suffix != ".ipynb":
            raise BadInput(f"{path} is not a notebook: its name does not end in .ipynb. Give an exercise's notebook.")
        return path
    notebooks = sorted(path.glob("*.ipynb"))
    name = path.resolve().name
    named = [notebook for notebook in notebooks if notebook.stem in (name, f"exercise_{name}")]  # or a learner's copy
    if len(named or notebooks) != 1:
        found = ", ".join(notebook.name for notebook in notebooks) or "none"
        raise BadInput(f"{path} should hold one notebook, found: {found}. Give the path of the notebook itself.")
    return (named or notebooks)[0]


def table(topic: str, problems: list[score.Problem]) -> str:
    """Format the result as text: one line per problem, and below it the message of its first failing check."""
    width = max(len(problem.title) for problem in problems) + 2
    lines = [topic, f"  {'problem':<{width}} points"]
    for problem in problems:
        lines.append(f"  {problem.title:<{width}} {problem.points:g} / {problem.possible:g}")
        lines.extend(textwrap.indent(problem.message, " " * 6).splitlines())
    points, possible = sum(p.points for p in problems), sum(p.possible for p in problems)
    lines.append(f"  {'total':<{width}} {points:g} / {possible:g}")
    lines.append("The grading of a class adds hidden tests, with other sizes, grids and values.")
    return "\n".join(lines)


def as_dict(topic: str, problems: list[score.Problem]) -> dict:
    """Return the result as plain data, for --json."""
    return {
        "exercise": topic,
        "points": sum(problem.points for problem in problems),
        "possible": sum(problem.possible for problem in problems),
        "problems": [
            {
                "title": problem.title,
                "points": problem.points,
                "possible": problem.possible,
                "message": problem.message,
                "tests": [vars(test) for test in problem.tests],
            }
            for problem in problems
        ],
    }
