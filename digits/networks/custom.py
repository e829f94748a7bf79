"""Networks that a user writes in Keras: the code runs in a sandbox, and only a description of the network comes out.

configuration = configure(source, image=(28, 28, 1), classes=10, confirmed=True)
model = build((28, 28, 1), 10, {"configuration": configuration})
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from digits.files import DigitsError
from digits.networks import configuration as configurations
from digits.networks import sandboxed
from digits.networks.configuration import ConfigurationError
from digits.networks.sandboxed import unavailable
from warpcourse.grading.sandbox.limits import SubmissionLimits

__all__ = ["EXAMPLE", "WARNING", "CustomNetworkError", "build", "configure", "unavailable"]

MOST_SOURCE = 100_000  # characters
WARNING = (
    "This code will run on this machine: in a sandbox without network and without your files, with limits on time and "
    "memory. No sandbox is perfect. Run only code that you wrote, or have read and understood."
)
EXAMPLE = '''import keras
from keras import layers


def network(image, classes):
    """image: (height, width, channels), values from 0 to 1. Returns a Keras model: class probabilities."""
    inputs = keras.Input(image)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))
'''


class CustomNetworkError(DigitsError):
    """What is wrong with a user's network, and what to do."""


def configure(
    source: str,
    image: tuple[int, int, int],
    classes: int,
    *,
    confirmed: bool,
    limits: SubmissionLimits = sandboxed.LIMITS,
    cancelled: Callable[[], bool] = lambda: False,
    start: bytes = b"",
) -> dict[str, Any]:
    """Return the network that `network(image, classes)` in `source` returns, as plain data; takes some seconds.

    `image`: (height, width, channels). `confirmed`: whether the user has read WARNING and agreed. `cancelled`: see
    `sandboxed.run`. `start`: what the code finds as start.json, see keras_file. Raises CustomNetworkError for code that
    fails, goes beyond `limits`, or returns what cannot be used, and DigitsError where there is no sandbox.
    """
    if not confirmed:
        raise CustomNetworkError("Your code was not run. Read the warning and confirm it first.")
    if len(source) > MOST_SOURCE:
        raise CustomNetworkError(f"Your code has {len(source):,} characters; at most {MOST_SOURCE:,} are possible.")
    here = Path(__file__).parent
    files = {
        "network.py": source.encode(errors="replace"),
        # As in this package, of which the sandbox shows nothing else.
        **{f"digits/networks/{name}": (here / name).read_bytes() for name in ("custom_child.py", "configuration.py")},
        **({"start.json": start} if start else {}),
        "request.json": json.dumps({"image": list(image), "classes": classes}).encode(),
    }
    try:
        answer = _parsed(sandboxed.run(files, "digits/networks/custom_child.py", limits, cancelled))
    except sandboxed.ProgramEnded as error:
        raise CustomNetworkError(str(error)) from None
    if "error" in answer:
        raise CustomNetworkError(f"Your code failed. {str(answer['error'])[:1000]}")
    return _checked(answer.get("configuration"), image, classes)


def build(image: tuple[int, int, int], classes: int, options: dict[str, Any]) -> Any:
    """Return the Keras model of `options["configuration"]`, checked again, as files may have been changed.

    Images (batch, *image), float32, to probabilities (batch, classes). Raises CustomNetworkError.
    """
    if "configuration" not in options:
        raise CustomNetworkError("The code of this network has not been run. Check it in the panel Network first.")
    checked = _checked(options["configuration"], image, classes)
    try:
        return configurations.build(checked)
    except (ValueError, TypeError) as error:
        raise CustomNetworkError(
            f"Keras cannot build this network for images of {tuple(image)}: {_first_line(error)}"
        ) from error


def _checked(configuration: Any, image: tuple[int, int, int], classes: int) -> dict[str, Any]:
    try:
        return configurations.check(configuration, image, classes)
    except ConfigurationError as error:
        raise CustomNetworkError(str(error)) from None


def _parsed(answer: bytes) -> dict[str, Any]:
    """Return the answer as JSON. NaN and Infinity, which are none, are refused, too."""

    def constant(name: str) -> None:
        raise ValueError(name)

    try:
        found = json.loads(answer, parse_constant=constant)
    except (ValueError, RecursionError):  # UnicodeDecodeError and numbers of 5,000 digits, too
        found = None
    if not isinstance(found, dict):
        raise CustomNetworkError("Your code's answer was no description of a network. Do not write to its answer.")
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
