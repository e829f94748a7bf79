"""The whole set-up by the real pip and uv, on a small course with small wheels: once, anew, and when it fails."""

from __future__ import annotations

import fcntl
import http.server
import importlib.metadata
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from warpcourse.paths import COURSE


def wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Write a wheel of these files, {path: text}."""
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        info = f"{name}-{version}.dist-info"
        files = {
            **files,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        for path, text in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16  # pip makes a script executable only if it is so in the wheel
            archive.writestr(entry, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))


def tiny(folder: Path, version: str) -> None:
    """A wheel of one module. Versions differ in size: Python takes bytecode for current by seconds and size alone."""
    wheel(folder, "tiny", version, {"tiny.py": f"version = {version!r}\n" + "#" * int(10 * float(version))})


UV = importlib.metadata.version("uv")


def pin(tree: Path, version: str) -> None:
    (tree / "requirements.txt").write_text(f"# by make pins\ntiny=={version}\nuv=={UV}\nlarge==1.0\n")
    (tree / "requirements-small.txt").write_text(f"# by make pins\ntiny=={version}\nuv=={UV}\n")


def plant(folder: Path) -> Path:
    """Lay a course of one module with small pinned sets, and a folder of wheels beside it. Return the course.

    The wheel of uv holds a script that runs the uv of this environment: 60 MB need not be copied.
    """
    (folder / "course" / "tools").mkdir(parents=True)
    for name in ("__init__.py", "bootstrap.py", "environment.py", "run_uv.py"):
        shutil.copy(COURSE / "tools" / name, folder / "course" / "tools")
    (folder / "course" / "pyproject.toml").write_text("")
    (folder / "course" / "lesson.py").write_text("")
    shutil.copytree(COURSE / "notebooks", folder / "course" / "notebooks", copy_function=lambda _, to: Path(to).touch())
    (folder / "course" / "requirements-dev.txt").write_text("tool==1.0\n")
    pin(folder / "course", "1.0")
    (folder / "wheels").mkdir()
    tiny(folder / "wheels", "1.0")
    wheel(folder / "wheels", "tool", "1.0", {"tool.py": ""})
    wheel(folder / "wheels", "large", "1.0", {"large.py": ""})
    real = Path(sys.executable).parent / "uv"
    wheel(folder / "wheels", "uv", UV, {f"uv-{UV}.data/scripts/uv": f'#!/bin/sh\nexec {real} "$@"\n'})
    return folder / "course"


@pytest.fixture
def tree(tmp_path):
    return plant(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A course that was set up, and what its set-up said."""
    tree = plant(tmp_path_factory.mktemp("finished"))
    return tree, set_up(tree)


@pytest.fixture
def ready(finished, tmp_path):
    """A copy of the course that was set up, as if that had been done here: most of it is Python's own pip."""
    shutil.copytree(finished[0].parent, tmp_path / "ready", symlinks=True)
    tree = tmp_path / "ready" / "course"
    stamp = stamp_of(tree)
    (tree / ".venv" / "warplab-setup.json").write_text(json.dumps({**stamp, "tree": str(tree)}))
    return tree


def stamp_of(tree: Path) -> dict:
    return json.loads((tree / ".venv" / "warplab-setup.json").read_text())


def set_up_process(tree: Path, *layers: str, **more: str) -> subprocess.Popen:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON", "WARPLAB_")) and not name.lower().endswith("_proxy")
    }
    own = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tree.parent / "wheels"),
        "UV_CACHE_DIR": str(tree.parent / "cache"),
        "UV_NO_CONFIG": "1",
        "WARPLAB_REQUIREMENTS": "cpu",
    }
    return subprocess.Popen(
        [sys.executable, tree / "tools" / "bootstrap.py", *layers],
        cwd="/",
        env={**kept, **own, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=listen_to_interrupts,
    )


def listen_to_interrupts() -> None:
    """Take SIGINT as a terminal's child does; tests that run in the background inherit that it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def set_up(tree: Path, *layers: str, **more: str) -> subprocess.CompletedProcess:
    """Run the set-up to its end."""
    process = set_up_process(tree, *layers, **more)
    output, errors = process.communicate()
    assert "Traceback" not in errors, errors
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def run_in(tree: Path, code: str) -> str:
    return subprocess.run([tree / ".venv/bin/python", "-c", code], cwd="/", capture_output=True, text=True).stdout


def installed(tree: Path) -> set[str]:
    code = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    return set(run_in(tree, code).split()) & {"tiny", "tool", "large"}


def test_the_first_set_up(finished):
    tree, first = finished
    assert first.returncode == 0, first.stderr
    assert "first time" in first.stdout
    assert "Ready after" in first.stdout
    assert run_in(tree, "import tiny, lesson; print(tiny.version, lesson.__file__)") == f"1.0 {tree}/lesson.py\n"
    assert list(tree.glob(".venv/lib/*/site-packages/__pycache__/tiny.*.pyc"))  # a sandbox could not write it
    assert stamp_of(tree)["python"] == platform.python_version()


def test_what_is_complete_is_left_alone(ready):
    second = set_up(ready)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


def test_other_pins_are_installed_in_the_same_environment(ready):
    tiny(ready.parent / "wheels", "2.0")
    pin(ready, "2.0")
    changed = set_up(ready)
    assert changed.returncode == 0, changed.stderr
    assert "Updating .venv: requirements.txt" in changed.stdout
    assert run_in(ready, "import tiny; print(tiny.version)") == "2.0\n"
    assert set_up(ready).stdout == ""


def test_what_the_tests_need_is_added_when_it_is_asked_for_and_stays(ready):
    assert installed(ready) == {"tiny", "large"}
    added = set_up(ready, "dev")
    assert added.returncode == 0, added.stderr
    assert "Updating .venv: requirements-dev.txt" in added.stdout
    assert installed(ready) == {"tiny", "tool", "large"}
    assert set_up(ready).stdout == set_up(ready, "dev").stdout == ""

    (ready / "requirements-dev.txt").write_text("")  # what is no longer pinned goes
    assert "requirements-dev.txt" in set_up(ready).stdout
    assert installed(ready) == {"tiny", "large"}


def test_the_first_labs_get_the_small_set_which_grows_in_place_and_stays_large(tree):
    def work_in(*labs: str) -> subprocess.CompletedProcess:
        return set_up(tree, "lab", *labs, WARPLAB_REQUIREMENTS="cpu")

    first = work_in()
    assert first.returncode == 0, first.stderr
    assert "requirements-small.txt" in first.stdout
    assert "for another, such as 07: make lab LABS=07" in first.stdout
    assert installed(tree) == {"tiny"}
    assert not list(tree.glob(".venv/lib/*/site-packages/__pycache__/tiny.*.pyc"))  # Python compiles what it imports
    assert work_in("00", "6", "10").stdout == ""

    more = work_in("06", "07")
    assert more.returncode == 0, more.stderr
    assert "Updating .venv: requirements.txt" in more.stdout
    assert "GB to download" in more.stdout
    assert installed(tree) == {"tiny", "large"}
    assert list(tree.glob(".venv/lib/*/site-packages/__pycache__/tiny.*.pyc"))
    assert work_in().stdout == ""
    assert installed(tree) == {"tiny", "large"}


def test_a_folder_that_was_moved_is_set_up_anew(ready):
    moved = ready.rename(ready.with_name("elsewhere"))
    assert "the folder was moved" in set_up(moved).stdout
    assert run_in(moved, "import lesson; print(lesson.__file__)") == f"{moved}/lesson.py\n"


def test_what_uv_says_when_it_fails_is_shown_and_kept(ready):
    pin(ready, "3.0")
    failed = set_up(ready)
    assert failed.returncode == 1
    assert "error: uv failed with status 1; its own words are above, and in .venv/setup.log" in failed.stderr
    for said in (failed.stdout, (ready / ".venv" / "setup.log").read_text()):
        assert "tiny==3.0" in said
    assert stamp_of(ready) == {}


@pytest.fixture
def silent_index():
    """(address of an index that has nothing, an event). Asked for tiny, it sets the event and never answers."""
    asked, ended = threading.Event(), threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if "tiny" in self.path:
                asked.set()
                ended.wait()
            else:
                self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/simple/", asked
        ended.set()
        server.shutdown()
        thread.join()


def test_a_set_up_interrupted_while_uv_works_is_redone_from_the_start(ready, silent_index):
    address, asked = silent_index
    pin(ready, "2.0")
    process = set_up_process(ready, PIP_NO_INDEX="0", PIP_INDEX_URL=address)
    while not asked.wait(0.1):
        assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)  # Ctrl+C reaches the whole group, too
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert errors.endswith("Interrupted. The next `make` starts the set-up anew; downloads are kept.\n")
    assert stamp_of(ready) == {}

    tiny(ready.parent / "wheels", "2.0")
    again = set_up(ready)
    assert "an earlier set-up was not finished" in again.stdout
    assert again.returncode == 0, again.stderr
    assert run_in(ready, "import tiny; print(tiny.version)") == "2.0\n"


# An index at which nothing listens.
NOWHERE = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}


def test_no_network_for_pip_which_fetches_uv(tree):
    process = set_up(tree, PIP_FIND_LINKS="", **NOWHERE)
    assert process.returncode == 1
    assert f"error: pip could not fetch uv {UV} from its package index" in process.stderr
    assert f"No matching distribution found for uv=={UV}" in process.stdout  # pip's own words


def test_no_network_for_uv(ready):
    pin(ready, "2.0")
    process = set_up(ready, **NOWHERE)
    assert process.returncode == 1
    assert "error: uv could not reach its package index" in process.stderr
    assert "Connection refused" in process.stdout  # uv's own words


def test_packages_come_from_the_indexes_of_pips_configuration(ready):
    """An extra index, which uv asks first, has only an older version; it does not hide the mirror's."""
    for name, version in (("mirror", "2.0"), ("second", "1.5")):
        folder = ready.parent / name / "tiny"
        folder.mkdir(parents=True)
        tiny(folder, version)
        file = f"tiny-{version}-py3-none-any.whl"
        (folder / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{file}">{file}</a></body></html>')
    index, extra = ((ready.parent / name).as_uri() for name in ("mirror", "second"))
    (ready.parent / "pip.conf").write_text(f"[global]\nindex-url = {index}\nextra-index-url = {extra}\n")
    pin(ready, "2.0")
    process = set_up(ready, PIP_NO_INDEX="0", PIP_CONFIG_FILE=str(ready.parent / "pip.conf"))
    assert process.returncode == 0, process.stdout + process.stderr
    assert run_in(ready, "import tiny; print(tiny.version)") == "2.0\n"


def test_an_environment_made_by_hand_is_left_alone(tree):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tree / ".venv"], check=True)
    before = sorted((tree / ".venv").rglob("*"))
    refused = set_up(tree)
    assert refused.returncode == 1
    assert "error: .venv was not made by `make`; remove it or move it away (rm -r .venv), then repeat" in refused.stderr
    assert sorted((tree / ".venv").rglob("*")) == before


def test_two_at_once_take_turns(ready):
    pin(ready, "3.0")
    with open(ready / "pyproject.toml") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = set_up_process(ready)
        assert process.stdout.readline() == "Another `make` is setting up .venv; waiting for it.\n"
        assert "pins" in stamp_of(ready)  # nothing was touched
        pin(ready, "1.0")  # the other one installed them
    output, _ = process.communicate()
    assert (process.returncode, output) == (0, "")
