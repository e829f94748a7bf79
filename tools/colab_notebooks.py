"""`make colab URL=...`: the lessons of the small set for Colab, each with a first cell that brings the course along.

They go to _build/colab, to be pushed to a branch `colab` of the public repository. Badges that open them are printed.
"""

import json
import re
import sys
from pathlib import Path

from tools.environment import SMALL_LABS
from warpcourse.paths import COURSE

BRANCH = "colab"
WITHOUT = {"10"}  # its lessons need MPI
CELL = """# On Colab, once per session: the course, and the packages that it needs beside Colab's.
![ -d /content/warplab ] || git clone -q --depth 1 {url} /content/warplab
!python /content/warplab/tools/colab_packages.py
%cd -q /content/warplab/notebooks
import importlib.metadata, site, sys
sys.path.insert(0, "/content/warplab")
site.addsitedir(importlib.metadata.distribution("numba-cuda").locate_file(""))  # its hook, as at a start"""
BADGE = (
    "[![Open {name} in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    "(https://colab.research.google.com/github/{repository}/blob/{branch}/{name}.ipynb)"
)


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
            print(BADGE.format(name=path.stem, repository=repository[1], branch=BRANCH))
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
