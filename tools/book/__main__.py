"""Build the book into _build/book/html: `python -m tools.book`.

python -m tools.book --base ADDRESS   files that are no page of the book become links to ADDRESS/PATH; without it
                                      (and without WARPLAB_REPOSITORY, which says the same) they stand as plain code
python -m tools.book --outside        ask all addresses outside the book, too (needs the network)
"""

import argparse
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from tools.book import links, sources
from warpcourse.paths import COURSE

BUILD = COURSE / "_build" / "book"


def main(arguments: list[str]) -> int:
    """Build the book; return 1, with what is wrong on stderr, where Sphinx warns or a link leads nowhere."""
    parser = argparse.ArgumentParser(prog="python -m tools.book", description="Build the book into _build/book/html.")
    parser.add_argument("--base", default=os.environ.get("WARPLAB_REPOSITORY", ""), metavar="ADDRESS")
    parser.add_argument("--outside", action="store_true", help="ask all addresses outside the book, too")
    options = parser.parse_args(arguments)
    os.environ["WARPLAB_BACKEND"] = "simulator"  # the front page's report, and what docstrings are of
    if importlib.util.find_spec("myst_nb") is None:
        print("error: the book needs Sphinx: run `make book`, which installs requirements-book.txt", file=sys.stderr)
        return 1
    if failed := build(BUILD, sources.pages(), options.base):
        return failed
    if options.outside:
        return _sphinx(BUILD, "linkcheck", "outside")
    print(f"The book is ready: {BUILD / 'html' / 'index.html'}")
    return 0


def build(folder: Path, paths: list[str], base: str = "", api: bool = True) -> int:
    """Build a book of these pages into `folder`/html; what `main` returns."""
    shutil.rmtree(folder, ignore_errors=True)
    sources.write(folder / "source", paths, base, api)
    if failed := _sphinx(folder, "html", "html"):
        return failed
    if dead := links.dead(folder / "html"):
        print("error: links of the book that lead nowhere:", *dead, sep="\n  ", file=sys.stderr)
        return 1
    return 0


def _sphinx(folder: Path, builder: str, target: str) -> int:
    from sphinx.cmd.build import main as sphinx

    settings = ["-q", "-W", "--keep-going", "-c", str(COURSE / "tools" / "book"), "-d", str(folder / "trees")]
    return sphinx([*settings, "-b", builder, str(folder / "source"), str(folder / target)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
