"""The records of labs: found by looking, complete, and what they name is there."""

import itertools

import pytest

from warpcourse.bench import lab as lab_module
from warpcourse.bench.lab import Lab, find, labs

LABS = labs()
RECORD = 'from warpcourse.bench.lab import Lab\nLAB = Lab(__package__, "{slug}", "A title")\n'


def test_every_lesson_has_its_record():
    assert {path.stem for path in (lab_module.COURSE / "notebooks").glob("*.ipynb")} <= {
        lesson.slug for lab in LABS for lesson in lab.lessons
    }
    for folder in ("solutions", "exercises"):
        assert {path.name for path in (lab_module.COURSE / folder).iterdir() if path.is_dir()} <= {
            one.slug for lab in LABS for one in (lab, *lab.exercises)
        }


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.slug)
def test_a_record_names_what_is_there(lab):
    assert lab.tests.is_dir()
    assert lab.notebook.exists() == bool(lab.code_cells)
    assert all(lesson.notebook.exists() and lesson.tests.is_dir() for lesson in lab.lessons)
    assert not lab.benchmark or lab.module(lab.benchmark).BENCHMARK
    assert not lab.launches or lab.module(lab.launches).LAUNCHES
    assert lab.simulator or lab.cpu or lab.gpus
    assert [found for found in LABS if found.number == lab.number] == [lab]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """make(path, slug): a course elsewhere that holds a lab's package there; its names occur once per process."""
    monkeypatch.setattr(lab_module, "COURSE", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names = itertools.count()

    def make(slug, below="", text=RECORD):
        folder = tmp_path / below / f"made_{tmp_path.name}_{next(names)}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "lab.py").write_text(text.format(slug=slug))
        return folder

    return make


def test_an_application_beside_the_kernels_is_found(course):
    folder = course("12_application")
    (found,) = labs()
    assert (found.number, found.package, found.folder) == (12, folder.name, folder)
    assert (found.benchmark, found.launches, found.solution) == (None, None, None)


def test_labs_come_by_number(course):
    for slug in ("10_b", "02_c", "07_a"):
        course(slug)
    assert [lab.number for lab in labs()] == [2, 7, 10]
    for name in ("7", "07", "07_a"):
        assert find(name).slug == "07_a"
    with pytest.raises(ValueError, match="there is no lab '8'; choose one of 02_c, 07_a, 10_b"):
        find("8")


def test_two_labs_of_one_number_are_an_error(course):
    course("03_a")
    course("03_b")
    with pytest.raises(ValueError, match=r"both have the number 3; change one's slug in its lab\.py"):
        labs()


def test_a_file_without_a_record_is_an_error(course):
    course("", text="")
    with pytest.raises(ValueError, match=r"lab\.py holds no record of its lab; write LAB = Lab\(__package__, \.\.\.\)"):
        labs()


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({}, "simulator or 1 GPU"),
        ({"simulator": False, "gpus": 4}, "4 GPUs"),
        ({"simulator": False, "cpu": True, "gpus": 0}, "CPU"),
    ],
)
def test_where_a_lab_runs_is_said(where, text):
    assert Lab("kernels.topic", "09_topic", "A title", **where).runs_on == text
