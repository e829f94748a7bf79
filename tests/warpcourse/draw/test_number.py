"""`draw_number`: its bits are those of NumPy and of the simulator's conversions, and the picture shows them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from tests.support.figure_shapes import overlapping, texts
from warpcourse.draw.number import EXPONENT, FORMATS, draw_number
from warplab.simulator.numerics import halves

SEED = 20_261_122
EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    2.0**-24,
    2.0**-25,
    3 * 2.0**-26,
    65504.0,
    65519.0,
    65520.0,
    1e-8,
    448.0,
    464.0,
    1e6,
]


def numbers() -> np.ndarray:
    rng = np.random.default_rng(SEED)
    spread = np.exp2(rng.uniform(-30, 20, 500)) * rng.choice([-1, 1], 500)
    return np.concatenate([EDGES, spread]).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "dtype", "code"), [("float16", np.float16, np.uint16), ("float32", np.float32, np.uint32)]
)
def test_codes_are_numpys(name, dtype, code):
    form = FORMATS[name]
    with np.errstate(over="ignore"):
        expected = numbers().astype(np.float64).astype(dtype)
    assert [form.encode(float(x)) for x in numbers()] == expected.view(code).tolist()
    assert [form.decode(int(c)) for c in expected.view(code)] == expected.astype(float).tolist()


def test_codes_are_the_simulators():
    x = numbers()
    expected = np.asarray(halves.half_from_f32(x, "bf16")).view(np.uint16)
    assert [FORMATS["bfloat16"].encode(float(v)) for v in x] == expected.tolist()
    for name in ("e4m3", "e5m2"):
        expected = halves.small_pack(x, x, name, False) & 0xFF
        assert [FORMATS[name].encode(float(v)) for v in x] == expected.tolist()


def test_four_bits():
    form = FORMATS["e2m1"]
    assert [form.decode(code) for code in range(8)] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert [form.decode(form.encode(x)) for x in (0.24, 0.25, 0.26, 2.5, 5.0, -7.0)] == [0, 0, 0.5, 2, 4, -6]


def cells(figure, name) -> str:
    """Return the bits drawn in the row of a format."""
    boxes = [p for p in figure.axes[0].patches if p.get_gid() == name]
    places = {(round(p.get_x() + 0.5, 3), round(p.get_y() + 0.7, 3)) for p in boxes}
    found = [t for t in figure.axes[0].texts if tuple(round(float(v), 3) for v in t.get_position()) in places]
    return "".join(t.get_text() for t in sorted(found, key=lambda t: t.get_position()[0]))


def test_the_picture_shows_the_bits_and_the_number():
    figure = draw_number(0.1)
    assert cells(figure, "float16") == f"{np.float16(0.1).view(np.uint16):016b}"
    assert cells(figure, "float32") == f"{np.float32(0.1).view(np.uint32):032b}"
    assert len(cells(figure, "tf32")) == 19
    assert len(cells(figure, "e4m3")) == 8
    assert "0.0999755859" in texts(figure)
    assert "off by 0.024 %" in texts(figure)
    assert overlapping(figure) == []
    amber = [p for p in figure.axes[0].patches if p.get_gid() == "float16"][1:6]
    assert {p.get_facecolor() for p in amber} == {to_rgba(EXPONENT)}


def test_what_does_not_fit():
    assert "inf" in texts(draw_number(70000, "float16"))
    assert "too large" in texts(draw_number(70000, "float16"))
    assert "448" in texts(draw_number(70000, "e4m3"))
    assert "too small" in texts(draw_number(1e-9, "float16"))
    assert "exact" in texts(draw_number(-1.5, ["e2m1", "e5m2"]))


def test_values_and_formats_that_cannot_be_drawn():
    with pytest.raises(ValueError, match="no format is named 'half'; choose one to 8 of float32, tf32"):
        draw_number(1, "half")
    with pytest.raises(ValueError, match="0 formats"):
        draw_number(1, [])
    for wrong in (math.nan, math.inf, "1", True, None):
        with pytest.raises(ValueError, match="takes a finite number"):
            draw_number(wrong)
