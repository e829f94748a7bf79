"""The page of lab 12 for an hour, in Chromium: used, and left by browsers that end without a word.

    python -m tests.labs.12_digits.an_hour [--minutes 60]

A panel is opened every 20 s, digits are trained every ten minutes, and a second browser comes, is ended by kill -9, and
its kernel must follow. Fails if the server wrote on its terminal, or page, policy or browser complained.
"""

import argparse
import contextlib
import importlib
import itertools
import tempfile
import time
from pathlib import Path

import psutil

from digits.page.page import PANELS
from tests.support import chromium as browser
from tests.support import waiting
from tests.support.chromium import chromium
from tests.support.waiting import until

harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")

BEAT, VISIT = 20, 600  # seconds


def browsers() -> set[psutil.Process]:
    """Return the processes of browsers that this one started."""
    return {one for one in psutil.Process().children(recursive=True) if "chrom" in one.name()}


def visit(page) -> float:
    """Open the page in a second browser and kill that. Return the seconds until the kernel had ended."""
    kernels, others = set(page.kernels()), browsers()
    with contextlib.suppress(RuntimeError), chromium() as second:  # RuntimeError: chromedriver misses its browser
        second.open(page.address)
        until(lambda: second.run("return !!document.querySelector('.digits-steps button')"), "the second page")
        (kernel,) = set(page.kernels()) - kernels
        for one in browsers() - others:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        begin = time.monotonic()
        until(lambda: kernel not in page.kernels(), "the end of the vanished browser's kernel")
    return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    end = 60 * parser.parse_args().minutes
    waiting.HANG = browser.HANG = 3600.0  # other work may hold the machine for long
    with tempfile.TemporaryDirectory() as folder, harness.page_in_chromium(Path(folder) / "workspace") as page:
        begin, visits = time.monotonic(), 0
        titles = itertools.cycle(title for title, _, _ in PANELS)
        while (now := time.monotonic() - begin) < end:
            if now >= visits * VISIT:
                visits += 1
                page.press("Data")
                page.press("Try it")
                gone = visit(page)
                held = [psutil.Process(pid).memory_info().rss >> 20 for pid in (page.server.pid, *page.kernels())]
                print(f"{now / 60:.0f} min: the kernel ended {gone:.0f} s after its browser; MiB: {held}", flush=True)
            page.press(next(titles))
            page.check()
            time.sleep(BEAT)
        (kernel,) = page.kernels()
    until(lambda: not psutil.pid_exists(kernel), "the end of the last kernel")
    print(f"{now / 60:.1f} minutes, {visits} killed browsers, no kernel left, nothing on stderr")


if __name__ == "__main__":
    main()
