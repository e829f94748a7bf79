"""Prepare .venv: the pinned packages for this machine, installed once. Started by tools/bootstrap.py.

`.venv/warplab-setup.json` says what .venv holds. It is marked complete last, when every pin has been found
installed, so an interrupted set-up is redone. A complete .venv is left alone until the pins or the kind
of machine change. WARPLAB_REQUIREMENTS=cpu|gpu overrides the choice of the pinned set.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "warplab-setup.json"
LOG = VENV / "pip.log"
GB = 10**9
OLDEST_GLIBC = (2, 28)


class PinnedSet(NamedTuple):
    """A pinned set; the sizes in GB (10^9 bytes) were measured, Linux x86-64, with the pins of 2026-11."""

    file: str
    download: float
    installed: float


SETS = {
    "cpu": PinnedSet("requirements.txt", 0.9, 3.4),
    "gpu": PinnedSet("requirements-gpu.txt", 5.0, 9.9),
}

# What pip's log holds when it could not reach an index (its retry warnings name the exceptions of urllib3).
NETWORK_FAILURES = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProtocolError",
    "ProxyError",
    "SSLError",
    "Network is unreachable",
    "Temporary failure in name resolution",
)


class SetupError(Exception):
    """The set-up cannot go on; the message says what is wrong and what to do."""


def main(arguments: list[str]) -> int:
    try:
        with open(ROOT / "pyproject.toml") as lock:  # any file of the tree: two `make` at once take turns
            wait_for(lock)
            prepare(this_python="--this-python" in arguments)
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. The next `make` starts the set-up anew.", file=sys.stderr)
        return 130
    return 0


def wait_for(lock) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another `make` is setting up .venv; waiting for it.", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def prepare(this_python: bool) -> None:
    kind, why = chosen_set()
    wanted = {"set": kind, "pins": digest(SETS[kind].file), "tree": str(ROOT)}
    stamp = read_stamp()
    outdated = changed(stamp, wanted, this_python)
    if not outdated:
        return
    started = time.monotonic()
    if stamp is None and VENV.exists() and any(VENV.iterdir()):
        adopt(kind)
    else:
        check_machine(kind)
        say(f"Setting up Warp Lab in .venv ({outdated}).")
        say(f"[1/3] Python {platform.python_version()}, packages of {SETS[kind].file} ({why})")
        create_venv()
        size = SETS[kind]
        say(f"[2/3] Installing: {size.download:.1f} GB to download, {size.installed:.1f} GB on disk")
        install(kind)
    say("[3/3] Making the packages warplab and kernels importable")
    site_packages().joinpath("warplab.pth").write_text(f"{ROOT}\n")
    write_stamp({**wanted, "python": platform.python_version(), "complete": True})
    say(f"Ready after {time.monotonic() - started:.0f} s. Nothing is installed again until the pins change.")


def chosen_set() -> tuple[str, str]:
    """("cpu" or "gpu", why)."""
    forced = os.environ.get("WARPLAB_REQUIREMENTS")
    if forced:
        if forced not in SETS:
            raise SetupError(f"WARPLAB_REQUIREMENTS is {forced!r}; set it to cpu or gpu, or unset it.")
        return forced, f"WARPLAB_REQUIREMENTS={forced}"
    if has_nvidia_driver():
        return "gpu", "an NVIDIA driver is present; WARPLAB_REQUIREMENTS=cpu would take the smaller set"
    return "cpu", "no NVIDIA driver here"


def has_nvidia_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return os.path.exists("/proc/driver/nvidia/version")
    return True


def digest(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()


def read_stamp() -> dict | None:
    try:
        return json.loads(STAMP.read_text())
    except FileNotFoundError:
        return None
    except (ValueError, OSError):
        return {}


def write_stamp(content: dict) -> None:
    """Whole or not at all, also when the machine stops in between."""
    unfinished = STAMP.with_suffix(".tmp")
    unfinished.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(unfinished, STAMP)


def changed(stamp: dict | None, wanted: dict, this_python: bool) -> str:
    """Why .venv must be set up, or "" if it is complete and as wanted."""
    if stamp is None:
        return "first time"
    if not stamp.get("complete"):
        return "an earlier set-up was not finished"
    if stamp.get("tree") != wanted["tree"]:
        return "the folder was moved"
    if stamp.get("set") != wanted["set"]:
        return f"this machine needs {SETS[wanted['set']].file}"
    if stamp.get("pins") != wanted["pins"]:
        return f"{SETS[wanted['set']].file} has changed"
    if this_python and stamp.get("python") != platform.python_version():
        return f"another Python was asked for: {platform.python_version()}"
    if venv_python_version() != stamp.get("python"):
        return "the Python that .venv was made with has changed"
    return ""


def venv_python_version() -> str | None:
    try:
        command = [PYTHON, "-I", "-c", "import platform; print(platform.python_version())"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def site_packages() -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip())


def adopt(kind: str) -> None:
    """Take a .venv that somebody made by hand, if it holds every pin."""
    missing = unmet_pins(kind)
    if missing:
        raise SetupError(
            f".venv was made by hand and lacks {missing[0]} (and {len(missing) - 1} more of {SETS[kind].file}). "
            "Remove it or move it away (rm -r .venv), then repeat."
        )
    say(f"The .venv that is here holds all of {SETS[kind].file}.")


def check_machine(kind: str) -> None:
    if sys.platform != "linux":
        raise SetupError("Warp Lab runs on Linux: NVIDIA's compilers come as Linux packages. On Windows use WSL 2.")
    if kind == "cpu" and platform.machine() != "x86_64":
        raise SetupError(f"no tensorflow-cpu package for {platform.machine()}: Warp Lab needs a 64-bit x86 processor.")
    library, version = platform.libc_ver()
    if library != "glibc" or tuple(map(int, version.split(".")[:2])) < OLDEST_GLIBC:
        found = f"{library or 'another C library'} {version}".strip()
        raise SetupError(f"the packages need glibc 2.28 or newer (Debian 10, Ubuntu 20.04, RHEL 8); this is {found}.")
    check_disk(kind)


def check_disk(kind: str) -> None:
    """pip keeps a wheel in its cache and a second copy in the temporary folder until all are installed."""
    size = SETS[kind]
    reclaimed = directory_size(VENV) if VENV.exists() else 0
    needs: dict[int, list] = {}
    for folder, need in (
        (ROOT, size.installed * GB - reclaimed),
        (Path(tempfile.gettempdir()), size.download * GB),
        (pip_cache(), size.download * GB),
    ):
        place = needs.setdefault(os.stat(folder).st_dev, [folder, 0.0])
        place[1] += need
    for folder, need in needs.values():
        free = shutil.disk_usage(folder).free
        if free < need:
            raise SetupError(
                f"not enough disk: the set-up needs {need / GB:.1f} GB free on the disk of {folder}, which has "
                f"{free / GB:.1f} GB. Free some, or set TMPDIR and PIP_CACHE_DIR to folders on a larger disk."
            )


def pip_cache() -> Path:
    """The folder of pip's cache, or the nearest folder above that exists."""
    fallback = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("PIP_CACHE_DIR") or Path(fallback) / "pip").absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


def directory_size(folder: Path) -> int:
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*"))


def create_venv() -> None:
    if VENV.exists():
        shutil.rmtree(VENV)
    VENV.mkdir()
    write_stamp({"complete": False})
    try:
        venv.create(VENV, with_pip=True, symlinks=True, prompt="warplab")
    except subprocess.CalledProcessError as error:
        lines = (error.output or b"").decode(errors="replace").strip().splitlines()
        raise SetupError(f"Python could not create .venv: {lines[-1] if lines else error}") from None


def install(kind: str) -> None:
    # The pins are the whole closure, so pip need not resolve: --no-deps. Wheels only: no compiler is needed.
    pip("install", "--no-deps", "--only-binary", ":all:", "--requirement", SETS[kind].file)
    missing = unmet_pins(kind)
    if missing:
        raise SetupError(f"pip ended without an error, but {', '.join(missing[:5])} is not installed. Repeat.")


def pip(*arguments: str) -> None:
    """Run pip in .venv, its progress on the terminal; SetupError if it fails."""
    LOG.unlink(missing_ok=True)
    environment = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = [str(PYTHON), "-I", "-m", "pip", "--log", str(LOG), *arguments]
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if status:
        fail(status, LOG.read_text(errors="replace")[-20_000:] if LOG.exists() else "")


def fail(status: int, log: str) -> NoReturn:
    """Say why pip failed, judged by the end of its log."""
    if "No space left on device" in log or "Disk quota exceeded" in log:
        raise SetupError(
            "the disk is full. Free some space, or set TMPDIR and PIP_CACHE_DIR to folders on a larger disk; "
            "then repeat."
        )
    if any(sign in log for sign in NETWORK_FAILURES):
        raise SetupError(
            "pip could not reach its package index (its own words are above). Check the network, and behind "
            "a proxy HTTPS_PROXY; then repeat."
        )
    raise SetupError(f"pip failed with status {status}; its last lines are above, its whole log is in .venv/pip.log.")


def unmet_pins(kind: str) -> list[str]:
    """Pins of the set that the packages in .venv do not meet."""
    code = (
        "import json, re; from importlib.metadata import distributions; "
        "print(json.dumps({re.sub('[-_.]+', '-', d.name).lower(): d.version for d in distributions()}))"
    )
    output = subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    installed = json.loads(output)
    pins = (line.strip() for line in (ROOT / SETS[kind].file).read_text().splitlines())
    pairs = (line.split("==") for line in pins if line and not line.startswith("#"))
    return [f"{name}=={version}" for name, version in pairs if installed.get(name) != version]


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
