"""Random notebooks, changed as JSON and as bytes, read and put together with the instructor's as the judge does it."""

from __future__ import annotations

import json
import random
from typing import Any

import nbformat

from tests.support.class_harness import TINY, tiny_source
from warpcourse.grading.course.outputs_left_out import without_outputs
from warpcourse.grading.judge import assembly
from warpcourse.grading.judge.untrusted import Reading, Unusable

NAME = f"{TINY}.ipynb"
SEED = nbformat.writes(tiny_source())
VALUES = [None, True, 0, -1, 1 << 70, 1e308, "", "x", "\ud800", "\0", "def double(x):\n    return 2 * x", [], {}, [[]]]
VALUES += [
    "a" * 100,
    "%%cuda\n",
    "assert double(OFFSET) == 20",
    "setup",
    "double",
    "test-one",
    "code",
    "markdown",
    "raw",
]
VALUES += [
    ["a\n", "b"],
    {"text/html": "<script>"},
    "<img src=x onerror=y>",
    "$\\frac{" * 50,
    "```\n" * 40,
    "[a](b)" * 50,
]
KEYS = "cells cell_type source id metadata nbgrader grade_id solution locked grade points attachments outputs nbformat"
KEYS = KEYS.split() + [
    "nbformat_minor",
    "kernelspec",
    "worksheets",
    "execution_count",
    "text",
    "data",
    "schema_version",
]
PIECES = [
    b"[" * 5000,
    b'{"a":' * 3000,
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x00",
    b"\xe9",
    b'"',
    b"\\",
    b"\\u",
    b"NaN",
    b"1e9999",
]
PIECES += [
    b'"outputs": [',
    b'"source": ',
    b"}",
    b"]",
    b",",
    b"\n" * 1000,
    b" ",
    b"-",
    b"9" * 5000,
    b"\xed\xa0\x80",
    b"/*",
]


def prepare() -> None:
    """Do nothing: the process that reads must be each process's own."""


def make(random: random.Random) -> bytes:
    """Return a notebook with changes: of its JSON, then, in a third of all, of its bytes."""
    tree = json.loads(SEED)
    for _ in range(random.choice([0, 1, 2, 5, 20])):
        _change(random, tree)
    content = json.dumps(tree, ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1]))
    data = content.encode("utf-8", "surrogatepass") if random.random() < 0.9 else content.encode("latin-1", "replace")
    for _ in range(random.choice([0, 0, 1, 3])):
        at = random.randrange(len(data) + 1)
        data = data[:at] + random.choice(PIECES) + data[at + random.choice([0, 1, 100]) :]
    return data[: random.randrange(len(data))] if random.random() < 0.05 and data else data


def attempt(content: bytes) -> tuple[str, str]:
    """Return what came of it: read, or the status of a submission that cannot be."""
    without_outputs(content)
    reading = Reading()
    try:
        assembled = assembly.assemble(TINY, tiny_source(), {NAME: content}, reading)
    except Unusable as error:
        return f"not read ({error.status})", ""
    nbformat.writes(assembled.notebook).encode()
    for cell in assembled.notebook.cells:
        if cell.cell_type == "markdown":
            reading.markdown(cell.source, cell.get("attachments", {}))
    return "read", ""


def shown(content: bytes) -> str:
    return repr(content)


def _change(random: random.Random, tree: Any) -> None:
    places: list[tuple[Any, Any]] = []
    left = [tree]
    while left:
        part = left.pop()
        inner = [*part.items()] if isinstance(part, dict) else [*enumerate(part)]
        places += [(part, key) for key, _ in inner]
        left += [value for _, value in inner if isinstance(value, dict | list)]
    if not places:
        return
    part, key = random.choice(places)
    what = random.random()
    if what < 0.2:
        del part[key]
    elif what < 0.4 and isinstance(part, list):
        part.append(json.loads(json.dumps(part[key])))
    elif what < 0.6 and isinstance(part, dict):
        part[random.choice(KEYS)] = json.loads(json.dumps(random.choice(VALUES)))
    elif what < 0.7 and isinstance(part[key], str):
        part[key] = part[key] * random.choice([2, 50]) + random.choice(["", "\n", "é", "\u2028"])
    else:
        part[key] = json.loads(json.dumps(random.choice(VALUES)))
