"""Graphs of basic blocks, instructions or functions: where each leads to, by its number or name."""

from collections.abc import Collection
from typing import Any


def reached(following: Any, start) -> set:
    """Return what can be reached from `start` in at least one step; itself only if a way comes back.

    `following[node]`: the nodes that a node leads to.
    """
    found: set = set()
    work = list(following[start])
    while work:
        node = work.pop()
        if node not in found:
            found.add(node)
            work += following[node]
    return found


def components(nodes: Collection, following: Any) -> list[list]:
    """Return the strongly connected components of the graph among `nodes`, each sorted; those that others lead to
    first. [R. Tarjan, 1972, without recursion.]"""
    inside = set(nodes)
    found: dict[Any, int] = {}  # node → when it was first seen
    lowest: dict[Any, int] = {}
    open_: dict[Any, None] = {}  # seen and not yet in a component, in the order of being seen
    result = []
    for start in nodes:
        if start in found:
            continue
        found[start] = lowest[start] = len(found)
        open_[start] = None
        way = [(start, iter(following[start]))]
        while way:
            node, rest = way[-1]
            for other in rest:
                if other not in inside:
                    continue
                if other not in found:
                    found[other] = lowest[other] = len(found)
                    open_[other] = None
                    way.append((other, iter(following[other])))
                    break
                if other in open_:
                    lowest[node] = min(lowest[node], found[other])
            else:
                way.pop()
                if way:
                    lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[node])
                if lowest[node] == found[node]:
                    component: list = []
                    while not component or component[-1] != node:
                        component.append(open_.popitem()[0])
                    result.append(sorted(component))
    return result
