"""`python -m warplab measure-card`, as far as that goes without a GPU: its rules, held to the H100's recordings."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from types import SimpleNamespace

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
def rows() -> dict:
    """What the sweeps gave on an H100."""
    recorded = json.loads((COURSE / "kernels" / "memory_access" / "recordings.json").read_text())
    swept = json.loads((COURSE / "warplab" / "estimating" / "sweeps.json").read_text())
    kept = {k: recorded[k]["value"] for k in card.OF_THE_LAB}
    kept |= {k: swept[k]["rows"] for k in ("global_atomics", "scattered", "streams", "chains", "starts", "clocks")}
    return kept | {"atomic_latencies": swept["latencies"]["rows"]}


@pytest.fixture(scope="module")
def found(rows) -> dict:
    return card.rates(rows, L2)


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


class _Device:
    """What CuPy's device reports."""

    attributes = ABOUT


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """All that the command asks of a GPU, but for its sweeps."""
    cupy = SimpleNamespace(cuda=SimpleNamespace(Device=_Device))
    monkeypatch.setattr(card.timing, "require_gpu", lambda what: None)
    monkeypatch.setattr(card.timing, "cupy_on_gpu", lambda: cupy)
    monkeypatch.setattr(card.timing, "machine", lambda: {"device": "NVIDIA Any GPU", "date": "2026-11-27"})


def test_to_its_end_with_an_h100s_rows_it_prints_a_card(rows, as_on_a_gpu, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(card, "measured", lambda: rows)
    assert card.main([]) == 0
    printed = capsys.readouterr()
    assert "never run on a GPU" in printed.err
    assert "# This command has never run on a GPU" in printed.out
    (tmp_path / "cards.toml").write_text(FILE.read_text(encoding="utf-8") + "\n" + printed.out, encoding="utf-8")
    assert read(tmp_path / "cards.toml")["Any GPU"].sms == 132


def test_a_card_of_an_unknown_kind_is_told_before_any_sweep(as_on_a_gpu, monkeypatch):
    monkeypatch.setattr(card, "measured", lambda: pytest.fail("the sweeps ran"))
    monkeypatch.setattr(_Device, "attributes", ABOUT | {"ComputeCapabilityMajor": 8, "ComputeCapabilityMinor": 7})
    with pytest.raises(SystemExit) as ended:
        card.main([])
    assert "no compute capability 8.7" in str(ended.value)


def test_an_l2_that_is_too_small_is_told_before_any_sweep(rows, as_on_a_gpu, monkeypatch):
    monkeypatch.setattr(card, "measured", lambda: pytest.fail("the sweeps ran"))
    monkeypatch.setattr(_Device, "attributes", ABOUT | {"L2CacheSize": 4 << 20})
    with pytest.raises(SystemExit) as ended:
        card.main([])
    assert "sweeps need an L2 of 10 MiB" in str(ended.value)
    assert card.rates(rows, card.LEAST_L2)["l2_bandwidth"] > 0
    with pytest.raises(statistics.StatisticsError):
        card.rates(rows, 4 << 20)


def test_its_help_says_that_it_is_untried(capsys):
    with pytest.raises(SystemExit):
        card.main(["--help"])
    assert "never run on a GPU" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("kind", sorted({one.compute_capability for one in CARDS.values()}))
def test_every_kind_of_card_gives_a_paragraph_that_is_read(kind, found, tmp_path):
    about = ABOUT | {"ComputeCapabilityMajor": kind[0], "ComputeCapabilityMinor": kind[1]}
    text = card.paragraph("Mine", "NVIDIA Mine", about, found, "2026-11-27")
    (tmp_path / "cards.toml").write_text(FILE.read_text(encoding="utf-8") + "\n" + text, encoding="utf-8")
    assert read(tmp_path / "cards.toml")["Mine"].compute_capability == kind


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
