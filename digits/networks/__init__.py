"""Networks by name. A builder is imported when a network is built, and brings TensorFlow with it.

    model = build("lenet", image=(8, 8, 1), classes=10, options={})

What every network promises: input (batch, height, width, channels), float32, from 0 to 1; one that classifies puts out
probabilities, (batch, classes), float32. Of several outputs the first is the answer and the others only help training.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from digits.files import DigitsError


@dataclass(frozen=True)
class Network:
    """`builder`: "module:function", called as function(image, classes, options). `options`: with their defaults.

    `written`: options without a default, which come from what a person wrote.
    """

    name: str
    title: str
    kinds: tuple[str, ...]
    builder: str
    options: Mapping[str, Any] = field(default_factory=dict)
    written: tuple[str, ...] = ()


NETWORKS: dict[str, Network] = {
    network.name: network
    for network in (
        Network(
            "lenet",
            "LeNet-like: two convolutions, two dense layers",
            ("classification",),
            "digits.networks.lenet:build",
            {"filters": 32, "units": 128, "dropout": 0.5},
        ),
        Network(
            "googlenet",
            "Small GoogLeNet with a residual block (lab 09)",
            ("classification",),
            "digits.networks.googlenet:build",
        ),
        Network(
            "custom",
            "Your own Keras code",
            ("classification",),
            "digits.networks.custom:build",
            written=("configuration", "source"),
        ),
        Network(
            "detectnet",
            "DetectNet-like: coverage map and boxes on a grid",
            ("detection",),
            "digits.networks.detectnet:build",
            {"filters": 16, "blocks": 3},
        ),
        Network(
            "fcn",
            "Fully convolutional with skip connections",
            ("segmentation",),
            "digits.networks.fcn:build",
            {"filters": 16, "skips": 2},
        ),
    )
}


def known(name: str, options: Iterable[str]) -> Network:
    """Return the network. Raises DigitsError if there is none of this name, or it lacks one of these options."""
    network = NETWORKS.get(name)
    if network is None:
        raise DigitsError(f"There is no network {name!r}. Choose one of {', '.join(NETWORKS)}.")
    its = (*network.options, *network.written)
    if unknown := [option for option in options if option not in its]:
        raise DigitsError(f"The network {name} has no option {unknown[0]!r}. It has {', '.join(its) or 'none'}.")
    return network


def build(name: str, image: tuple[int, int, int], classes: int, options: Mapping[str, Any] | None = None) -> Any:
    """Return the untrained keras.Model `name` for images of (height, width, channels).

    Raises DigitsError if there is no such network, an option is unknown or wrong, or the image is too small for it.
    """
    network = known(name, options or {})
    module, function = network.builder.split(":")
    builder = getattr(import_module(module), function)
    return builder(tuple(image), classes, {**network.options, **(options or {})})
