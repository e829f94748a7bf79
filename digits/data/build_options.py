"""What a dataset of images is to become: size, resize mode, split, and how many images of a class."""

from dataclasses import dataclass
from typing import Any

from digits.data.resize import check_size
from digits.data.split import check_shares
from digits.files import DigitsError


@dataclass(frozen=True)
class BuildOptions:
    """height, width: pixels. channels: 1 for grey, 3 for colour. resize: a mode of digits.data.resize.

    validation, test: shares of each class. seed: of the draw, and of the noise beside images that are filled.
    least: classes of fewer images are left out. most: so many images of a class are drawn, all if 0.
    Raises DigitsError for a number that makes no sense.
    """

    height: int = 32
    width: int = 32
    channels: int = 3
    resize: str = "squash"
    validation: float = 0.15
    test: float = 0.15
    seed: int = 0
    least: int = 2
    most: int = 0

    def __post_init__(self) -> None:
        for name in ("height", "width", "channels", "seed", "least", "most"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
                raise DigitsError(f"{name} is {value!r}. Give a whole number, 0 or more.")
        for name in ("validation", "test"):
            if isinstance(getattr(self, name), bool) or not isinstance(getattr(self, name), int | float):
                raise DigitsError(f"{name} is {getattr(self, name)!r}. Give a share, such as 0.15.")
        check_size(self.height, self.width, self.channels, self.resize)
        check_shares(self.validation, self.test)
        if self.least < 1:
            raise DigitsError("A class needs 1 image at least, or more.")
        if 0 < self.most < self.least:
            raise DigitsError(f"At most {self.most} images of a class, but at least {self.least}: no class has both.")

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "BuildOptions":
        try:
            return cls(**value)
        except TypeError as error:
            raise DigitsError(f"A dataset's options are damaged ({error}). Build the dataset anew.") from error
