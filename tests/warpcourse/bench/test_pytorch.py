"""PyTorch as a peer, as far as it need not be installed: what is said without it, and the layers of its ResNets."""

import importlib.util
from types import SimpleNamespace

import pytest

from warpcourse.bench import pytorch


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_pytorch_a_sentence_says_so():
    with pytest.raises(RuntimeError, match="torch is not installed, and this measurement is made with it"):
        pytorch.torch_on_gpu()


@pytest.mark.parametrize(("blocks", "parameters"), [((3, 4, 6, 3), 25_557_032), ((3, 4, 23, 3), 44_549_160)])
def test_a_resnet_has_as_many_parameters_as_torchvisions(blocks, parameters):
    counted = []

    def layer(count):
        return lambda *sizes, **_: counted.append(count(*sizes))

    nn = SimpleNamespace(
        Module=object,
        Conv2d=layer(lambda channels, filters, side, *_: channels * filters * side**2),
        BatchNorm2d=layer(lambda channels: 2 * channels),
        Linear=layer(lambda features, classes: (features + 1) * classes),
    )
    for name in ("Sequential", "Identity", "ReLU", "MaxPool2d", "AdaptiveAvgPool2d", "Flatten"):
        setattr(nn, name, layer(lambda *_: 0))
    assert len(pytorch.resnet(SimpleNamespace(nn=nn), blocks)) == 2 + sum(blocks)
    assert sum(counted) == parameters
