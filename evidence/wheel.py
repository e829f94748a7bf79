"""Install the engine's wheel as its users do, without and with extras, and measure it: `make evidence PARTS=wheel`.

uv makes each environment from the package index, outside of the checkout. Written to wheel.json: sizes of the wheel and
of each environment, versions, and the processor time of imports, whose modules are compiled before. warplab/README.md
tells the sizes (tests/test_wheel_page.py), and of an extra that could not be installed that it was not. The exit code
is 1 where a goal is missed.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from evidence.machine import machine
from tests.support import base_environment
from tools import run_uv
from warpcourse.paths import COURSE

KEPT = Path(__file__).with_name("wheel.json")
EXTRAS = ("", "numba", "estimate", "notebook", "curand", "mlir", "triton", "gpu")
IMPORTS = {
    "": ("import warplab", "from warplab import cp"),
    "numba": ("from warplab import cuda", "from numba import cuda"),
}
REPEATS = 7
MB = 10**6
GOALS = {"wheel MB": 1, "base MB": 500, "import warplab": 0.3, "from warplab import cuda": 1.0}
INSTALLED = """
import importlib.metadata as metadata, json
sizes = {one.name.lower().replace("_", "-"): [one.version, sum(file.locate().stat().st_size for file in one.files or ()
                                                               if file.suffix != ".pyc")]
         for one in metadata.distributions()}
print(json.dumps(sizes))
"""
VERSIONS = (
    *("warplab", "numpy", "cuda-bindings", "nvidia-cuda-nvrtc", "numba", "numba-cuda", "numba-cuda-mlir", "triton"),
    *("scipy", "matplotlib"),
)


def main() -> int:
    """Print the table, write it, and return 1 where a goal is missed."""
    found: dict = {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "machine": machine(),
        "versions": {},
        "MB": {},
        "seconds": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        wheel = base_environment.build(Path(folder))
        found["wheel MB"] = round(wheel.stat().st_size / MB, 2)
        for extra in EXTRAS:
            try:
                python = installed(Path(folder, extra or "base"), wheel, extra)
            except subprocess.CalledProcessError as error:
                if not extra:
                    raise
                found["MB"][extra] = {"not installed": error.stderr.strip().splitlines()[-1]}
                print(f"{extra:10} could not be installed: {error.stderr}", flush=True)
                continue
            packages = json.loads(run(python, INSTALLED))
            size = sum(size for _, size in packages.values())
            found["MB"][extra or "base"] = {"packages": len(packages), "MB": round(size / MB)}
            found["versions"] |= {name: packages[name][0] for name in VERSIONS if name in packages}
            print(f"{extra or 'base':10} {len(packages):3} packages {size / MB:6.0f} MB", flush=True)
            for code in IMPORTS.get(extra, ()):
                found["seconds"][code] = round(statistics.median(seconds(python, code) for _ in range(REPEATS)), 2)
                print(f"{code:25} {found['seconds'][code]:.2f} s of processor time", flush=True)
            if not extra:
                (example,) = re.findall(r"```python\n(.*?)```", (COURSE / "warplab/README.md").read_text(), re.DOTALL)
                run(python, example)
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    reached = {"wheel MB": found["wheel MB"], "base MB": found["MB"]["base"]["MB"], **found["seconds"]}
    missed = [name for name, goal in GOALS.items() if reached[name] > goal]
    print(f"missed: {', '.join(missed)}" if missed else "all goals are reached")
    return int(bool(missed))


def installed(folder: Path, wheel: Path, extra: str) -> Path:
    """Make an environment of the wheel with an extra, from the package index. Return its Python.

    Raises CalledProcessError, with what uv said, where the extra cannot be had."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    what = f"warplab[{extra}] @ {wheel.as_uri()}" if extra else f"warplab @ {wheel.as_uri()}"
    compiled = ["--compile-bytecode"] if extra in IMPORTS else []
    command, environment = run_uv.uv("pip", "install", "--quiet", *compiled, "--python", str(python), what)
    environment = {"UV_COMPILE_BYTECODE_TIMEOUT": "600", **environment}
    subprocess.run(command, env=environment, check=True, stderr=subprocess.PIPE, text=True)
    return python


def run(python: Path, code: str) -> str:
    """Run code in an environment, away from the checkout. Return what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, "-c", code]
    return subprocess.run(command, cwd=python.parent, env=clean, check=True, capture_output=True, text=True).stdout


def seconds(python: Path, code: str) -> float:
    """Return the processor time of an import in a fresh process, without the start of Python."""
    return float(run(python, f"import time\nstart = time.process_time()\n{code}\nprint(time.process_time() - start)"))


if __name__ == "__main__":
    sys.exit(main())
