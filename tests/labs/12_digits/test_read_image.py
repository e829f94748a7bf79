"""Images of every kind, and files that only look like images."""

from __future__ import annotations

import io
import logging
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from digits.data import read_image as module
from digits.data.read_image import FORMATS, BadImage, read_image

COLOURS = np.random.default_rng(1).integers(0, 256, (6, 9, 3), np.uint8)
COLOUR = Image.fromarray(COLOURS)


def encoded(image, form="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["PNG", "TIFF", "BMP", "PPM"])
def test_lossless_formats_keep_the_pixels(form):
    assert np.array_equal(read_image(encoded(COLOUR, form)), COLOURS)
    grey = read_image(encoded(COLOUR.convert("L"), form))
    assert grey.mode == "L"
    assert np.array_equal(grey, COLOUR.convert("L"))


@pytest.mark.parametrize("form", ["JPEG", "GIF", "WEBP"])
def test_lossy_formats_keep_the_picture(form):
    smooth = Image.fromarray(np.tile(np.arange(0, 240, 5, dtype=np.uint8), (48, 1)))
    result = np.asarray(read_image(encoded(smooth, form)).convert("L")).astype(int)
    assert np.abs(result - np.asarray(smooth)).mean() < 4


def test_every_format_is_covered():
    assert set(FORMATS) == {"PNG", "TIFF", "BMP", "PPM", "JPEG", "GIF", "WEBP"}


@pytest.mark.parametrize("mode", ["1", "P", "RGBA", "CMYK", "YCbCr"])
def test_other_modes_become_grey_or_colour(mode):
    result = read_image(encoded(COLOUR.convert(mode), "PNG" if mode in "1 P RGBA" else "TIFF"))
    assert result.mode == ("L" if mode == "1" else "RGB")
    assert result.size == (9, 6)


def test_sixteen_bits_become_eight():
    grey = (np.arange(54).reshape(6, 9) * 1200).astype(np.uint16)
    for data in (encoded(Image.fromarray(grey)), encoded(Image.fromarray(grey.astype(np.int32)), "TIFF")):
        assert np.array_equal(read_image(data), grey >> 8)


def test_eight_bits_in_wide_pixels_stay():
    grey = np.arange(54, dtype=np.int32).reshape(6, 9)
    assert np.array_equal(read_image(encoded(Image.fromarray(grey), "TIFF")), grey)


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (Image.new("F", (4, 4)), "floating-point"),
        (Image.fromarray(np.full((4, 4), 1 << 20, np.int32)), "more than 16 bits"),
        (Image.fromarray(np.full((4, 4), -1, np.int32)), "more than 16 bits"),
    ],
)
def test_pixels_without_a_known_range_are_refused(image, why):
    with pytest.raises(BadImage, match=why):
        read_image(encoded(image, "TIFF"))


def test_transparent_pixels_lie_on_white():
    colour = np.zeros((2, 2, 4), np.uint8)
    colour[0, 0] = [200, 0, 0, 255]
    colour[0, 1] = [200, 0, 0, 0]
    colour[1] = [0, 0, 0, 128]
    result = np.asarray(read_image(encoded(Image.fromarray(colour))))
    assert result[0].tolist() == [[200, 0, 0], [255, 255, 255]]
    assert np.abs(result[1].astype(int) - 127).max() <= 1
    grey = Image.fromarray(np.array([[0, 90]], np.uint8))
    assert np.asarray(read_image(encoded(grey, transparency=0))).tolist() == [[255, 90]]
    assert read_image(encoded(grey.convert("LA"))).mode == "L"


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_image_stands_upright(form, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    corner = np.zeros((32, 64), np.uint8)
    corner[:16, :16] = 255  # top left as stored
    upright = np.asarray(read_image(encoded(Image.fromarray(corner), form, exif=exif)).convert("L"))
    assert upright.shape == ((32, 64) if orientation <= 4 else (64, 32))
    bright = np.argwhere(upright > 128).mean(axis=0) / upright.shape
    where = ("top" if bright[0] < 0.5 else "bottom") + (" left" if bright[1] < 0.5 else " right")
    # Exif 2.3, tag 0x0112: where the stored image's first row and first column lie.
    places = ["top left", "top right", "bottom right", "bottom left"]
    assert where == (places + ["top left", "top right", "bottom right", "bottom left"])[orientation - 1]


def test_broken_metadata_does_not_spoil_the_picture():
    data = encoded(Image.fromarray(COLOURS), exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert np.array_equal(read_image(data), COLOURS)


def test_first_frame_of_an_animation():
    frames = [Image.new("L", (4, 4), value) for value in (40, 200)]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert np.asarray(read_image(data).convert("L")).mean() == pytest.approx(40, abs=2)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "The file is empty"),
        (b"not an image", "No image in a format that is read: PNG, JPEG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n", "No image in a format"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "No image in a format"),
        (encoded(COLOUR)[:-40], "damaged"),
        (encoded(COLOUR, "JPEG")[:250], "damaged"),
    ],
)
def test_what_is_no_whole_image_says_why(data, why):
    with pytest.raises(BadImage, match=why):
        read_image(data)


def test_bomb_is_refused_before_it_is_decoded(monkeypatch):
    def decoded(*_):
        raise AssertionError("decoded")

    monkeypatch.setattr(Image.Image, "load", decoded)
    for side in (8000, 30_000):  # beyond our limit, and beyond Pillow's
        header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
        chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
        data = b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
            for kind, body in chunks
        )
        with pytest.raises(BadImage, match="million"):
            read_image(data)


def test_large_file_is_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    with pytest.raises(BadImage, match="the most that is read"):
        read_image(bytes(101))


def test_damaged_bytes_give_a_reason_or_an_image(monkeypatch):
    logging.getLogger("PIL").setLevel(logging.CRITICAL)
    monkeypatch.setattr(module, "MOST_PIXELS", 1_000_000)
    seed = 11
    rng = np.random.default_rng(seed)
    reasons = []
    for form in FORMATS:
        whole = encoded(COLOUR, form)
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(rng.integers(1, 6)):
                data[rng.integers(len(data))] = rng.integers(256)
            try:
                assert read_image(bytes(data)).mode in ("L", "RGB")
            except BadImage as error:
                reasons.append(str(error))
    assert len(reasons) > 100, f"seed {seed}"
    assert all(reason.endswith(".") for reason in reasons)
