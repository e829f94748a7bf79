"""The published error is that of the model as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import estimate_model
from tests.support.estimate_model import FILES, FOLDER, model_hash
from tests.support.new_card import cards_with_another
from warplab.hardware.cards import CARDS


def test_the_published_error_is_this_models() -> None:
    """After a change of the model, `python -m evidence.estimates.publish` writes its error anew. What was held out is
    then no longer: its error counts as that of launches which the model was built with, unless nobody had looked."""
    published = json.loads((FOLDER / "error.json").read_text())
    assert "H100" in published
    assert {card: error["model"] for card, error in published.items()} == {card: model_hash(card) for card in published}


def _copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str]) -> str:
    for name in FILES:
        text = (FOLDER / f"{name}.py").read_text()
        if name == "atomics":
            assert change[0] in text
            text = text.replace(*change, 1)
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(estimate_model, "FOLDER", tmp_path)
    return model_hash()


def test_words_do_not_change_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model_hash()
    assert _copy(tmp_path, monkeypatch, ('"""Return slices of the L2', '"""Return all slices of the L2')) == before


def test_numbers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model_hash()
    assert _copy(tmp_path, monkeypatch, ("OFTEN = 3", "OFTEN = 4")) != before


def test_a_new_card_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model_hash()
    monkeypatch.setitem(CARDS, "X1", cards_with_another(tmp_path)["X1"])
    assert model_hash() == before
    assert model_hash("A100") != before


def test_rates_of_the_card_do() -> None:
    h100 = CARDS["H100"]
    assert model_hash(replace(h100, rates=h100.rates | {"knee": 2.0})) != model_hash()
    assert model_hash(replace(h100, l2_bytes=1 << 20)) != model_hash()
