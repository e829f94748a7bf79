"""How questions and answers travel through a pipe: a frame holds one JSON object and NumPy arrays as .npz.

    "LOOK"  length of the JSON, 4 bytes  length of the .npz, 8 bytes  JSON  .npz

Whoever reads a frame reads data: arrays of objects, which would be pickles, are refused on both sides.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

MAGIC = b"LOOK"
HEADER = struct.Struct("<4sIQ")
MOST_JSON, MOST_ARRAYS = 16 << 20, 1 << 30  # bytes; more than any layer's pictures need


class BadFrame(ValueError):
    """Bytes that are no frame, or a frame with more in it than is taken."""


def pack(message: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> bytes:
    """The frame of a JSON object and arrays. ValueError for NaN in the JSON or an array of objects."""
    text = json.dumps(message, allow_nan=False).encode()
    body = io.BytesIO()
    if arrays:
        np.savez(body, allow_pickle=False, **arrays)
    packed = body.getvalue()
    if len(text) > MOST_JSON or len(packed) > MOST_ARRAYS:
        raise BadFrame(f"{(len(text) + len(packed)) >> 20} MiB do not fit into one frame; ask about fewer images")
    return HEADER.pack(MAGIC, len(text), len(packed)) + text + packed


def read(exactly: Callable[[int], bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The next frame's JSON object and arrays. `exactly(n)` returns the next n bytes, or raises.

    BadFrame if these bytes are no frame.
    """
    magic, text_length, array_length = HEADER.unpack(exactly(HEADER.size))
    if magic != MAGIC or text_length > MOST_JSON or array_length > MOST_ARRAYS:
        raise BadFrame("the bytes in the pipe are no frame")
    text, packed = exactly(text_length), exactly(array_length)
    try:
        message = json.loads(text)
        arrays = _arrays(packed) if packed else {}
    except (ValueError, zipfile.BadZipFile, EOFError, OSError, KeyError) as error:
        raise BadFrame(f"a frame cannot be read: {error}") from error
    if not isinstance(message, dict):
        raise BadFrame("a frame's JSON is no object")
    return message, arrays


def _arrays(packed: bytes) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(packed)) as members:
        if sum(member.file_size for member in members.infolist()) > MOST_ARRAYS:
            raise BadFrame("a frame's arrays are larger than is taken")
    with np.load(io.BytesIO(packed), allow_pickle=False) as loaded:
        return {name: loaded[name] for name in loaded.files}
