"""`python -m warplab doctor` reports what this machine has, what suits the course, and what to do if something is off.

Needs only Python itself to start; everything else is tried and reported. A *problem* keeps the course from being
used (exit code 1); a *note* does not, such as a GPU that is too old, for then the simulator runs.
"""

import argparse
import contextlib
import importlib.metadata
import io
import os
import platform
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from warpcourse.paths import COURSE
from warplab.hardware import backend
from warplab.hardware import driver as nvidia

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)  # requires-python in warpcourse/pyproject.toml
GB = 10**9

# Without these no lesson of labs 00 to 06 runs. TensorFlow, which three labs need, is one of two packages; see
# `package_findings`.
ESSENTIAL = (
    "jupyterlab",
    "nbgrader",
    "ipywidgets",
    "matplotlib",
    "numpy",
    "numba",
    "numba-cuda",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "nvidia-nvvm",
    "nvidia-cuda-runtime",
    "nvidia-cuda-crt",
    "nvidia-cuda-cccl",
)
# Both packages of a pair install their files into the same directory.
RIVALS = (("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"), ("nvidia-nccl-cu12", "nvidia-nccl-cu13"))
RENEW = "rm -r .venv && make setup"
SET_UP = "Run `make setup`, then the course's own Python: .venv/bin/python."

CUDA_SOURCE = """extern "C" __global__ void add_one(float* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}
"""


@dataclass(frozen=True)
class Finding:
    """One line of the report. `advice`: what to do, for a note or a problem."""

    status: str  # "ok", "note" or "problem"
    text: str
    advice: str = ""


def ok(text: str) -> Finding:
    return Finding("ok", text)


def note(text: str, advice: str = "") -> Finding:
    return Finding("note", text, advice)


def problem(text: str, advice: str = "") -> Finding:
    return Finding("problem", text, advice)


def main(arguments: list[str]) -> int:
    """Print the report. Return 0 if the course can be used on this machine, else 1."""
    argparse.ArgumentParser(prog="python -m warplab doctor", description=__doc__).parse_args(arguments)
    found: list[Finding] = []
    for title, section in sections():
        print(title)
        for finding in attempt(section):
            print(f"  {finding.status:<8} {finding.text}")
            if finding.advice:
                print(f"           -> {finding.advice}")
            sys.stdout.flush()
            found.append(finding)
    problems = sum(finding.status == "problem" for finding in found)
    if problems:
        print(f"\n{problems} problem{'s' if problems > 1 else ''}: the course cannot be used like this.")
        return 1
    print("\nThe course can be used on this machine.")
    return 0


def sections() -> list[tuple[str, Callable[[], Iterator[Finding]]]]:
    installed = installed_packages()
    return [
        ("Machine", machine_findings),
        ("GPU", lambda: gpu_findings(nvidia.query())),
        ("Python", lambda: python_findings(sys.version_info[:3], sys.prefix)),
        (
            "Packages",
            lambda: package_findings(installed, pinned_packages(pinned_set(installed)), pinned_set(installed)),
        ),
        ("Compilers", lambda: compiler_findings(nvidia.query())),
        ("Backend", backend_findings),
        ("Grading a class (instructors only)", grading_findings),
    ]


def attempt(section: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield a section's findings; an error in it becomes a finding."""
    try:
        yield from section()
    except Exception as error:  # the report goes on, whatever is broken
        yield problem(f"cannot be examined: {describe(error)}")


def describe(error: BaseException) -> str:
    first_line = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__


def missing_package(error: BaseException | None) -> str | None:
    """Return the package whose absence caused the error, which the section on packages has reported already."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name and not re.match("warp(lab|course)", error.name):
            return error.name
        error = error.__cause__
    return None


# Machine


def machine_findings() -> Iterator[Finding]:
    yield ok(f"{distribution()}, Linux {platform.release()}" if sys.platform == "linux" else platform.platform())
    if sys.platform != "linux":
        yield problem("the packages of CUDA's compilers are for Linux", "On Windows use WSL 2.")
    yield ok(f"{processor()}, {len(os.sched_getaffinity(0))} cores, {memory_bytes() / 2**30:.1f} GiB of memory")
    yield ok(f"{shutil.disk_usage(COURSE).free / GB:.1f} GB free on the disk of this folder")


def distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return "unknown distribution"


def processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", read("/proc/cpuinfo"), re.MULTILINE)
    return f"{found.group(1) if found else 'unknown processor'} ({platform.machine()})"


def memory_bytes() -> int:
    """Return the machine's memory, or the container's limit if that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = read("/sys/fs/cgroup/memory.max").strip()
    return min(total, int(limit)) if limit.isdigit() else total


def read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


# GPU


def gpu_findings(driver: nvidia.Driver) -> Iterator[Finding]:
    if driver.cuda:
        yield ok("driver {}, supports CUDA {}.{}".format(driver.version or "of unknown version", *driver.cuda))
    for gpu in driver.gpus:
        capability = "{}.{}".format(*gpu.compute_capability)
        yield ok(f"{gpu.name}, {gpu.memory_bytes / 2**30:.1f} GiB, compute capability {capability}")
    why, advice = backend.device_problem(driver)
    if why:
        text = f"{why}; the simulator runs the kernels"
        yield note(text, advice) if advice else ok(text)


# Python and packages


def python_findings(version: tuple[int, int, int], prefix: str) -> Iterator[Finding]:
    number = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        yield problem(f"Python {number} is too old: 3.11 or newer needed", "PYTHON=python3.12 make setup")
    elif version[:2] > NEWEST_PYTHON:
        yield problem(f"Python {number} is too new: nobody has tried it", "PYTHON=python3.12 make setup")
    else:
        yield ok(f"Python {number}")
    if (COURSE / ".venv").exists() and Path(prefix).resolve() != (COURSE / ".venv").resolve():
        yield note("this is not the course's own Python", "Use .venv/bin/python -m warplab doctor, or make doctor.")


def installed_packages() -> dict[str, str]:
    """Return the version of each installed distribution, by normalised name."""
    return {
        normalised(distribution.name): distribution.version
        for distribution in importlib.metadata.distributions()
        if distribution.name
    }


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned_set(installed: dict[str, str]) -> str:
    """Return the pinned set that is installed, told by packages that the others lack."""
    larger = "requirements-gpu.txt" if "nvmath-python" in installed else "requirements.txt"
    return larger if {"onnx", "tensorflow", "tensorflow-cpu"} & installed.keys() else "requirements-small.txt"


def pinned_packages(file: str) -> dict[str, str]:
    """Return the version that the pinned set asks for on this machine, by name."""
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)(?: ; (.+))?", (COURSE / file).read_text(), re.MULTILINE)
    return {normalised(name): version for name, version, marker in pins if not marker or holds(marker)}


def holds(marker: str) -> bool:
    """Return whether a marker of a pin, such as `python_full_version < '3.14'`, is true here."""
    try:
        from packaging.markers import Marker
    except ImportError:  # nothing is installed, which is reported
        return True
    return Marker(marker).evaluate()


def package_findings(installed: dict[str, str], pinned: dict[str, str], file: str) -> Iterator[Finding]:
    either = ("tensorflow", "tensorflow-cpu")
    tensorflow = [name for name in either if name in installed]
    missing = [name for name in ESSENTIAL if name not in installed]
    if not tensorflow:
        missing += [name for name in either if name in pinned]
    rivals = [name for pair in RIVALS for name in pair]
    present = [name for name in [*ESSENTIAL, *tensorflow, *rivals] if name in installed]
    as_pinned = [f"{name} {installed[name]}" for name in present if installed[name] == pinned.get(name)]
    for start in range(0, len(as_pinned), 4):
        yield ok(", ".join(as_pinned[start : start + 4]))
    for name in present:
        if installed[name] != pinned.get(name):
            held = f"{file} pins {pinned[name]}" if name in pinned else f"{file} does not have it"
            yield note(f"{name} {installed[name]}: {held}", f"Not tested so; `{RENEW}` installs what is pinned.")
    if missing:
        yield problem(f"missing: {', '.join(missing)}", SET_UP)
    for pair in RIVALS:
        if all(name in installed for name in pair):
            yield problem(f"{pair[0]} and {pair[1]} are both installed; they overwrite each other's files", RENEW)
    if not tensorflow and not missing:
        from warpcourse.bench.lab import labs

        if file == "requirements-small.txt":
            beyond = [f"{lab.number:02}" for lab in labs() if lab.needs]
            yield ok(f"the small set, without what labs {', '.join(beyond)} need: make lab LABS={beyond[0]} adds it")
        else:
            without = ", ".join(f"{lab.number:02}" for lab in labs() if lab.tensorflow)
            yield note(
                f"TensorFlow has no package for Python {platform.python_version()}: labs {without} are left out",
                "For them: PYTHON=python3.13 make setup",
            )
    if len(tensorflow) == 2:
        yield problem("tensorflow and tensorflow-cpu overwrite each other's files", RENEW)
    met = sum(installed.get(name) == version for name, version in pinned.items())
    if not missing:
        text = f"{met} of {len(pinned)} packages are as {file} pins them"
        yield ok(text) if met == len(pinned) else note(text, f"`{RENEW}` installs the pins.")


# Compilers


def compiler_findings(driver: nvidia.Driver) -> Iterator[Finding]:
    yield from compiled("NVRTC (CUDA C++)", compile_cuda, driver)
    yield from compiled("NVVM (Numba)", compile_numba, driver)


def compile_cuda() -> str:
    from warplab.compile import nvrtc

    return nvrtc.compile_cuda(CUDA_SOURCE)


def compile_numba() -> str:
    import numba
    from numba import cuda

    from warplab.compile import numba_compiler

    return numba_compiler.compile_numba(add_one_kernel(cuda), (numba.float32[:],))[0]


def compiled(compiler: str, compile_kernel: Callable[[], str], driver: nvidia.Driver) -> Iterator[Finding]:
    """Report whether the compiler works and the driver takes its PTX."""
    try:
        ptx = compile_kernel()
    except Exception as error:
        if isinstance(error, backend.BackendError):
            yield note(f"{compiler} was not tried: see Backend")
        elif package := missing_package(error):
            yield note(f"{compiler} was not tried: no package {package}")
        else:
            yield problem(f"{compiler} does not compile a tiny kernel: {describe(error)}", SET_UP)
        return
    release = re.search(r"release (\d+\.\d+), V([\d.]+)", ptx)
    major, minor = re.findall(r"^\.version (\d+)\.(\d+)", ptx, re.MULTILINE)[0]
    text = f"{compiler} of CUDA {release.group(1) if release else '?'} compiles, to PTX {major}.{minor}"
    newest = newest_ptx(driver.cuda)
    if newest and driver.cuda and (int(major), int(minor)) > newest:
        yield note(
            text + "; the driver, for CUDA {}.{}, takes PTX up to {}.{}".format(*driver.cuda, *newest),
            f"`{RENEW}` installs the pinned compilers; or install a newer driver. The simulator takes any PTX.",
        )
    else:
        yield ok(text)


def newest_ptx(cuda: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the newest PTX that a driver for this CUDA loads; None where that is unknown or does not matter.

    PTX ISA documentation, "Release history": CUDA 13.0 brought PTX 9.0, 13.1 PTX 9.1, and so on.
    """
    if cuda is None or cuda[0] != 13:
        return None
    return 9, cuda[1]


# Backend


def backend_findings() -> Iterator[Finding]:
    try:
        name, reason = backend.name(), backend.reason()
    except backend.BackendError as error:
        yield problem(str(error))
        return
    yield ok(f"kernels run on the {'GPU' if name == 'gpu' else 'simulator'}: {reason}")
    if name == "simulator" and not backend.device_problem(nvidia.query())[0]:
        yield note("a GPU is here but is not used", backend.library_problem()[1] or "Unset WARPLAB_BACKEND to use it.")
    yield from kernel_ran("Numba", run_numba_kernel)
    yield from kernel_ran("CUDA C++", run_cuda_kernel)


def kernel_ran(language: str, run: Callable[[], int]) -> Iterator[Finding]:
    """Report whether a kernel runs; `run` launches one and returns the number of wrong elements."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Numba warns of grids too small to fill a GPU
            wrong = run()
    except Exception as error:
        if package := missing_package(error):
            yield note(f"a kernel in {language} was not tried: no package {package}")
        else:
            yield problem(f"a kernel in {language} does not run: {describe(error)}", SET_UP)
    else:
        right = f"a kernel in {language} ran and its results are right"
        yield ok(right) if wrong == 0 else problem(f"a kernel in {language} ran and {wrong} results are wrong")


def add_one_kernel(cuda):
    """Return the tiny kernel, written for `numba.cuda` or its stand-in."""

    def add_one(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += 1

    return add_one


def run_numba_kernel() -> int:
    import numpy as np

    from warplab.dropin import choice

    cuda = choice.load("cuda")

    x = cuda.to_device(np.arange(100, dtype=np.float32))
    cuda.jit(add_one_kernel(cuda))[4, 32](x)
    return int(np.sum(x.copy_to_host() != np.arange(1, 101)))


def run_cuda_kernel() -> int:
    import numpy as np

    from warplab.dropin import choice

    cp = choice.load("cp")

    x = cp.asarray(np.arange(100, dtype=np.float32))
    kernel = cp.RawModule(code=CUDA_SOURCE).get_function("add_one")
    kernel((4,), (32,), (x, np.int32(100)))
    return int(np.sum(cp.asnumpy(x) != np.arange(1, 101)))


# Grading


def grading_findings() -> Iterator[Finding]:
    """Report what `python -m warplab grade` would run students' code in, which learners can do without."""
    if sys.platform != "linux":
        return
    from warpcourse.grading.sandbox import isolation

    found = isolation.find()
    if not isinstance(found, isolation.LimitsOnly):
        yield ok("bubblewrap works: `python -m warplab grade` runs students' code in a sandbox")
        return
    advice = "Debian, Ubuntu: sudo apt install bubblewrap; Fedora: sudo dnf install bubblewrap."
    if shutil.which("bwrap"):
        advice = "As an ordinary user it needs user namespaces, which some systems switch off; docs/instructors.md."
    yield note(
        f"{found.why}. It is the sandbox of `python -m warplab grade`, which a learner does not need; without it "
        "students' code could read and change what the instructor can",
        advice,
    )
