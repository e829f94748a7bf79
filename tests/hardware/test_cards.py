"""Published limits of cards: their arithmetic, their sources."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from warplab.hardware.cards import CARDS, card, card_of

NAMES = ("P100", "V100", "T4", "A100", "H100", "H200")


# FP16 multiply-adds per clock of one SM's tensor cores: white papers of Volta, Turing, Ampere and Hopper.
TENSOR_FMA = {"V100": 512, "T4": 512, "A100": 1024, "H100": 2048, "H200": 2048}


# Bits of the memory interface and its clock in MHz as the driver reports it; two transfers per clock.
MEMORY = {
    "P100": (4096, 715),
    "V100": (4096, 877.5),
    "T4": (256, 5001),
    "A100": (5120, 1215),
    "H100": (5120, 2619),
    "H200": (6144, 3201),
}


def test_the_six_cards_are_there():
    assert tuple(CARDS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_peaks_follow_from_cores_and_clock(name):
    c = CARDS[name]
    hertz = c.clock_mhz * 1e6
    assert c.sms * c.fp32_cores * 2 * hertz == pytest.approx(c.fp32_tflops * 1e12, rel=0.01)
    assert c.sms * c.fp64_cores * 2 * hertz == pytest.approx(c.fp64_tflops * 1e12, rel=0.02)
    packed = 4 if name == "A100" else 2
    assert c.sms * c.fp32_cores * packed * 2 * hertz == pytest.approx(c.fp16_tflops * 1e12, rel=0.01)
    if c.tensor_tflops is None:
        assert name not in TENSOR_FMA
    else:
        flop = c.sms * TENSOR_FMA[name] * 2 * c.tensor_clock_mhz * 1e6
        assert flop == pytest.approx(c.tensor_tflops * 1e12, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_bandwidth_follows_from_interface_and_memory_clock(name):
    bits, mhz = MEMORY[name]
    # The data sheet of the H200 rounds 4.92 TB/s down to 4.8.
    assert bits / 8 * 2 * mhz * 1e6 == pytest.approx(CARDS[name].bandwidth_gbs * 1e9, rel=0.025)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source(name):
    c = CARDS[name]
    assert set(c.sources) <= {""} | {f.name for f in fields(c)}
    for f in fields(c):
        if isinstance(getattr(c, f.name), int | float):
            assert re.search(r"NVIDIA, .*20\d\d|the driver reports|measured on an .*20\d\d-", c.source(f.name))


def test_card_is_found_in_any_case_and_an_unknown_one_lists_the_names():
    assert card(" h100 ") is CARDS["H100"]
    assert card(CARDS["T4"]) is CARDS["T4"]
    with pytest.raises(ValueError, match=r"no card is named 'RTX 4090'.*P100, V100, T4, A100, H100, H200"):
        card("RTX 4090")


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA GeForce RTX 4090", None),
        ("Quadro T400", None),
    ],
)
def test_a_gpu_is_found_among_the_cards_by_its_drivers_name(device, name):
    assert card_of(device) is CARDS.get(name)
