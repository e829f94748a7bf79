"""A hash of the model behind estimates: it changes where an estimated time may, and stays where only words change."""

from __future__ import annotations

import ast
import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from warpcourse.paths import COURSE
from warplab.estimating import rates
from warplab.hardware.cards import Card

FOLDER = COURSE / "warplab" / "estimating"
FILES = ("atomics", "dependence", "launch_time", "pipes", "register_reads", "uneven_work", "warp_latency", "work")
TABLES = ("FACTORS", "L2_USED", "RARE", "SLOW", "SLOW_OTHERS")  # of rates
NO_NUMBERS = ("name", "full_name", "year", "sources", "rates", "launch_overhead_us")  # of a card, for its estimates


def model_hash(card: str | Card = "H100") -> str:
    """Return 16 hexadecimal digits of the SHA-256 of the model's code without comments and docstrings, and of the
    numbers of the card that its error was measured on; no other card counts."""
    code = [_code(FOLDER / f"{name}.py") for name in FILES]
    tables = {name: repr(getattr(rates, name)) for name in TABLES}
    known = asdict(rates.rates(card))
    facts = known.pop("card")
    numbers = [{k: v for k, v in of.items() if k not in NO_NUMBERS} for of in (facts, known)]
    text = json.dumps([code, tables, numbers], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _code(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return _text(tree)


def _text(node: object) -> str:
    """Return a tree as text that is the same in all versions of Python, which `ast.dump` is not: without what is
    empty."""
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
        return f"{type(node).__name__}({', '.join(f'{name}={_text(value)}' for name, value in fields.items())})"
    if isinstance(node, list):
        return f"[{', '.join(map(_text, node))}]"
    return repr(node)
