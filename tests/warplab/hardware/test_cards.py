"""Published limits of cards: their arithmetic, their sources."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from warplab.estimating.rates import rates
from warplab.hardware.cards import CARDS, FILE, card, card_of, read

H100 = CARDS["H100"]


@pytest.mark.parametrize("c", CARDS.values(), ids=CARDS)
def test_peaks_follow_from_cores_and_clock(c):
    def follow(tflops, clock_mhz, per_clock, within=0.01):
        return None in (tflops, clock_mhz) or c.sms * per_clock * 2 * clock_mhz * 1e6 == pytest.approx(
            tflops * 1e12, rel=within
        )

    assert follow(c.fp32_tflops, c.clock_mhz, c.fp32_cores)
    assert follow(c.fp64_tflops, c.clock_mhz, c.fp64_cores, 0.02)
    assert any(follow(c.fp16_tflops, c.clock_mhz, packed * c.fp32_cores) for packed in (1, 2, 4))
    assert follow(c.tensor_tflops, c.tensor_clock_mhz, c.tensor_fma)
    assert (c.tensor_tflops is None) == (c.tensor_fma is None)


@pytest.mark.parametrize("c", CARDS.values(), ids=CARDS)
def test_bandwidth_follows_from_interface_and_memory_clock(c):
    if c.memory_bits is not None and c.memory_mhz is not None:
        # The data sheet of the H200 rounds 4.92 TB/s down to 4.8.
        assert c.memory_bits / 8 * 2 * c.memory_mhz * 1e6 == pytest.approx(c.bandwidth_gbs * 1e9, rel=0.025)


@pytest.mark.parametrize("c", CARDS.values(), ids=CARDS)
def test_every_number_has_a_source(c):
    numbers = [f.name for f in fields(c) if isinstance(getattr(c, f.name), int | float)]
    for name in (*numbers, "per_clock"):
        assert re.search(r"NVIDIA, .*20\d\d|the driver reports|measured on an .*20\d\d-", c.source(name)), name
    for name in c.rates:
        assert re.search(r"20\d\d|^assumed: ", c.source(name)), name


def test_what_is_not_known_is_none():
    assert (CARDS["P100"].tensor_tflops, CARDS["P100"].tensor_fma, CARDS["P100"].barriers) == (None, None, None)
    assert CARDS["V100"].launch_overhead_us is None


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("\nsms = 56", "", "the card P100: .*sms"),
        ("\nsms = 56", "\nsms = -56", "the card P100: sms is -56; it must be above 0"),
        ('compute_capability = "6.0"', 'compute_capability = "6.1"', "the card P100 needs '6.1'"),
        ("{PASCAL}", "{PASCALE}", "the card P100 needs 'PASCALE'"),
        ("FMA = 2.0", "FMA = -2.0", "the card P100: FMA is -2.0"),
    ],
)
def test_a_wrong_paragraph_is_told_with_its_card(tmp_path, was, now, said):
    (tmp_path / "cards.toml").write_text(FILE.read_text().replace(was, now, 1))
    with pytest.raises(ValueError, match=said):
        read(tmp_path / "cards.toml")


def test_card_is_found_in_any_case_and_an_unknown_one_lists_the_names():
    assert card(" h100 ") is H100
    assert card("RTX4090") is card("rtx-4090") is CARDS["RTX 4090"]
    assert card("A100-80GB") is CARDS["A100 80GB"]
    assert card(CARDS["T4"]) is CARDS["T4"]
    with pytest.raises(ValueError, match=f"no card is named 'GTX 1080'; choose one of {', '.join(CARDS)}"):
        card("GTX 1080")


def test_a_card_of_ones_own_is_like_another_but_for_what_is_given():
    like = CARDS["RTX 4090"]
    own = card("RTX 4070 = RTX 4090, sms=46, clock_mhz=2475, bandwidth_gbs=504, l2_bytes=36e6")
    assert (own.name, own.sms, own.clock_mhz, own.l2_bytes) == ("RTX 4070", 46, 2475, 36_000_000)
    assert own.fp32_tflops == pytest.approx(46 * own.fp32_cores * 2 * 2475e-6, rel=1e-3)
    assert own.rates["l2_bandwidth"] / like.rates["l2_bandwidth"] == pytest.approx(46 / 128 * 2475 / 2520)
    assert rates(own).read_bandwidth / rates(like).read_bandwidth == pytest.approx(504 / 1008)
    assert (own.shared_bytes, own.rates["l1_latency"]) == (like.shared_bytes, like.rates["l1_latency"])
    assert (own.memory_bits, card("X = T4").memory_bits) == (None, CARDS["T4"].memory_bits)
    h200 = card("X = H200, clock_mhz=1000, bandwidth_gbs=2400, read_bandwidth=2e12")
    assert (h200.rates["read_bandwidth"], h200.rates["copy_bandwidth"]) == (
        2e12,
        CARDS["H200"].rates["copy_bandwidth"] * 2400 / CARDS["H200"].bandwidth_gbs,
    )


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("L40S", "RTX 4090"),
        ("L4", "RTX 4090"),
        ("A10", "RTX 3090"),
        ("RTX 3060", "RTX 3090"),
        ("RTX 2070", "RTX 2080 Ti"),
    ],
)
def test_a_card_of_ones_own_comes_out_as_a_listed_one_does(name, like):
    listed = CARDS[name]
    given = ("sms", "clock_mhz", "bandwidth_gbs", "l2_bytes")
    own = card(f"mine = {like}, " + ", ".join(f"{key}={getattr(listed, key)}" for key in given))
    assert own.fp32_tflops == pytest.approx(listed.fp32_tflops, rel=0.01)
    mine, theirs = rates(own), rates(listed)
    for key in ("clock_hz", "read_bandwidth", "l2_bandwidth", "memory_latency", "scattered_stores"):
        assert getattr(mine, key) == pytest.approx(getattr(theirs, key), rel=0.02), key


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("H100 = T4", "needs a name that no other card has"),
        ("= T4", "needs a name that no other card has"),
        ("X = Voodoo2, sms=3", "no card is named 'Voodoo2'"),
        ("X = T4, cores=3", "X: 'cores=3' is not one of these with a number, as sms=46: .*sms, "),
        ("X = T4, sms=-3", "X: 'sms=-3' is not"),
        ("X = T4, sms=0", "sms is 0; it must be above 0"),
    ],
)
def test_a_wrong_card_of_ones_own_is_told(text, said):
    with pytest.raises(ValueError, match=said):
        card(text)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L40", None),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", None),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
        ("NVIDIA GeForce RTX 2080", None),
        ("NVIDIA GeForce RTX 2070", "RTX 2070"),
        ("NVIDIA GeForce RTX 2070 SUPER", None),
        ("NVIDIA GeForce RTX 3060", "RTX 3060"),
        ("NVIDIA GeForce RTX 3060 Ti", None),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA H20", "H20"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA GeForce RTX 5090", "RTX 5090"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GB200", None),
        ("Quadro T400", None),
    ],
)
def test_a_gpu_is_found_among_the_cards_by_its_drivers_name(device, name):
    assert card_of(device) is CARDS.get(name)
