"""An image of unknown origin to pixels: few formats, few sizes, and a reason for what cannot be read."""

import io
import warnings
from typing import cast

import numpy as np
from PIL import Image, ImageOps

from digits.files import DigitsError

# Formats with a decoder in Pillow itself. Some others hand the file to programs, such as EPS to Ghostscript.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
MOST_BYTES = 64 << 20  # of a file
MOST_PIXELS = 50_000_000  # of an image: 150 MB in colour
_WHITE = 255  # what transparent pixels lie on, as in DIGITS


class BadImage(DigitsError):
    """Why a file is not taken as an image."""


def read_image(data: bytes) -> Image.Image:
    """Return the image in `data`, the content of a file, upright as its EXIF says, of mode "L" or "RGB".

    Of an animation the first frame. 16-bit grey is divided by 256. Transparent pixels lie on white. Raises BadImage
    with the reason for what is no image, is cut off, too large or of a kind that has no 8-bit picture.
    """
    if not data:
        raise BadImage("The file is empty.")
    if len(data) > MOST_BYTES:
        raise BadImage(f"The file has {len(data) / 1e6:.0f} MB; {MOST_BYTES / 1e6:.0f} MB is the most that is read.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Pillow, on sizes and odd metadata; the size is checked below
            return _pixels(data)
    except DigitsError:
        raise
    except Image.UnidentifiedImageError:
        raise BadImage(f"No image in a format that is read: {', '.join(FORMATS)}.") from None
    except MemoryError:
        raise BadImage("Too large for this machine's memory.") from None
    except Exception as error:
        # Decoders of damaged files raise whatever their arithmetic runs into.
        raise BadImage(f"The image is damaged: {str(error) or type(error).__name__}.") from error


def _pixels(data: bytes) -> Image.Image:
    try:
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError:
        raise BadImage(f"More than {MOST_PIXELS / 1e6:.0f} million pixels, the most that is read.") from None
    if image.width * image.height > MOST_PIXELS:
        size = f"{image.width} × {image.height} pixels"
        raise BadImage(f"{size} are more than {MOST_PIXELS / 1e6:.0f} million, the most that is read.")
    image.load()
    return _upright(_eight_bit(image))


def _eight_bit(image: Image.Image) -> Image.Image:
    """Return the image in mode "L" or "RGB", with its metadata."""
    about = dict(image.info)
    if image.mode.startswith("I;16"):
        grey = np.asarray(image).astype(np.uint16) >> 8
        image = Image.fromarray(grey.astype(np.uint8))
    elif image.mode == "I":
        grey = np.asarray(image)
        if grey.size and not (grey.min() >= 0 and grey.max() <= 0xFFFF):
            raise BadImage("Its grey levels have more than 16 bits. Save it with 8 bits.")
        eight_bits = grey.size == 0 or grey.max() <= _WHITE
        image = Image.fromarray((grey if eight_bits else grey >> 8).astype(np.uint8))
    elif image.mode == "F":
        raise BadImage("Its pixels are floating-point numbers without a known range. Save it with 8 bits.")
    elif "transparency" in about or image.mode in ("LA", "PA", "RGBA", "La", "RGBa"):
        grey_mode = image.mode in ("L", "LA", "La")
        see_through = image.convert("RGBA")
        on_white = Image.new("RGBA", image.size, (_WHITE, _WHITE, _WHITE, 255))
        image = Image.alpha_composite(on_white, see_through).convert("L" if grey_mode else "RGB")
    elif image.mode in ("1", "L"):
        image = image.convert("L")
    else:
        image = image.convert("RGB")
    if "exif" in about:
        image.info["exif"] = about["exif"]
    return image


def _upright(image: Image.Image) -> Image.Image:
    try:
        return cast(Image.Image, ImageOps.exif_transpose(image))
    except Exception:
        return image  # metadata that cannot be read does not spoil a picture that can
