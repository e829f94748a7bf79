"""What all tests share: figures without a screen, hypothesis without time limits, the marks `gpu` and `slow`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
# Tests neither see nor change what the course keeps of whoever runs them.
os.environ["WARPLAB_MINE"] = tempfile.mkdtemp(prefix="warplab-mine-")

import pytest
from hypothesis import settings

from warplab.hardware import backend

# Importing nbformat takes 2 s less without it; see warplab/grading/__init__.py.
sys.modules.setdefault("rfc3987_syntax", None)

# The first example of a test may compile a kernel, which takes longer than hypothesis' limit of 200 ms.
settings.register_profile("warplab", deadline=None, print_blob=True)
settings.load_profile("warplab")

MAIN = sys.modules["__main__"]

# Files of tests that take most of the time; `make test-quick` leaves them out.
SLOW = (
    "test_notebooks.py",
    "bench/test_tensorflow_start.py",
    "desk/test_in_browser.py",
    "differential/*",
    "dropin/test_magic.py",
    "dropin/numba_cuda/*",
    "exercises/test_check_command.py",
    "exercises/test_nbgrader.py",
    "exercises/test_recognise.py",
    "grading/course/*",
    "grading/exchange/*",
    "grading/judge/test_execute.py",
    "grading/sandbox/*",
    "grading/test_attacks.py",
    "grading/test_tensorflow_attacks.py",
    "grading/test_takeover.py",
    "grading/test_tampering.py",
    "labs/*/test_data_in_browser.py",
    "labs/*/test_deploy.py",
    "labs/*/test_exercise.py",
    "labs/*/test_grading.py",
    "labs/*/test_journey_in_browser.py",
    "labs/*/test_kernels.py",
    "labs/*/test_hopper.py",
    "labs/*/test_kill_and_resume.py",
    "labs/*/test_lesson.py",
    "labs/*/test_look.py",
    "labs/*/test_look_in_browser.py",
    "labs/*/test_look_panel.py",
    "labs/*/test_ray_serve.py",
    "labs/*/test_records.py",
    "labs/*/test_scene_runs.py",
    "labs/*/test_scene_tasks.py",
    "labs/*/test_page_in_browser.py",
    "labs/*/test_page_in_jupyterlab.py",
    "labs/*/test_scenes_in_browser.py",
    "labs/*/test_tensorflow.py",
    "labs/*/test_trainer.py",
    "simulator/numerics/*",
    "simulator/ptx/test_hostile_ptx.py",
    "simulator/run/test_atomics.py",
    "simulator/run/test_instructions.py",
    "simulator/run/test_libraries.py",
    "tools/test_ncu.py",
    "tools/test_new_lab.py",
    "tools/test_set_up.py",
)
TESTS = Path(__file__).parent


@pytest.fixture(autouse=True)
def _pytest_stays_the_main_module():
    """An IPython shell puts its own there; a shell that was reset leaves it empty, and `spawn` cannot start from it."""
    sys.modules["__main__"] = MAIN


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(TESTS)
        if any(path.match(pattern) for pattern in SLOW):
            item.add_marker(pytest.mark.slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without a GPU a test marked gpu is skipped, but fails where `-m gpu` asked for it: nothing passes unrun."""
    if item.get_closest_marker("gpu") is None:
        return
    problem, _ = backend.gpu_problem()
    if problem is None:
        return
    if item.config.option.markexpr == "gpu":
        pytest.fail(f"needs an NVIDIA GPU: {problem}", pytrace=False)
    pytest.skip(f"needs an NVIDIA GPU: {problem}")
