"""Messages through pipes: the length in 8 bytes, most significant first, then JSON."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

MAX_MESSAGE = 512 * 2**20  # bytes


def pack(message: dict[str, Any]) -> bytes:
    """Return a message as sent through a pipe."""
    body = json.dumps(message).encode()
    return len(body).to_bytes(8, "big") + body


def unpack(stream: BinaryIO) -> dict[str, Any] | None:
    """Read the next message of a pipe, None at its end. Raises ValueError for anything else."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    length = int.from_bytes(head, "big")
    if length > MAX_MESSAGE:
        raise ValueError(f"a message of {length} bytes")
    body = stream.read(length)
    return json.loads(body) if len(body) == length else None
