"""A network's table of layers and its drawing."""

import importlib
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from digits.files import DigitsError
from digits.networks import drawing, summary

ones = importlib.import_module("tests.labs.12_digits.test_custom")


def layer(name, *inputs, kind="Conv2D", shape=(8, 8, 4)):
    return {"name": name, "kind": kind, "shape": list(shape), "parameters": 1, "inputs": list(inputs)}


def test_shapes_parameters_multiply_adds_and_bytes_as_counted_by_hand():
    found = summary.of_network({"name": "custom", "configuration": ones.plain()}, (8, 8, 1), 10)
    by_name = {row["name"]: row for row in found["layers"]}
    assert by_name["conv"]["shape"] == [8, 8, 4]
    assert by_name["conv"]["parameters"] == 3 * 3 * 1 * 4 + 4
    assert by_name["conv"]["multiply_adds"] == 8 * 8 * 4 * 3 * 3 * 1
    assert by_name["conv"]["bytes"] == 8 * 8 * 4 * 4
    assert by_name["classes"]["parameters"] == 256 * 10 + 10
    assert by_name["classes"]["multiply_adds"] == 256 * 10
    assert by_name["classes"]["inputs"] == ["flat"]
    assert found["parameters"] == found["trainable"] == 40 + 2570
    assert found["parameter_bytes"] == 4 * found["parameters"]
    assert found["multiply_adds"] == 2304 + 2560


@pytest.mark.parametrize(
    ("network", "said"),
    [({"name": "nothing"}, "There is no network"), ({"name": "lenet", "units": -1}, "units of the network lenet")],
)
def test_what_cannot_be_built_is_told(network, said):
    with pytest.raises(DigitsError, match=said):
        summary.of_network(network, (8, 8, 1), 10)


def test_a_drawing_has_a_box_for_each_layer_and_a_text_alternative():
    layers = [layer("in"), layer("a", "in"), layer("b", "in"), layer("c", "b"), layer("sum", "a", "c", kind="Add")]
    root = ElementTree.fromstring(drawing.svg({"name": "n", "layers": layers}))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{svg}g/{svg}rect")) == 5
    assert "5 layers" in root.get("aria-label")
    # a reads the row above c's, so its line to sum passes c's row at a place of its own.
    assert len(root.findall(f"{svg}path")) == 6


def test_boxes_of_a_row_and_passing_lines_do_not_overlap():
    branches = [layer(f"branch{n}", "in") for n in range(4)]
    deep = [layer("deep0", "branch0"), layer("deep1", "deep0"), layer("deep2", "deep1")]
    layers = [layer("in"), *branches, *deep, layer("join", *(f"branch{n}" for n in range(4)), "deep2")]
    rows, width = drawing._placed(layers)
    assert max(map(len, rows)) > 3
    for row in rows:
        placed = sorted((place.x, drawing._width(place)) for place in row)
        assert placed[0][0] > 0
        assert placed[-1][0] < width
        assert all(b - a >= (v + w) / 2 for (a, v), (b, w) in pairwise(placed))


def test_names_are_escaped_and_ink_is_the_pages():
    drawn = drawing.svg({"name": "<script>", "layers": [layer("</svg><script>", kind="<b>")]})
    assert "<script>" not in drawn
    assert "<b>" not in drawn
    assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', drawn)) == {"none", "currentColor"}
