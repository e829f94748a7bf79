"""The arithmetic and the readings that lesson 07 rests on: the data centre's, and those of HLO."""

import pytest

from kernels.training import data_centre, hlo

MODULE = """HloModule a_inference_f_91__.2, is_scheduled=true, entry_computation_layout={(f32[4]{0})->(f32[4]{0})}

%fused_computation (param_0.3: f32[4]) -> f32[4] {
  %param_0.3 = f32[4]{0} parameter(0)
  %c.1 = f32[] constant(2), metadata={op_type="Mul" op_name="mul"}
  %b.1 = f32[4]{0} broadcast(%c.1), dimensions={}
  ROOT %mul.2 = f32[4]{0} multiply(%param_0.3, %b.1), metadata={op_type="Mul"}
}

ENTRY %main.5 (arg0.1: f32[4]) -> (f32[4]) {
  %arg0.1 = f32[4]{0} parameter(0)
  %mul_fusion = f32[4]{0} fusion(%arg0.1), kind=kLoop, calls=%fused_computation, backend_config={"x":1}
  %copy.1 = f32[4]{0} copy(%mul_fusion)
  ROOT %tuple.2 = (f32[4]{0}) tuple(%copy.1)
}
"""


def test_computations_of_a_module():
    found = hlo.computations(MODULE)
    assert list(found) == ["fused_computation", "ENTRY"]
    assert found["fused_computation"][1] == "%c.1 = f32[] constant(2)"
    assert found["ENTRY"][1] == "%mul_fusion = f32[4]{0} fusion(%arg0.1), kind=kLoop, calls=%fused_computation"


def test_operations_and_launches_of_a_module():
    assert hlo.operations(hlo.entry(MODULE)) == {"parameter": 1, "fusion": 1, "copy": 1, "tuple": 1}
    assert hlo.launched(MODULE) == 2


def test_a_text_without_entry_is_no_module():
    with pytest.raises(ValueError, match="it has no ENTRY computation"):
        hlo.entry("HloModule nothing\n")


def test_the_talks_cycle_is_ten_exaflop_and_4096_gigabytes():
    assert round(data_centre.tflops(10, 8), -1) == 350
    assert round(data_centre.tflops(10, 2) / 1000, 1) == 1.4  # the talk says 1.5
    for hours, claimed in ((8, 142), (2, 568)):
        assert data_centre.megabytes_per_second(4.096, hours) == pytest.approx(claimed, abs=1)


def test_an_exaflop_a_day():
    assert data_centre.tflops(30, 30 * 24) == pytest.approx(11.57, abs=0.01)
    assert data_centre.gpu_days(30, 11.574) == pytest.approx(30, rel=1e-4)
    assert data_centre.gpu_days(30, 10.6) > 30  # a P100's peak in FP32
    assert data_centre.gpu_days(30, 15.7, 0.74) < 30 < data_centre.gpu_days(30, 15.7, 0.73)


def test_whole_cards():
    assert data_centre.cards_needed(10, 8, 15.7) == 23
    assert data_centre.cards_needed(3.6, 1000, 1) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data_centre.tflops(1, 0), "hours is 0; it must be above 0"),
        (lambda: data_centre.gpu_days(1, -2), "peak_tflops is -2; it must be above 0"),
        (lambda: data_centre.gpu_days(1, 1, 40), "share is 40; it is a part of the peak, above 0 and at most 1"),
    ],
)
def test_the_calculator_names_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
