"""`make colab URL=...`: the small set's lessons for Colab and Binder, with a first cell that brings the course along.

They go to _build/colab, to be pushed to a branch `colab` of the public repository. Badges that open them are printed.
Binder's image, which it passes on, holds nothing of NVIDIA's: that comes with the first cell, to whoever runs it.
"""

import json
import re
import sys
from pathlib import Path

from tools.environment import SETS, SMALL_LABS
from warpcourse.paths import COURSE

BRANCH = "colab"
WITHOUT = {"10"}  # its lessons need MPI
CELL = """# On Colab or Binder, once per session: the course, and the packages that it needs beside what is there.
![ -d ~/warplab ] || git clone -q --depth 1 {url} ~/warplab
!python ~/warplab/tools/colab_packages.py
%cd -q ~/warplab/notebooks
import importlib.metadata, os, site, sys
sys.path.insert(0, os.path.dirname(os.getcwd()))
site.addsitedir(importlib.metadata.distribution("numba-cuda").locate_file(""))  # its hook, as at a start"""
BADGES = (
    "[![Open {name} in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    "(https://colab.research.google.com/github/{repository}/blob/{branch}/{name}.ipynb) "
    "[![Open {name} in Binder](https://mybinder.org/badge_logo.svg)]"
    "(https://mybinder.org/v2/gh/{repository}/{branch}?urlpath=lab/tree/{name}.ipynb)"
)
# What Binder's image has beside JupyterLab; pip adds what they need.
IN_IMAGE = ("llvmlite", "matplotlib", "ml-dtypes", "numba", "numpy", "scikit-learn", "scipy")


def main(arguments: list[str]) -> int:
    url = arguments[0].removesuffix("/").removesuffix(".git") if arguments else ""
    repository = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", url)
    if not repository:
        print("error: make colab URL=https://github.com/..., the public repository on GitHub", file=sys.stderr)
        return 2
    folder = COURSE / "_build" / BRANCH
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((COURSE / "notebooks").glob("*.ipynb")):
        if path.name[:2] in SMALL_LABS - WITHOUT:
            (folder / path.name).write_text(with_first_cell(path, url), encoding="utf-8")
            print(BADGES.format(name=path.stem, repository=repository[1], branch=BRANCH))
    (folder / ".binder").mkdir(exist_ok=True)
    (folder / ".binder" / "runtime.txt").write_text("python-3.12\n")
    pins = re.findall(rf"^(?:{'|'.join(IN_IMAGE)})==.*\n", (COURSE / SETS["small"].file).read_text(), re.MULTILINE)
    (folder / ".binder" / "requirements.txt").write_text("".join(pins))
    return 0


def with_first_cell(path: Path, url: str) -> str:
    """Return a lesson in JSON, with the cell before all others."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    source = CELL.format(url=url).splitlines(keepends=True)
    cell: dict = {
        "cell_type": "code",
        "execution_count": None,
        "id": "colab",
        "metadata": {},
        "outputs": [],
        "source": source,
    }
    notebook["cells"].insert(0, cell)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
