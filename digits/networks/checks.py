"""What builders ask of their options and of the images."""

from collections.abc import Mapping
from typing import Any

from digits.files import DigitsError


def number(network: str, options: Mapping[str, Any], name: str, low: float, high: float, whole: bool = False) -> float:
    """Return the option `name`. Raises DigitsError unless it is a number from `low` to `high`, and whole if asked."""
    value = options.get(name)
    wrong = isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high
    if wrong or (whole and int(value) != value):  # type: ignore[arg-type]
        kind = "a whole number" if whole else "a number"
        raise DigitsError(f"{name} of the network {network} must be {kind} from {low:g} to {high:g}, not {value!r}.")
    return value  # type: ignore[return-value]


def at_least(network: str, image: tuple[int, int, int], pixels: int) -> None:
    """Raise DigitsError if an image has fewer than `pixels` × `pixels` pixels."""
    height, width, _ = image
    if min(height, width) < pixels:
        raise DigitsError(
            f"The network {network} needs images of at least {pixels} × {pixels} pixels; these have {height} × {width}."
            " Build the dataset with larger images, or choose another network."
        )
