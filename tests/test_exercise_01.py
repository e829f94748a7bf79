"""Exercise 01: the release, the solution, and the wrong answers that its tests must reject."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from exercise_harness import (
    ROOT,
    Session,
    cell_id,
    cells_by_id,
    committed,
    git,
    is_grade,
    is_solution,
    mutants,
    source_notebook,
)

from warplab import backend

TOPIC = "01_vector_multiply"
MUTANTS = mutants(TOPIC)


@pytest.fixture
def release():
    """The module that generates the release; it needs nbgrader."""
    from warplab.checks import release

    return release


@pytest.fixture(scope="module")
def session():
    return Session(TOPIC)


def test_release_is_generated_from_source(release):
    """On disk, where an author has yet to commit it, or as committed, where a learner has written into it."""
    folder, wanted = f"exercises/{TOPIC}", release.release_files(TOPIC)
    stale = [
        path
        for path, content in wanted.items()
        if content not in ((ROOT / folder / path).read_bytes(), committed(f"{folder}/{path.as_posix()}"))
    ]
    assert stale == [], "run make exercises"
    tracked = git("ls-files", folder)
    if tracked is not None:
        assert set(tracked.decode().split()) <= {f"{folder}/{path.as_posix()}" for path in wanted}


def test_solving_only_fills_the_marked_gaps(release):
    """Release and source have the same cells, and differ inside the marked regions only."""
    source, given = source_notebook(TOPIC).cells, release.release_notebook(TOPIC).cells
    assert [cell.id for cell in source] == [cell.id for cell in given]
    gaps = 0
    for solved, blank in zip(source, given, strict=True):
        text = solved.source
        if is_solution(solved):
            text, count = re.subn(r"(?m)^( *).*BEGIN SOLUTION.*\n(?:.*\n)*?.*END SOLUTION.*$", r"\1", text)
            gaps += count
        elif is_grade(solved):
            text, count = re.subn(r"(?m)^.*BEGIN HIDDEN TESTS.*\n(?:.*\n)*?.*END HIDDEN TESTS.*(?:\n|$)", "", text)
            assert count == 1, cell_id(solved)
            assert text.rstrip() != solved.source.rstrip()
        assert blank.source.rstrip("\n") == text.rstrip("\n"), solved.id
    assert gaps == 9


def test_release_shows_no_solution_and_no_hidden_test():
    text = committed(f"exercises/{TOPIC}/{TOPIC}.ipynb").decode()
    assert not re.search("BEGIN SOLUTION|END SOLUTION|HIDDEN TESTS", text)


def test_points():
    notebook = source_notebook(TOPIC)
    points = {cell_id(cell): cell.metadata.nbgrader.points for cell in notebook.cells if is_grade(cell)}
    assert len(points) == 13
    assert sum(points.values()) == 25
    assert [len(tests) for tests in Session(TOPIC).tests.values()] == [2, 2, 2, 2, 2, 3]
    for cell in notebook.cells:
        if cell_id(cell):
            assert cell.metadata.nbgrader.schema_version == 3
            assert cell.metadata.nbgrader.locked != is_solution(cell)


def test_solution_gets_every_point(session):
    for problem in session.tests:
        assert session.failures(problem, session.cells[problem].source) == {}


def test_blank_gets_no_point(session, release):
    given = cells_by_id(release.release_notebook(TOPIC))
    for problem, tests in session.tests.items():
        assert session.failures(problem, given[problem].source).keys() == set(tests)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.path.stem)
def test_mutant_is_rejected_for_its_reason(session, mutant):
    failures = session.failures(mutant.problem, mutant.cell)
    assert failures.keys() == mutant.loses
    first = next(failures[test] for test in session.tests[mutant.problem] if test in failures)
    assert re.search(mutant.reason, first), first


def test_there_are_enough_mutants(session):
    count = Counter(mutant.problem for mutant in MUTANTS)
    assert count.keys() == session.tests.keys()
    assert min(count.values()) >= 5
    assert len(MUTANTS) == len({(m.problem, m.cell.strip()) for m in MUTANTS}) >= 80


@pytest.mark.gpu
def test_a_gpu_changes_no_grade(session):
    """With the real numba.cuda and cupy the same answers win and lose the same points."""
    assert backend.name() == "gpu"
    for problem in session.tests:
        assert session.failures(problem, session.cells[problem].source) == {}
    for mutant in MUTANTS:
        assert session.failures(mutant.problem, mutant.cell).keys() == mutant.loses, mutant.path.name
