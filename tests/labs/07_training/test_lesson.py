"""What lesson 07 rests on: the data centre's arithmetic, readings of HLO, and recorded numbers that texts quote."""

import re

import nbformat
import pytest

from kernels.training import data_centre, hlo, recordings
from warpcourse.paths import COURSE

LESSON = COURSE / "notebooks" / "07_training.ipynb"
VALUES = recordings.values()
ORIGIN = recordings.recorded("kernel_table").origin
KERNELS = {(row["way"], row["name"]): row["gbps"] for row in VALUES["kernel_table"]["kernels"]}
XLA = {(row["way"], row["name"]): row for row in VALUES["xla_through_jax"]["kernels"]}

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


def rates():
    forward = XLA["forward", "XLA"]["gbps"], KERNELS["forward", "cuda_float4"], KERNELS["forward", "copy"]
    one_by_one = XLA["forward", "op by op"]["gbps"], KERNELS["forward", "cupy, op by op"]
    return (
        f"In the recording ({ORIGIN})",
        "one fused pass reaches {:.0f} GB/s by XLA and {:.0f} by hand, beside {:.0f} for a copy".format(*forward),
        "Operation by operation it is {:.0f} in JAX and {:.0f} in CuPy".format(*one_by_one),
        f"JAX's gradients at {XLA['backward', 'op by op']['gbps']:.0f} GB/s",
    )


def gradients():
    row = XLA["backward", "XLA"]
    assert row["kernels"] == 2
    assert sum(" fusion(" in line for line in row["entry"]) == 2
    assert any("f32[64,4096]" in line and "f32[8192,4096]" in line and " fusion(" in line for line in row["entry"])
    return (f"at {KERNELS['backward', 'cuda_float4']:.0f} GB/s against {row['gbps']:.0f}", "64 partial sums")


def handed_over():
    value = VALUES["dlpack_through_pytorch"]
    seconds = {way["name"]: way["seconds"] for way in value["ways"]}
    assert value["same_address"]
    nbytes = 2 * 4 * value["rows"] * value["columns"]
    own = nbytes / KERNELS["forward", "cuda_float4"] / 1e3
    return (
        f"In the recording ({recordings.recorded('dlpack_through_pytorch').origin})",
        f"{seconds['DLPack'] * 1e6:.0f} µs by DLPack and {seconds['NumPy'] * 1e6:.0f} µs by way of NumPy",
        f"{value['rows']} × {value['columns']} numbers",
        f"the kernel itself needs {own:.0f} µs",
    )


def by_hand():
    for way in ("forward", "backward"):
        assert 0.9 < XLA[way, "XLA"]["gbps"] / KERNELS[way, "cuda_float4"] <= 1
    return ("within a tenth of the kernels by hand",)


QUOTED = {
    "training-verdict-xla": by_hand,
    "training-rates-after": rates,
    "training-xla-backward-after": gradients,
    "training-dlpack-after": handed_over,
}


@pytest.mark.parametrize("cell", QUOTED)
def test_the_text_quotes_what_was_recorded(cell):
    text = next(c.source for c in nbformat.read(LESSON, as_version=4).cells if c.id == cell)
    for phrase in QUOTED[cell]():
        assert phrase in text


def test_headers_say_what_was_recorded():
    folder = recordings.path.parent
    source = (folder / "bias_gelu.cu").read_text() + (folder / "numba_kernels.py").read_text()
    said = re.findall(r"Reached: (\d+) GB/s, (0\.\d\d) of the copy", source)
    recorded = [
        (f"{KERNELS[way, name]:.0f}", f"{KERNELS[way, name] / KERNELS[way, 'copy']:.2f}")
        for name in ("cuda", "cuda_float4", "numba")
        for way in ("forward", "backward")
    ]
    assert said == recorded
