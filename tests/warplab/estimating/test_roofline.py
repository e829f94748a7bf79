"""Roofline: terms, limits and notes from counters known by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.synthetic_profiles import Session, vector_multiply
from warplab.estimating.roofline import footprint, roofline, roofline_all
from warplab.hardware.cards import CARDS
from warplab.simulator.count.counters import Counts


def test_vector_multiply_is_limited_by_memory():
    launch = vector_multiply(blocks=1 << 20)
    n = 1 << 28
    p = roofline(launch)
    assert p.limit == "memory"
    assert p.seconds == pytest.approx(12 * n / 3.35e12)
    assert {t.name: t.seconds for t in p.terms}["FP32"] == pytest.approx(n / 66.9e12)
    assert {t.name: t.seconds for t in p.terms}["instructions"] == pytest.approx(14 * n / 32 / (132 * 4 * 1.98e9))
    twice = replace(CARDS["H100"], bandwidth_gbs=6700)
    assert roofline(launch, twice).seconds == pytest.approx(p.seconds / 2)


@pytest.mark.parametrize(
    ("counts", "limit"),
    [
        (Counts(warp_instructions=1, flops_f32=10**12), "FP32"),
        (Counts(warp_instructions=1, flops_f64=10**12), "FP64"),
        (Counts(warp_instructions=1, flops_f16=10**12), "FP16"),
        (Counts(warp_instructions=10**9), "instructions"),
    ],
)
def test_the_largest_term_names_the_limit(counts, limit):
    assert roofline(vector_multiply(counts=counts)).limit == limit


def test_a_single_block_gets_one_sm():
    counts = Counts(warp_instructions=10**6, flops_f32=10**9)
    one = roofline(vector_multiply(counts=counts, grid=(1, 1, 1), footprint={}), "V100")
    many = roofline(vector_multiply(counts=counts, grid=(80, 1, 1), footprint={}), "V100")
    assert one.seconds == pytest.approx(80 * many.seconds)


def test_notes_say_when_the_bound_is_weak():
    big, small = vector_multiply(blocks=1 << 20), vector_multiply(blocks=2, threads=64)
    assert roofline(big).notes == ()
    text = roofline(small).text()
    assert "fit in the L2" in text
    assert "4 warps for 528 warp schedulers" in text
    assert "launch overhead (1.88 microseconds)" in text
    assert "not measured for this card" in roofline(small, "V100").text()
    with_overhead = replace(CARDS["V100"], launch_overhead_us=2.5)
    assert "2.5 microseconds" in roofline(small, with_overhead).text()


def test_it_is_labelled_a_prediction():
    p = roofline(vector_multiply(gpu_seconds=1.0, gpu_name="NVIDIA H100 80GB HBM3"))
    for shown in (p.text(), str(p), p.html(), p._repr_html_(), roofline_all(vector_multiply()).text()):
        assert "lower bound by arithmetic, no measurement" in shown
    assert "at least 3.76 \N{MICRO SIGN}s, limited by memory" in p.text()


def test_names_are_escaped_in_html():
    p = roofline(vector_multiply(kernel="mul<float>&"))
    assert "mul&lt;float&gt;&amp;" in p.html()
    assert "mul<float>" not in p.html()


def test_all_cards_and_all_launches():
    session = Session([vector_multiply(blocks=1 << 20), vector_multiply(blocks=2, threads=64, kernel="small")])
    table = roofline_all(session)
    assert [row[0].card.name for row in table.rows] == list(CARDS)
    seconds = {row[0].card.name: row[0].seconds for row in table.rows}
    assert seconds["H200"] < seconds["H100"] < seconds["A100"] < seconds["V100"] < seconds["P100"] < seconds["T4"]
    for shown in (table.text(), table.html()):
        assert all(card.full_name in shown for card in CARDS.values())
        assert f"does not fill {', '.join(CARDS)}" in shown
        assert shown.count("does not fill") == 1


def test_a_peak_that_is_not_known_is_left_out_and_said():
    counts = Counts(warp_instructions=1, flops_f64=10**12, flops_f32=1)
    p = roofline(vector_multiply(counts=counts), replace(CARDS["H100"], fp64_tflops=None))
    assert {t.name for t in p.terms} == {"memory", "FP32", "instructions"}
    assert "The H100's peak for FP64 is not known here: that time is left out." in p.text()


def test_footprint_is_loads_and_stores():
    assert footprint(vector_multiply()) == 12 * 4096 * 256


def test_what_cannot_be_predicted_is_refused():
    with pytest.raises(ValueError, match=r"has 2; pass one, as in roofline\(p.launches\[0\]\), or use roofline_all"):
        roofline(Session([vector_multiply(), vector_multiply()]))
    with pytest.raises(ValueError, match="has 0"):
        roofline(Session([]))
    with pytest.raises(ValueError, match="no launch"):
        roofline_all(Session([]))
    with pytest.raises(ValueError, match="vector_multiply holds no counts"):
        roofline(vector_multiply(counts=Counts()))
    with pytest.raises(ValueError, match="no memory footprint"):
        roofline(vector_multiply(footprint={}))
    with pytest.raises(ValueError, match="no card is named"):
        roofline(vector_multiply(), "K80")
