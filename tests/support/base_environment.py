"""The wheel of warplab in an environment outside the checkout, with what `pip install warplab` brings and no more."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from warpcourse.paths import COURSE

UV = str(Path(sys.executable).parent / "uv")


def build(folder: Path, project: Path = COURSE) -> Path:
    """Build a wheel as `uv build` does, but with the back end of this environment and no network. Return its path."""
    command = [UV, "build", "--wheel", "--offline", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([*command, "--out-dir", folder, project], check=True, capture_output=True, text=True)
    (wheel,) = folder.glob(f"{tomllib.loads((project / 'pyproject.toml').read_text())['project']['name']}-*.whl")
    return wheel


def closure(requirements: list[Requirement]) -> dict[str, metadata.Distribution]:
    """Return the installed distributions that these need, and what those need, by name."""
    found: dict[str, metadata.Distribution] = {}
    asked: set[tuple[str, str]] = set()
    open_ = [(requirement, "") for requirement in requirements]
    while open_:
        requirement, extra = open_.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        found[name] = metadata.distribution(name)
        for wanted in {"", *requirement.extras}:
            if (name, wanted) not in asked:
                asked.add((name, wanted))
                open_ += [(Requirement(text), wanted) for text in found[name].requires or ()]
    return found


def base() -> dict[str, metadata.Distribution]:
    """Return the distributions that `pip install warplab` brings, as they are installed here."""
    project = tomllib.loads((COURSE / "pyproject.toml").read_text())["project"]
    return closure([Requirement(text) for text in project["dependencies"]])


def bytes_of(distributions: dict[str, metadata.Distribution]) -> dict[str, int]:
    """Return the bytes of each distribution's files, without what Python compiles of them."""
    paths = {
        name: [file.locate() for file in one.files or () if file.suffix != ".pyc"]
        for name, one in distributions.items()
    }
    return {name: sum(os.stat(path).st_size for path in files if path.exists()) for name, files in paths.items()}


def environment(folder: Path, wheel: Path) -> Path:
    """Make a virtual environment of links to the base's files, and install the wheel in it. Return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3.*/site-packages")
    for one in base().values():
        for file in one.files or ():
            if ".." not in file.parts:
                link = site / file
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.exists():
                    link.symlink_to(file.locate())
    python = folder / "bin" / "python"
    command = [UV, "pip", "install", "--offline", "--no-index", "--no-deps", "--quiet", "--python", python, wheel]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return python
