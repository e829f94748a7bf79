"""The arithmetic of lab 11's claims."""

import pytest

from kernels.serving import claims
from kernels.serving.claims import DECODERS, Cpu


def test_both_readings_of_sixty_percent():
    found = claims.with_batches()
    assert found["batching adds 60 %"] == pytest.approx(11.2)
    assert found["MPS reaches 60 %"] == pytest.approx(11.67, abs=0.01)
    assert claims.largest_share_of_one() == pytest.approx(1 / 7)


def test_published_factors_are_smaller_than_the_claim():
    assert claims.PUBLISHED.factor == pytest.approx(2.43, abs=0.01)
    assert claims.PUBLISHED.in_turns < claims.PUBLISHED.alone
    assert all(high < 1 for _, high in claims.TORCHSERVE_CHANGES.values())
    assert [limit.clients for limit in claims.LIMITS] == [16, 48, 60]
    assert all(limit.source for limit in claims.LIMITS)


def test_one_p4_and_thirteen_servers():
    found = claims.one_p4()
    assert found.inferences == 550
    assert found.decoded == 694
    assert found.bound == "infer"
    assert found.per_server == pytest.approx(42.3, abs=0.1)
    assert found.server_flops == pytest.approx(1.69e12, rel=0.01)
    assert found.server_peak_share == pytest.approx(1.69 / 2.33, rel=0.01)
    assert found.int8_factor == 4
    light = claims.one_p4(operations=3e9)  # a GoogLeNet's worth: then the decoder limits it
    assert light.bound == "decode"
    assert light.per_server == pytest.approx(694 / 13)
    assert claims.one_p4(operations=3e9, engines=2).per_server == pytest.approx(2 * 694 / 13)
    assert claims.one_p4(Cpu(1, 7, 2.6)).server_peak_share == pytest.approx(4 * found.server_peak_share)


def test_streams_of_a_decoder():
    assert DECODERS["Pascal"].streams() == pytest.approx(23.1, abs=0.1)
    assert DECODERS["Turing"].streams("hevc", engines=2, frames_per_second=60) == pytest.approx(43.9, abs=0.1)
    with pytest.raises(ValueError, match="there is no figure for 'vp9'; choose h264 or hevc"):
        DECODERS["Pascal"].streams("vp9")


def test_when_a_prediction_pays():
    assert pytest.approx(1 / 12) == claims.VECTOR_MULTIPLY
    assert claims.least_intensity(1e11, 1e13, 5e10) == pytest.approx(1 / (5e10 * (1e-11 - 1e-13)))
    assert claims.least_intensity(1e11, 1e13, 5e10) > claims.VECTOR_MULTIPLY
    with pytest.raises(ValueError, match="computes no faster than the CPU never pays"):
        claims.least_intensity(1e12, 1e12, 5e10)
    with pytest.raises(ValueError, match="at least the input and the answer cross the bus"):
        claims.intensity(1, 0)


def test_what_was_not_found_is_said():
    assert len(claims.NOT_FOUND) == 3
    assert "assumed" in claims.NOT_FOUND["the footnote of the 13 servers"]
