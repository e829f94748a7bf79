"""Messages through pipes: one JSON object, and NumPy arrays as .npz.

    length of the JSON, 8 bytes  length of the .npz, 8 bytes  JSON  .npz

The most significant byte of a length comes first. Whoever reads a message reads data: arrays of objects, which would
be pickles, are refused on both sides, and arrays at all where none are expected.
"""

import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

HEADER = struct.Struct(">QQ")
MOST_JSON, MOST_ARRAYS = 512 << 20, 1 << 30  # bytes
Message = tuple[dict[str, Any], dict[str, np.ndarray]]


class BadMessage(ValueError):
    """Bytes that are no message, or a message with more in it than is taken."""


def pack(message: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> bytes:
    """Return a message as sent through a pipe. Raises ValueError for arrays of objects and TypeError for no JSON."""
    text = json.dumps(dict(message)).encode()
    body = io.BytesIO()
    if arrays:
        np.savez(body, allow_pickle=False, **arrays)
    packed = body.getvalue()
    if len(text) > MOST_JSON or len(packed) > MOST_ARRAYS:
        raise BadMessage(f"{(len(text) + len(packed)) >> 20} MiB do not fit into one message; send less at once")
    return HEADER.pack(len(text), len(packed)) + text + packed


def length(head: bytes, arrays: bool = False) -> int:
    """Return the bytes of a message that begins with the header `head`. `arrays`: whether it may hold arrays."""
    text, packed = HEADER.unpack(head)
    if text > MOST_JSON or packed > (MOST_ARRAYS if arrays else 0):
        raise BadMessage("the bytes in the pipe are no message")
    return HEADER.size + text + packed


def unpack(data: bytes, arrays: bool = False) -> Message:
    """Return the JSON object and the arrays of a whole message. Raises BadMessage."""
    size = length(data[: HEADER.size], arrays)
    end = HEADER.size + HEADER.unpack(data[: HEADER.size])[0]
    try:
        message = json.loads(data[HEADER.size : end])
        found = _arrays(data[end:size]) if size > end else {}
    except (ValueError, zipfile.BadZipFile, EOFError, OSError, KeyError) as error:
        raise BadMessage(f"a message cannot be read: {error}") from error
    if not isinstance(message, dict):
        raise BadMessage("a message's JSON is no object")
    return message, found


def read(stream: BinaryIO, arrays: bool = False) -> Message | None:
    """Return the next message of a pipe, None at its end. Raises BadMessage for anything else."""
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    rest = length(head, arrays) - HEADER.size
    body = stream.read(rest)
    return unpack(head + body, arrays) if len(body) == rest else None


def take_over() -> tuple[BinaryIO, BinaryIO]:
    """Return this process's standard input and output, for messages alone.

    What a library prints goes to standard error from now on, and whoever reads standard input finds its end.
    """
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return questions, answers


def reply(stream: BinaryIO, message: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> None:
    """Send a message."""
    stream.write(pack(message, arrays))
    stream.flush()


def _arrays(packed: bytes) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(packed)) as members:
        if sum(member.file_size for member in members.infolist()) > MOST_ARRAYS:
            raise BadMessage("a message's arrays are larger than is taken")
    with np.load(io.BytesIO(packed), allow_pickle=False) as loaded:
        return {name: loaded[name] for name in loaded.files}
