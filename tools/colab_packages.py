"""Add to a notebook service's Python what labs 00 to 06 need and it lacks, and replace nothing that it has.

    python tools/colab_packages.py        in the first cell that tools/colab_notebooks.py puts into a lesson

Replacing what the running kernel has loaded, such as NumPy or IPython, breaks it, so packages that are there stay at
their version. docs/platforms.md says with which versions that was tried.
"""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Pinned packages that no lesson imports: pages, servers, the set-up; and MPI, for lab 10.
NOT_NEEDED = re.compile(r"(jupyterlab|jupyter-(builder|lsp|server)|notebook|uv|mpich|mpi4py|appnope|pywin)")


def main() -> int:
    pins = re.findall(r"^([\w.-]+)==(\S+)( ;.*)?$", (ROOT / "requirements-small.txt").read_text(), re.MULTILINE)
    lacking = [f"{name}=={version}{mark}" for name, version, mark in pins if not _there(name)]
    wanted = [pin for pin in lacking if not NOT_NEEDED.match(pin)]
    print(f"Installing {len(wanted)} packages; those that are here stay as they are.")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", *wanted]
    return subprocess.run(command).returncode if wanted else 0


def _there(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
