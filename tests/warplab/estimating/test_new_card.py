"""A card is one paragraph of data: one added to a copy of cards.toml is known everywhere, and changes no other."""

from __future__ import annotations

import pytest

from tests.support.new_card import cards_with_another
from tests.support.synthetic_profiles import vector_multiply
from warpcourse.draw.machine import draw_machine
from warplab.draw.roofline import draw_roofline
from warplab.estimating import beside
from warplab.estimating.estimate import estimate
from warplab.estimating.roofline import roofline, roofline_all
from warplab.hardware import cards, driver, occupancy


@pytest.fixture
def x1(tmp_path, monkeypatch) -> cards.Card:
    found = cards_with_another(tmp_path)
    assert {**cards.CARDS, "X1": found["X1"]} == found
    monkeypatch.setitem(cards.CARDS, "X1", found["X1"])
    return found["X1"]


def test_it_has_facts_and_occupancy(x1) -> None:
    assert cards.card(" x1 ") is cards.card_of("NVIDIA X1") is x1
    assert (x1.compute_capability, x1.max_warps, x1.fp64_tflops) == ((10, 9), 148 * 64, None)
    assert str(occupancy.theoretical("X1", 256, registers=33)).startswith("X1: 6 blocks of 256 threads on an SM, 48")


def test_it_has_a_roofline_and_pictures(x1) -> None:
    launch = vector_multiply(blocks=1 << 20)
    assert roofline(launch, "X1").seconds == pytest.approx(12 * 2**28 / 8e12)
    assert [row[0].card.name for row in roofline_all(launch).rows][-1] == "X1"
    written = [text.get_text() for text in draw_machine("L2", card="X1").axes[0].texts]
    assert {"148 SMs", "L2 cache\n\n126.5 MiB"} <= set(written)
    assert draw_roofline(launch, "X1").axes[0].get_title() == f"Roofline of {x1.full_name}"


def test_an_estimate_is_refused_with_the_cards_that_have_rates(x1) -> None:
    known = [name for name, card in cards.CARDS.items() if card.rates]
    assert "H100" in known
    assert "X1" not in known
    with pytest.raises(
        ValueError, match=f"no rates are known of {x1.full_name}; estimates are for {', '.join(known)}$"
    ):
        estimate(vector_multiply(), "X1")


def test_lessons_on_it_estimate_for_the_card_of_the_recordings(x1, monkeypatch) -> None:
    found = driver.Driver("580", (13, 0), (driver.Gpu("NVIDIA X1", 2**37, (10, 9)),))
    monkeypatch.setattr(driver, "query", lambda: found)
    monkeypatch.setattr(beside.backend, "name", lambda: "gpu")
    assert beside.card_here().name == "H100"
