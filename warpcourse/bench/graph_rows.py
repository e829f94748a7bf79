"""A network's layers in rows, as pictures of it stand: each layer below what it reads, lines led around the boxes."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Place:
    """Where a layer stands or, with None as `content`, a line on its way through a row.

    `number`: of the layer, or of the first one that the line leads to, in their order. `above`, `below`: the places of
    the next rows that lines lead to. `x`: the middle, in the picture's own unit.
    """

    row: int
    number: int
    content: Any
    above: "list[Place]"
    below: "list[Place]" = field(default_factory=list)
    x: float = 0.0


def rows(layers: Iterable[tuple[Hashable, Iterable[Hashable], Any]]) -> list[list[Place]]:
    """Return the places of layers, row by row: each one row below the lowest of those that it reads.

    `layers`: (name, names of those that it reads, what stands in its place), each after those that it reads; names of
    no layer are passed over. Lines from one layer share their places in the rows that they pass.
    """
    boxes: dict[Hashable, Place] = {}
    for name, reads, content in layers:
        above = [boxes[other] for other in dict.fromkeys(reads) if other in boxes]
        boxes[name] = box = Place(1 + max((other.row for other in above), default=-1), len(boxes), content, above)
        for other in above:
            other.below.append(box)
    found: list[list[Place]] = [[] for _ in range(1 + max(box.row for box in boxes.values()))]
    for box in boxes.values():
        found[box.row].append(box)
        readers, box.below = box.below, []
        way = [box]
        for reader in readers:
            while way[-1].row < reader.row - 1:
                way.append(Place(way[-1].row + 1, reader.number, None, [way[-1]]))
                way[-2].below.append(way[-1])
                found[way[-1].row].append(way[-1])
            last = way[reader.row - 1 - box.row]
            last.below.append(reader)
            reader.above = [last if other is box else other for other in reader.above]
    return found
