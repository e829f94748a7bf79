"""The glossary and the card of launch syntaxes: their code runs, their pictures exist."""

from __future__ import annotations

import re

import numpy as np
import pytest

import warplab
from warpcourse.paths import COURSE
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.estimating.estimate import estimate
from warplab.estimating.rates import RARE
from warplab.hardware.cards import CARDS

CARD = (COURSE / "docs" / "launches.md").read_text()
GLOSSARY = (COURSE / "docs" / "glossary.md").read_text()

CODE = """
extern "C" __global__ void kernel(const float *x, float *out, int n) {
    int columns = gridDim.x * blockDim.x;
    int i = (blockIdx.y * blockDim.y + threadIdx.y) * columns + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}
"""


@cuda.jit
def numba_kernel(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 2 * x[i]


@cuda.jit
def numba_kernel_2d(x, out):
    x_place, y_place = cuda.grid(2)
    i = y_place * cuda.gridsize(2)[0] + x_place
    if i < out.size:
        out[i] = 2 * x[i]


def launches(column: int) -> list[str]:
    """Return the launches in one column of the card's tables, with arguments in place of dots."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in CARD.splitlines() if line.startswith("| ")]
    cells = [row[column] for row in rows if len(row) > column]
    return [code for cell in cells for code in re.findall(r"`(kernel[\[(][^`]*\))`", cell)]


NUMBA = [code for column in (1, 2) for code in launches(column) if code.startswith("kernel[")]
CUPY = [code for column in (2,) for code in launches(column) if code.startswith("kernel(")]


def test_the_card_has_launches():
    assert len(NUMBA) == 4
    assert len(CUPY) == 4


@pytest.mark.parametrize("code", NUMBA)
def test_launches_of_numba(code):
    x, out = cuda.to_device(np.arange(1000, dtype=np.float32)), cuda.device_array(1000, np.float32)
    kernel = numba_kernel_2d if "(4, 2)" in code else numba_kernel
    eval(code.replace("(…)", "(x, out)"), {"kernel": kernel, "x": x, "out": out, "stream": cuda.stream()})
    np.testing.assert_array_equal(out.copy_to_host(), 2 * np.arange(1000))


@pytest.mark.parametrize("code", CUPY)
def test_launches_of_cupy(code):
    kernel = cp.RawModule(code=CODE).get_function("kernel")
    x, out, n = cp.arange(1000, dtype=cp.float32), cp.empty(1000, cp.float32), 1000
    where = {"kernel": kernel, "x": x, "out": out, "np": np, "n": n}
    eval(code.replace("(…)", "(x, out, np.int32(n))"), where)
    np.testing.assert_array_equal(cp.asnumpy(out), 2 * np.arange(1000))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\b(?:cuda|cp)\.[A-Za-z_.0-9]*[a-zA-Z_0-9]", CARD))))
def test_names_of_the_card_exist(name):
    found = {"cuda": cuda, "cp": cp}[name.split(".")[0]]
    for part in name.split(".")[1:]:
        found = getattr(found, part)


def test_the_card_names_no_launch_that_fails():
    assert "`simulate(kernel, 4, 256, (x, out))`" in CARD
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    warplab.simulate(numba_kernel, 4, 256, (x, out))
    np.testing.assert_array_equal(out, 2 * x)


def test_pictures_of_the_glossary_exist():
    named = set(re.findall(r"`(\w+)\([^`]*\)`|`((?:draw|explore)_\w+)`", GLOSSARY))
    pictures = {a or b for a, b in named if (a or b).startswith(("draw_", "explore_"))}
    assert len(pictures) >= 6
    assert pictures <= set(warplab.__all__)


def test_the_glossary_explains_every_bar_of_an_estimate():
    part = GLOSSARY.split("## An estimate's bars")[1].split("\n## ")[0]
    explained = {
        re.sub(r" \(.*\)", "", line.split("|")[1]).strip() for line in part.splitlines() if line.startswith("| ")
    }
    single = next(name for name in explained if name.endswith(" instructions"))
    explained |= {f"{name} instructions" for name in re.findall("[A-Z]+", single)}
    launch = warplab.simulate(numba_kernel, 1, 32, (np.ones(32, np.float32), np.zeros(32, np.float32)))
    bars = {resource.name for resource in estimate(launch).time.resources}
    bars |= {f"{pipe} pipe" for pipe in CARDS["H100"].per_clock if pipe != "IMAD"}  # IMAD is a rate within the FMA pipe
    bars |= {f"{name} instructions" for name in RARE}
    assert bars | {"atomics", "tensor cores"} <= explained


@pytest.mark.parametrize(
    "term",
    [
        *("latency hiding", "instruction-level parallelism", "double buffering", "pipelining", "outer product"),
        *("ridge point", "wave quantisation", "epilogue", "predication", "warp specialisation", "mbarrier"),
        "streaming multiprocessor",
    ],
)
def test_the_trades_words_are_in_the_glossary(term):
    first_cells = [line.split("|")[1] for line in GLOSSARY.splitlines() if line.startswith("| ")]
    assert any(term in cell for cell in first_cells)


def test_a_lab_that_the_glossary_names_exists():
    labs = {path.name[:2] for path in (COURSE / "notebooks").glob("*.ipynb")}
    rows = [line.split("|") for line in GLOSSARY.splitlines() if line.startswith("| ")]
    named = {lab.strip() for row in rows for lab in row[3].split(",") if lab.strip().isdigit()}
    assert named
    assert named <= labs
