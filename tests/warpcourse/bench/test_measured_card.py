"""`python -m warplab measure-card`, as far as that goes without a GPU: its rules, held to the H100's recordings."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from warpcourse.bench.lab import find
from warpcourse.bench.sweeps import card
from warpcourse.paths import COURSE
from warplab.estimating import rates
from warplab.hardware.cards import CARDS, FILE, card_of, read
from warplab.hardware.cards import card as find_card

L2 = CARDS["H100"].l2_bytes
ABOUT = {
    "ComputeCapabilityMajor": 9,
    "ComputeCapabilityMinor": 0,
    "MultiProcessorCount": 132,
    "ClockRate": 1_980_000,
    "GlobalMemoryBusWidth": 5120,
    "MemoryClockRate": 2_619_000,
    "L2CacheSize": L2,
}


@pytest.fixture(scope="module")
def found() -> dict:
    recorded = json.loads((COURSE / "kernels" / "memory_access" / "recordings.json").read_text())
    swept = json.loads((COURSE / "warplab" / "estimating" / "sweeps.json").read_text())
    kept = {k: recorded[k]["value"] for k in card.OF_THE_LAB}
    kept |= {k: swept[k]["rows"] for k in ("global_atomics", "scattered", "streams", "chains", "starts", "clocks")}
    return card.rates(kept | {"atomic_latencies": swept["latencies"]["rows"]}, L2)


def test_the_rules_give_the_rates_that_were_read_by_hand(found):
    """Within 7 %: a rate read by hand is that of several rows, or a middle of two sweeps."""
    h100 = rates.rates("H100")
    for name, value in found.items():
        kept = getattr(h100, name) / (h100.clock_hz if name.endswith("_latency") and value < 1 else 1)
        assert value == pytest.approx(kept, rel=0.07), name


def test_the_lab_still_measures_what_a_card_needs():
    """By names, as warpcourse imports no lab."""
    measurements = find("memory_access").module("measurements").MEASUREMENTS
    assert all(callable(measurements[name]) for name in card.OF_THE_LAB)


def test_its_paragraph_is_a_card_with_estimates(found, tmp_path, monkeypatch):
    text = card.paragraph('My "H100" Laptop GPU', "NVIDIA H100 80GB HBM3", ABOUT, found, "2026-11-26")
    (tmp_path / "cards.toml").write_text(FILE.read_text(encoding="utf-8") + "\n" + text, encoding="utf-8")
    mine = read(tmp_path / "cards.toml")['My "H100" Laptop GPU']
    h100 = CARDS["H100"]
    for name in ("fp32_tflops", "bandwidth_gbs"):
        assert getattr(mine, name) == pytest.approx(getattr(h100, name), rel=0.01)
    assert (mine.sms, mine.shared_bytes, mine.l2_bytes) == (h100.sms, h100.shared_bytes, h100.l2_bytes)
    monkeypatch.setitem(CARDS, mine.name, mine)
    assert find_card(mine.name) is card_of("NVIDIA my h100 Laptop GPU") is mine
    known = rates.rates(mine)
    assert known.read_bandwidth == pytest.approx(rates.rates(h100).read_bandwidth, rel=0.01)
    assert "measured on an NVIDIA H100 80GB HBM3, 2026-11-26" in known.sources["read_bandwidth"]


def test_a_compute_capability_that_is_unknown_is_said(found):
    with pytest.raises(ValueError, match=r"no compute capability 8\.7: add \[capability\."):
        card.paragraph(
            "Orin", "Orin", ABOUT | {"ComputeCapabilityMajor": 8, "ComputeCapabilityMinor": 7}, found, "2026"
        )


def test_without_a_gpu_it_says_so():
    ran = subprocess.run(
        [sys.executable, "-m", "warplab", "measure-card"],
        cwd=COURSE,
        env={"WARPLAB_BACKEND": "simulator", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "measure-card needs an NVIDIA GPU" in ran.stderr
