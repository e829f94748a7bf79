"""Prepare .venv: the pinned packages for this machine, installed once by uv. Started by tools/bootstrap.py.

The arguments name what is wanted beside the learner's set: `cluster`, `dev` (requirements-cluster.txt and so on).
After `lab` stand the numbers of labs: without a GPU the small set does for 00 to 06, 10 and 13. What was once asked for
stays. `.venv/warplab-setup.json` tells what .venv holds. It is written last, so an interrupted set-up is redone from
the start; a complete one is left alone until the pins or the kind of machine change.
WARPLAB_REQUIREMENTS=small|cpu|gpu overrides the choice of the pinned set.
"""

import ctypes
import fcntl
import hashlib
import itertools
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Container, Iterable
from pathlib import Path
from typing import NamedTuple

from tools import bootstrap, run_uv

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "warplab-setup.json"
LOG = VENV / "setup.log"
GB = 10**9
OLDEST_GLIBC = (2, 28)
MACHINES = ("x86_64", "aarch64")


class PinnedSet(NamedTuple):
    """A learner's pinned set; the sizes in GB (10^9 bytes) were measured, Linux x86-64, with the pins of 2026-11."""

    file: str
    download: float
    installed: float


SETS = {
    "small": PinnedSet("requirements-small.txt", 0.5, 1.5),
    "cpu": PinnedSet("requirements.txt", 0.9, 3.4),
    "gpu": PinnedSet("requirements-gpu.txt", 5.0, 9.9),
}
SMALL_LABS = {"00", "01", "02", "03", "04", "05", "06", "10", "13"}
# What the small set does without, 263 MB that nothing here loads: NVRTC a second time, and nvcc but for ptxas.
UNUSED = {
    "nvidia-cuda-nvrtc": ["nvidia/cu13/lib/libnvrtc.alt.so.13"],
    "nvidia-nvvm": ["nvidia/cu13/nvvm/bin/cicc"],
    "nvidia-cuda-nvcc": [f"nvidia/cu13/bin/{name}" for name in ("cudafe++", "nvcc", "nvlink")],
}

# What uv says when it cannot reach an index (refused, no such host, no proxy), or when a download breaks off.
NETWORK_FAILURES = ("error sending request", "request or response body error", "network timeout")


class SetupError(Exception):
    """The set-up cannot go on; the message says what is wrong and what to do."""


def main(arguments: list[str]) -> int:
    this_python = "--this-python" in arguments
    names = [name for name in arguments if name != "--this-python"]
    labs = names[names.index("lab") + 1 :] if "lab" in names else None
    layers = [f"requirements-{name}.txt" for name in (names if labs is None else names[: names.index("lab")])]
    try:
        with open(ROOT / "pyproject.toml") as lock:  # any file of the tree: two `make` at once take turns
            wait_for(lock)
            prepare(layers, this_python, labs)
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:  # such as a full disk, a folder that cannot be written
        print(f"error: {error}. Mend that, then repeat.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. The next `make` starts the set-up anew; downloads are kept.", file=sys.stderr)
        return 130
    return 0


def wait_for(lock) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("Another `make` is setting up .venv; waiting for it.")
        fcntl.flock(lock, fcntl.LOCK_EX)


def prepare(layers: list[str], this_python: bool, labs: list[str] | None = None) -> None:
    """Make .venv hold what `labs` need, or all labs, and the layers."""
    stamp = read_stamp()
    installed = stamp.get("pins", {}) if stamp else {}
    kind, why = chosen_set(labs, installed)
    kept = {name for name in installed if (ROOT / name).exists()} - {one.file for one in SETS.values()}
    files = [SETS[kind].file, *sorted(kept.union(layers))]
    pins = {name: digest(name) for name in files}
    anew = why_anew(stamp, this_python)
    if not anew and pins == installed:
        return
    started = time.monotonic()
    if anew:
        check_machine(kind)
        say(f"Setting up Warp Lab in .venv ({anew}): {SETS[kind].file}, as {why}")
        if sys.version_info[:2] > bootstrap.NEWEST_FOR_TENSORFLOW:
            python = "Python {}.{}".format(*sys.version_info[:2])
            say(f"TensorFlow has no package for {python}: labs that need it are left out (make doctor names them).")
        create_venv(stamp)
    else:
        changed = " and ".join(name for name in files if pins[name] != installed.get(name))
        say(f"Updating .venv: {changed or 'what is no longer needed'}")
        write_stamp({})
    install_uv(SETS[kind].file)
    if SETS[kind].file not in installed:
        check_disk(kind)
        say(f"Installing: {SETS[kind].download:.1f} GB to download, {SETS[kind].installed:.1f} GB on disk")
    (site_packages,) = VENV.glob("lib/python3.*/site-packages")
    grown = SETS["small"].file in installed and kind != "small"
    install(files, compiled=kind != "small", anew=UNUSED if grown else ())
    if kind == "small":
        for name in itertools.chain(*UNUSED.values()):
            (site_packages / name).unlink(missing_ok=True)
        say("Labs 00 to 06, 10 and 13 are ready to run; for another, such as 07: make lab LABS=07")
    (site_packages / "warplab.pth").write_text(f"{ROOT}\n")  # makes warplab and kernels importable
    python = platform.python_version() if anew or stamp is None else stamp["python"]
    write_stamp({"pins": pins, "tree": str(ROOT), "python": python})
    say(f"Ready after {time.monotonic() - started:.0f} s. Nothing is installed again until the pins change.")


def chosen_set(labs: list[str] | None = None, installed: Container[str] = ()) -> tuple[str, str]:
    """Return (a key of `SETS`, why). `labs`: those that will be worked in, None for all; `installed`: pinned files."""
    forced = os.environ.get("WARPLAB_REQUIREMENTS")
    if forced and forced not in SETS:
        raise SetupError(f"WARPLAB_REQUIREMENTS is {forced!r}; set it to small, cpu or gpu, or unset it.")
    there = {path.name[:2] for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    if unknown := {f"{lab:0>2}" for lab in labs or ()} - there - {"all"}:
        raise SetupError(
            f'LABS has {" ".join(sorted(unknown))}, which is no lab. Write LABS=07, LABS="07 09" or LABS=all.'
        )
    if forced and forced != "cpu":
        return forced, f"WARPLAB_REQUIREMENTS={forced}"
    if not forced and has_nvidia_driver():
        return "gpu", "an NVIDIA driver is present (WARPLAB_REQUIREMENTS=cpu would take the smaller set)"
    why = f"WARPLAB_REQUIREMENTS={forced}" if forced else "there is no NVIDIA driver"
    if labs is None or SETS["cpu"].file in installed or not {f"{lab:0>2}" for lab in labs} <= SMALL_LABS:
        return "cpu", why
    return "small", f"{why} and labs 00 to 06, 10 and 13 need no more"


def has_nvidia_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return os.path.exists("/proc/driver/nvidia/version")
    return True


def digest(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()


def read_stamp() -> dict | None:
    """Return what .venv says of itself: {} if it is unfinished, None if `make` did not create it."""
    try:
        stamp = json.loads(STAMP.read_text())
    except FileNotFoundError:
        return None
    except (ValueError, OSError):
        return {}
    return stamp if isinstance(stamp.get("pins"), dict) else {}  # older versions of the course wrote a string


def write_stamp(content: dict) -> None:
    STAMP.write_text(json.dumps(content, indent=1) + "\n")  # half of it is no JSON, which reads as unfinished


def why_anew(stamp: dict | None, this_python: bool) -> str:
    """Return why .venv must be made from the start, or "" if it can stay."""
    if stamp is None:
        return "first time"
    if not stamp:
        return "an earlier set-up was not finished, or is of an older version of the course"
    if stamp.get("tree") != str(ROOT):
        return "the folder was moved"
    if this_python and stamp["python"] != platform.python_version():
        return f"another Python was asked for: {platform.python_version()}"
    return "the Python that .venv was made with has changed" if venv_python_version() != stamp["python"] else ""


def venv_python_version() -> str | None:
    try:
        return output_of(PYTHON, "-I", "-c", "import platform; print(platform.python_version())")
    except (OSError, subprocess.CalledProcessError):
        return None


def output_of(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def check_machine(kind: str) -> None:
    if sys.platform != "linux":
        raise SetupError("Warp Lab runs on Linux: NVIDIA's compilers come as Linux packages. On Windows use WSL 2.")
    if platform.machine() not in MACHINES:
        raise SetupError(f"no packages for {platform.machine()}: Warp Lab needs a 64-bit processor, x86 or ARM.")
    library, version = platform.libc_ver()
    if library != "glibc" or tuple(map(int, version.split(".")[:2])) < OLDEST_GLIBC:
        found = f"{library or 'another C library'} {version}".strip()
        raise SetupError(f"the packages need glibc 2.28 or newer (Debian 10, Ubuntu 20.04, RHEL 8); this is {found}.")


def check_disk(kind: str) -> None:
    """Check that the set fits: uv unpacks it into its cache and links it from there, or copies to another disk."""
    cache = uv_cache()
    for folder in {os.stat(place).st_dev: place for place in (cache, ROOT)}.values():
        need, free = SETS[kind].installed, shutil.disk_usage(folder).free / GB
        if free < need:
            raise SetupError(
                f"not enough disk: the set-up needs {need:.1f} GB free on the disk of {folder}, which has "
                f"{free:.1f} GB. Free some, or set UV_CACHE_DIR to a folder on a larger disk if this is uv's cache; "
                "then repeat."
            )


def uv_cache() -> Path:
    """Return uv's cache folder, or the nearest folder above it that exists."""
    command, environment = run_uv.uv("cache", "dir")
    folder = Path(output_of(*command, environment=environment)).absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


def create_venv(stamp: dict | None) -> None:
    """Make an empty .venv with pip in it. One that `make` did not create is not overwritten."""
    if stamp is None and VENV.exists() and any(VENV.iterdir()):
        raise SetupError(".venv was not made by `make`; remove it or move it away (rm -r .venv), then repeat.")
    VENV.mkdir(exist_ok=True)
    write_stamp({})  # before the rest goes: whatever an interrupt leaves is known as ours
    for path in VENV.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != STAMP:
            path.unlink()
    try:
        venv.create(VENV, with_pip=True, symlinks=True, prompt="warplab")
    except subprocess.CalledProcessError as error:
        lines = (error.output or b"").decode(errors="replace").strip().splitlines()
        raise SetupError(f"Python could not create .venv: {lines[-1] if lines else error}") from None


def install_uv(file: str) -> None:
    """Let pip fetch the uv that the pinned set names, unless .venv has it."""
    (wanted,) = re.findall(r"^uv==(\S+)$", (ROOT / file).read_text(), re.MULTILINE)
    try:
        if output_of(VENV / "bin" / "uv", "--version").split()[1] == wanted:
            return
    except (OSError, subprocess.CalledProcessError):
        pass
    environment = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [str(PYTHON), "-I", "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", f"uv=={wanted}"]
    if run(pip, environment):
        explain_full_disk()
        raise SetupError(
            f"pip could not fetch uv {wanted} from its package index (its own words are above). Check the network, and "
            "behind a proxy HTTPS_PROXY; then repeat."
        )


def install(files: list[str], compiled: bool, anew: Iterable[str]) -> None:
    """Make .venv hold these pinned files and nothing else. Wheels only: no compiler is needed.

    `compiled`: their modules at once, since the grader's sandboxes read .venv and cannot write to it; else Python does
    so when it imports one. `anew`: packages to install again.
    """
    options = ["--compile-bytecode"] * compiled + [f"--reinstall-package={name}" for name in anew]
    command, environment = run_uv.uv("pip", "sync", "--python", str(PYTHON), "--no-build", *options, *files)
    # On a busy machine the compiler may take longer than uv's limit of a minute.
    status = run(command, {"UV_COMPILE_BYTECODE_TIMEOUT": "600", **environment})
    if not status:
        return
    explain_full_disk()
    if any(sign in LOG.read_text(errors="replace") for sign in NETWORK_FAILURES):
        raise SetupError(
            "uv could not reach its package index (its own words are above). Check the network, and behind a proxy "
            "HTTPS_PROXY; then repeat. What was downloaded is kept."
        )
    raise SetupError(f"uv failed with status {status}; its own words are above, and in .venv/setup.log.")


def run(command: list[str], environment: dict[str, str]) -> int:
    """Run it, show its progress and keep its words in the log, which begins anew. Return its exit status."""
    with (
        open(LOG, "w") as log,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        for line in process.stdout or ():
            log.write(line)
            if not line.startswith((" + ", " - ", " ~ ")):  # one line per package, 170 of them
                print(line, end="", flush=True)
            if line.startswith("Installed ") and "--compile-bytecode" in command:
                say("Compiling the packages' modules ...")
    if process.returncode in (-signal.SIGINT, 128 + signal.SIGINT):  # Ctrl+C, of which this process has not heard yet
        raise KeyboardInterrupt
    return process.returncode


def explain_full_disk() -> None:
    """Raise `SetupError` if the log says that a disk is full."""
    log = LOG.read_text(errors="replace")
    if "No space left on device" in log or "Disk quota exceeded" in log:
        raise SetupError(
            "the disk is full. Free some space, or set TMPDIR and UV_CACHE_DIR to folders on a larger disk; "
            "then repeat."
        )


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
