"""What is derived from data sheets and recordings for the claim of 2.5 × and 3 ×."""

import math
from dataclasses import replace

import pytest

from kernels.convolution.definition import networks
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.lesson import claim
from warplab.hardware.cards import CARDS

V100 = CARDS["V100"]


def convolution_layer(c):
    conv = Convolution(32, c, 14, 14, 256, 3, 3, (1, 1))
    return networks.LayerGroup("a convolution", "convolution", conv.x_shape(), 2, conv)


def test_a_convolution_with_many_channels_is_bound_by_its_operations():
    layer = convolution_layer(256)
    expected = 2 * 3 * layer.convolution.flops / 15.7e12
    assert claim.least_seconds(V100, [layer], mixed=False) == pytest.approx(expected)


def test_the_image_needs_no_gradient():
    layer = convolution_layer(3)
    assert claim.least_seconds(replace(V100, bandwidth_gbs=1e9), [layer], mixed=False) == pytest.approx(
        2 * 2 * layer.convolution.flops / 15.7e12
    )


def test_an_activation_is_bound_by_its_bytes_and_float16_halves_them():
    layer = networks.LayerGroup("an activation", "ReLU", (32, 64, 56, 56), 3)
    expected = 3 * 5 * 4 * 32 * 64 * 56 * 56 / 900e9
    assert claim.least_seconds(V100, [layer], mixed=False) == pytest.approx(expected)
    assert claim.least_seconds(V100, [layer], mixed=True) == pytest.approx(expected / 2)


def test_bounds_of_a_network_lie_between_those_of_its_limits():
    factors = {factor.what: factor.factor for factor in claim.card_factors()}
    peak, bandwidth, both = list(factors.values())[:3]
    assert bandwidth < both < peak
    assert peak == pytest.approx(15.7 / 10.6)


def row(precision, mode, seconds):
    return {"precision": precision, "mode": mode, "batch": 32, "seconds": seconds}


VALUES = {
    "network": {
        "configurations": [
            row("float32", "training", 6.0),
            row("float32", "inference", 1.0),
            row("tf32", "training", 3.0),
            row("mixed", "training", 1.5),
        ]
    },
    "forward": {"rows": [{"first_choice": 1.0}, {"first_choice": 4.0}]},
    "searches": {
        "searches": [
            {
                "dtype": "float32",
                "tensor_cores": tensor_cores,
                "rows": [
                    {"algorithm": "FFT", "seconds": 2.0 / (1 + tensor_cores), "status": "ok"},
                    {"algorithm": "WINOGRAD", "seconds": None, "status": "CUDNN_STATUS_NOT_SUPPORTED"},
                    {"algorithm": "IMPLICIT_GEMM", "seconds": 5.0, "status": "ok"},
                ],
            }
            for tensor_cores in (True, False)
        ]
    },
    "lstm": {
        "cases": [
            {
                "steps": 5,
                "batch": 2,
                "inputs": 8,
                "hidden": 16,
                "rows": [
                    {
                        "algorithm": algorithm,
                        "by": by,
                        "dtype": dtype,
                        "tensor_cores": dtype == "float16",
                        "seconds": seconds,
                        "backward_seconds": seconds,
                    }
                    for algorithm, by, dtype, seconds in (
                        ("STANDARD", "cuDNN", "float32", 6.0),
                        ("STANDARD", "cuDNN", "float16", 3.0),
                        ("PERSIST_STATIC", "cuDNN", "float16", 1.0),
                        ("pointwise", "lab", "float16", 0.1),
                    )
                ],
            }
        ]
    },
}


def test_measured_factors_compare_like_with_like():
    found = claim.measured_factors(VALUES)
    assert [round(factor.factor, 6) for factor in found] == [2.0, 4.0, 2.0, 2.5, 2.0, 3.0]
    assert {factor.origin for factor in found} == {"measured"}
    assert [factor.part for factor in found] == ["tensor cores"] * 2 + ["library"] * 2 + ["tensor cores", "library"]


@pytest.mark.parametrize("missing", VALUES)
def test_what_was_not_measured_is_left_out(missing):
    found = claim.measured_factors({key: value for key, value in VALUES.items() if key != missing})
    assert 0 < len(found) < len(claim.measured_factors(VALUES))
    assert all(math.isfinite(factor.factor) for factor in found)
