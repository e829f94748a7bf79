"""Lessons 04 and 05 on cards that lack instructions or shared memory of an H100: no cell ends with an error."""

import nbformat
import pytest

from tools import execute_notebooks as tool
from warpcourse.bench.lab import labs
from warplab.hardware.cards import CARDS

LESSONS = {lesson.slug: lesson for lab in labs() for lesson in lab.lessons if lesson.number in (4, 5)}
# What CuPy, the driver and the compiler do on such a GPU, in the simulator.
CARD = """
from warpcourse.bench import hopper, lab_kernels
from warplab.launch import resources
from warplab.dropin import choice

capability, most = {capability}, {most}
compiled, launched = choice.load("cp").RawModule.get_function, lab_kernels.launch


def get_function(self, name):
    function = compiled(self, name)
    resources.of(function, card="{card}")  # ptxas refuses what the card has not
    return function


def launch(function, grid, block, arguments, shared_bytes=0):
    if shared_bytes > most and not isinstance(function, lab_kernels.Lacking):
        raise RuntimeError("CUDA_ERROR_INVALID_VALUE: shared memory of " + str(shared_bytes))
    launched(function, grid, block, arguments, shared_bytes)


choice.load("cp").RawModule.get_function, lab_kernels.launch = get_function, launch
lab_kernels.card = lambda: (capability, most)
hopper.missing = lambda what, instead: what + " uses instructions of compute capability 9.0 only"
"""


@pytest.mark.thorough
@pytest.mark.parametrize("card", ["T4", "RTX 4090"])
@pytest.mark.parametrize("slug", LESSONS)
def test_each_cell_ends_without_an_error(slug, card, monkeypatch):
    monkeypatch.setenv("WARPLAB_BACKEND", "simulator")
    notebook = nbformat.read(LESSONS[slug].notebook, as_version=4)
    (major, minor), most = CARDS[card].compute_capability, CARDS[card].block_shared_bytes
    fake = CARD.format(capability=10 * major + minor, most=most, card=card)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(fake))
    tool.execute(notebook)
    said = "\n".join(
        text for cell in tool.code_cells(notebook) for o in cell.outputs for text in tool.texts(o).values()
    )
    # On a T4, lesson 04 only counts what the card has not, which the simulator does wherever one is.
    lacks = {"T4": {"05_tensor_cores", "05_tensor_machines"}, "RTX 4090": {"05_tensor_machines"}}
    assert ("Not on this card" in said) == (slug in lacks[card])
