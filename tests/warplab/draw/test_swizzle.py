"""`draw_swizzle`: where chunks lie, and how many wavefronts a column takes, read back from the figure."""

from __future__ import annotations

import pytest

from tests.support.figure_shapes import overlapping, titles
from warplab.draw.swizzle import draw_swizzle, swizzled


@pytest.mark.parametrize(("mode", "plain"), [(128, 8), (64, 4), (32, 2)])
def test_every_chunk_of_eight_rows_has_banks_of_its_own(mode, plain):
    for chunk in range(mode // 16):
        figure = draw_swizzle(mode, chunk)
        before, after = titles(figure)
        assert before == f"plain: chunk {chunk} of 8 rows, {plain} wavefronts"
        assert after == f"{mode}-byte swizzle: chunk {chunk} of 8 rows, 1 wavefront"
        assert overlapping(figure) == []


@pytest.mark.parametrize("mode", [0, 32, 64, 128])
def test_a_swizzle_moves_chunks_within_their_line_and_loses_none(mode):
    places = [swizzled(offset, mode) for offset in range(4096)]
    assert sorted(places) == list(range(4096))
    assert all(place // 128 == offset // 128 and place % 16 == offset % 16 for offset, place in enumerate(places))
    assert (places == list(range(4096))) is (mode == 0)


def test_rows_of_128_bytes_keep_chunk_c_of_row_r_at_c_xor_r():
    _, ax = draw_swizzle(128).axes
    cells = {p.get_gid(): (p.get_x(), p.get_y()) for p in ax.patches}
    assert cells == {f"{row},{chunk}": (chunk ^ row, row) for row in range(8) for chunk in range(8)}


def test_modes_that_tma_does_not_have():
    for wrong in (0, 16, 256, "128"):
        with pytest.raises(ValueError, match="TMA swizzles rows of 32, 64 or 128 bytes"):
            draw_swizzle(wrong)
    with pytest.raises(ValueError, match="a row of 64 bytes has chunks 0 to 3"):
        draw_swizzle(64, 4)
