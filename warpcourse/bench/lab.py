"""What a lab is: one record, `LAB`, in the file lab.py of the lab's package, found by looking.

README, docs, `make bench` and tests all call `labs()`; there is no other list of labs.
"""

import functools
import importlib.util
import itertools
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from warpcourse.bench.recordings import Recordings
from warpcourse.paths import COURSE

FIRST_WITHOUT_TENSORFLOW = (3, 14)  # of Pythons
# Where lab.py is looked for: a lab's kernels are below kernels/; an application is a package beside that folder.
PLACES = ("kernels/*/lab.py", "*/lab.py")


@dataclass(frozen=True)
class Lab:
    """One lab.

    `package`: dotted name of the folder that holds lab.py: `__package__`. `slug`: number and topic, such as
    "04_matrix_multiply", which names notebook, exercise, solution and the folder of tests. `claim`: on trial in the
    lesson; "" where there is none. `status`: "ready", or what else README's table says.

    Where it runs: `simulator` or `cpu`, if it needs no GPU for its lesson; `gpus`: how many it uses where there are
    any. `needs`: what its lesson imports that the small set lacks (requirements-small.txt).

    `benchmark`, `launches`: modules of the package, None for a lab without. The first holds `BENCHMARK`, a
    `Benchmark`; the second `LAUNCHES`, whose counters are compared with Nsight Compute's. `offers`: names in the
    package that other labs get by `offered`, since they do not import it. `counted`: module whose `table()` counts what
    the lesson's revealed cells print, head and rows; `python -m tools.labs_page --count` keeps it for the lab's page.

    `code_cells`: of the lesson, all of which run; 0 for a lab without a lesson. `pictures`: how many its committed
    outputs hold. `shown`: those that the lab's page shows, by the id of their cell, each with what is to be seen, for
    those who cannot see it. `further`: slug, code cells and pictures of each other lesson; all are read in
    the order of their slugs.
    """

    package: str
    slug: str
    title: str
    claim: str = ""
    status: str = "ready"
    simulator: bool = True
    cpu: bool = False
    gpus: int = 1
    needs: tuple[str, ...] = ()
    benchmark: str | None = None
    launches: str | None = None
    counted: str | None = None
    offers: tuple[str, ...] = ()
    code_cells: int = 0
    pictures: int = 0
    shown: Mapping[str, str] = field(default_factory=dict)
    further: tuple[tuple[str, int, int], ...] = ()

    @property
    def number(self) -> int:
        """Return the lab's number: 4 for "04_matrix_multiply"."""
        return int(self.slug.partition("_")[0])

    @property
    def topic(self) -> str:
        """Return the name of the package's folder, such as "matmul"."""
        return self.package.rpartition(".")[2]

    @property
    def folder(self) -> Path:
        """Return the package's folder."""
        return COURSE.joinpath(*self.package.split("."))

    @property
    def notebook(self) -> Path:
        """Return the lesson; there is no such file where `code_cells` is 0."""
        return COURSE / "notebooks" / f"{self.slug}.ipynb"

    @property
    def lessons(self) -> "tuple[Lab, ...]":
        """Return the lab once for each of its lessons, with that one's slug, cells and pictures."""
        further = [replace(self, slug=slug, code_cells=c, pictures=p, further=()) for slug, c, p in self.further]
        return tuple(sorted([self, *further], key=lambda one: one.slug)) if self.code_cells else ()

    @property
    def solution(self) -> Path | None:
        """Return nbgrader's source of the exercise; None for a lab without one."""
        path = COURSE / "solutions" / self.slug / f"{self.slug}.ipynb"
        return path if path.exists() else None

    @property
    def exercises(self) -> "tuple[Lab, ...]":
        """Return the lab once for each of its exercises, with that one's slug: each lesson may have its own."""
        return tuple(one for one in self.lessons or (self,) if one.solution)

    @property
    def tests(self) -> Path:
        """Return the folder of the lab's tests, answers to its tasks and wrong answers to its exercise."""
        return COURSE / "tests" / "labs" / self.slug

    @property
    def recordings(self) -> Recordings:
        """Return what was measured on a GPU."""
        return Recordings(self.package, gpus=self.gpus)

    @property
    def tensorflow(self) -> bool:
        """Return whether its lesson needs TensorFlow."""
        return "tensorflow" in self.needs

    @property
    def missing(self) -> list[str]:
        """Return what its lesson needs and is not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]

    @property
    def needs_gpu(self) -> bool:
        """Return whether the lesson runs on GPUs only."""
        return not (self.simulator or self.cpu)

    @property
    def runs_on(self) -> str:
        """Return where the lab runs, such as "simulator or 1 GPU"."""
        gpus = [f"{self.gpus} GPU{'s' if self.gpus > 1 else ''}"] if self.gpus else []
        return " or ".join(["simulator"] * self.simulator + ["CPU"] * self.cpu + gpus)

    def module(self, name: str) -> ModuleType:
        """Return a module of the lab's package."""
        return importlib.import_module(f"{self.package}.{name}")


def labs() -> list[Lab]:
    """Return all labs, by number. ValueError for a lab.py without a record, and for two labs of one number."""
    found = sorted((_record(path) for place in PLACES for path in COURSE.glob(place)), key=lambda lab: lab.slug)
    for one, other in itertools.pairwise(found):
        if one.number == other.number:
            raise ValueError(
                f"{one.package} and {other.package} both have the number {one.number}; change one's slug in its lab.py"
            )
    return found


@functools.cache
def offered(name: str) -> Any:
    """Return what a lab offers to all others by that name; None where no lab does, as once that one is deleted."""
    packages = [lab.package for lab in labs() if name in lab.offers]
    return getattr(importlib.import_module(packages[0]), name) if packages else None


def left_out() -> list[Lab]:
    """Return the labs that cannot be worked in for want of TensorFlow, which has no package for each Python."""
    if sys.version_info[:2] < FIRST_WITHOUT_TENSORFLOW or importlib.util.find_spec("tensorflow"):
        return []
    return [lab for lab in labs() if lab.tensorflow]


class MissingPackages(ModuleNotFoundError):
    """A lab needs packages that are not installed; the message names them and the command that adds them."""


def need(lab: str) -> None:
    """Raise MissingPackages where packages of a lab ("09") are not installed, as after the small set-up."""
    if missing := find(lab).missing:
        how = f"which the small set-up leaves out. End JupyterLab, then in the course's folder: make lab LABS={lab}"
        if sys.version_info[:2] >= FIRST_WITHOUT_TENSORFLOW and "tensorflow" in missing:
            how = "for which there is no package for this Python. For it: PYTHON=python3.13 make setup"
        raise MissingPackages(f"Lab {lab} needs {', '.join(missing)}, {how}")


def find(name: str) -> Lab:
    """Return the lab of that slug, topic or number. ValueError lists the labs."""
    found = labs()
    for lab in found:
        if name in (lab.slug, lab.topic, str(lab.number), f"{lab.number:02}"):
            return lab
    raise ValueError(f"there is no lab {name!r}; choose one of {', '.join(lab.slug for lab in found)}")


def _record(path: Path) -> Lab:
    """Return the record in a lab.py, run without the package around it, which loads compilers and libraries."""
    package = ".".join(path.parent.relative_to(COURSE).parts)
    spec = importlib.util.spec_from_file_location(f"{package}.lab", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    record: Any = getattr(module, "LAB", None)
    if not isinstance(record, Lab) or record.package != package:
        raise ValueError(f"{path} holds no record of its lab; write LAB = Lab(__package__, ...) in it")
    return record
