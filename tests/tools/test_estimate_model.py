"""The published error is that of the model as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import estimate_model
from tools.estimate_model import FILES, FOLDER, model_hash


def test_the_published_error_is_this_models() -> None:
    """After a change of the model, `python -m tools.estimate_page` writes its error anew. What was held out is then
    no longer: its error counts as that of launches which the model was built with, unless nobody had looked."""
    assert json.loads((FOLDER / "error.json").read_text())["model"] == model_hash()


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
    assert _copy(tmp_path, monkeypatch, ('"""Slices of the L2', '"""All slices of the L2')) == before


def test_numbers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model_hash()
    assert _copy(tmp_path, monkeypatch, ("OFTEN = 3", "OFTEN = 4")) != before
