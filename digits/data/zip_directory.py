"""How many files a zip archive lists, counted without taking the list into memory.

`zipfile` makes an object of each entry before anybody can ask how many there are; a directory of some hundred megabytes
then fills the memory. Layout: APPNOTE.TXT 6.3.10, 4.3.12 to 4.3.16.
"""

import struct
from typing import BinaryIO

_END = struct.Struct("<4s4H2LH")  # signature, disks, entries, directory's size, its offset, length of the comment
_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")  # the last two: the directory's size and offset
_ENTRY = 46  # bytes of an entry before its name
_LENGTHS = struct.Struct("<3H")  # of name, extra field and comment, at _LENGTHS_AT
_LENGTHS_AT = 28
_LONGEST_COMMENT = 0xFFFF


def count(stream: BinaryIO, most: int) -> int:
    """Return how many entries the archive's directory has, most + 1 if it has more; 0 if there is none to be found."""
    place = _directory(stream)
    if place is None:
        return 0
    start, length = place
    stream.seek(start)
    entries, read = 0, 0
    while read + _ENTRY <= length and entries <= most:
        head = stream.read(_ENTRY)
        if len(head) < _ENTRY or head[:4] != b"PK\x01\x02":
            break
        more = sum(_LENGTHS.unpack_from(head, _LENGTHS_AT))
        stream.seek(more, 1)
        read += _ENTRY + more
        entries += 1
    return entries


def _directory(stream: BinaryIO) -> tuple[int, int] | None:
    """Return where the directory begins and its length, as `zipfile` finds them, or None."""
    size = stream.seek(0, 2)
    tail_at = max(0, size - _END.size - _LONGEST_COMMENT)
    stream.seek(tail_at)
    tail = stream.read()
    without_comment = tail[-_END.size :]
    if len(without_comment) == _END.size and without_comment[:4] == b"PK\5\6" and without_comment[-2:] == b"\0\0":
        at = len(tail) - _END.size
    else:
        at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < _END.size:
        return None
    end = tail_at + at
    length = _END.unpack_from(tail, at)[5]
    end_64 = end - _LOCATOR.size - _END_64.size
    if end_64 >= 0:
        stream.seek(end_64)
        record = stream.read(_END_64.size + _LOCATOR.size)
        if record[:4] == b"PK\6\6" and record[_END_64.size :][:4] == b"PK\6\7":
            end, length = end_64, _END_64.unpack_from(record)[8]
    return (end - length, length) if length <= end else None
