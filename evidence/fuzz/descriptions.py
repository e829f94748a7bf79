"""Random descriptions of answers, as a student's process may give them: of the right form and of the wrong one."""

from __future__ import annotations

import random
from typing import Any

from evidence.fuzz.judged import judged

USES = ("x == 1", "x(1)", "x + 1", "checks.examples(x, [({'a': 1}, 2)])", "checks.kernel(x, None, sizes=[4])")
SECONDS = 10.0
KINDS = ("value", "function", "kernel", "module", "opaque", "missing", "results", "raised", "ptx", "odd")
WORDS = str.split(
    """a f g n i c b l d t v array record tuple none bool float32 int64 <f4 >f8 <c16 |b1 O V8 C F A cuda cp os Numba
    ValueError SystemExit x nan 0x1p9999 AAAAAAAAAAA= ~ def %r1"""
)
WORDS += ["", "CUDA C++", "a b", "\ud800", "\0", "1" * 5000, "x" * 300, ".entry f"]
NUMBERS = [0, 1, 2, 3, -1, 7, 255, 1 << 31, 1 << 47, 1 << 63, 1 << 200, 1.5, float("nan"), float("inf"), True, None]
KEYS = str.split(
    """kind value name type why plain blank language parameters signatures compiled signature classes message code
    results ptx entry sources file options printed more"""
)
# What is right, and is then changed.
SEEDS: list[dict[str, Any]] = [
    {"kind": "value", "value": ["a", "<f4", [2, 2], "C", "AAAAAAAAAAAAAAAAAAAAAA=="]},
    {"kind": "value", "value": ["d", [["i", "1"], ["l", ["f", "0x1p3"], ["n", "<f4", "AAAAAA=="]]]]},
    {"kind": "value", "value": ["g", "cp", ["a", ["v", 8, ["x", 0, "<f4", []]], [1], "C", "AAAAAAAAAAA="]]},
    {"kind": "function", "name": "x", "plain": True, "results": [{"kind": "value", "value": ["i", "1"]}]},
    {"kind": "results", "results": [{"kind": "raised", "classes": ["ValueError"], "message": "no"}], "printed": False},
    {
        "kind": "kernel",
        "language": "Numba",
        "name": "x",
        "parameters": ["a"],
        "blank": False,
        "signatures": [[["array", "float32", 1, "C", True, True]], [["tuple", "int64", ["record", "<f4"]]]],
        "compiled": [[["float32"], {"kind": "ptx", "ptx": ".version 8.0", "entry": "f", "sources": {"a": "b"}}]],
    },
    {
        "kind": "kernel",
        "language": "CUDA C++",
        "name": "x",
        "code": "x",
        "file": "f",
        "options": ["-O3"],
        "signature": {"name": "f", "parameters": [["float* a", "a", True, "<f4", 1]]},
        "compiled": {"kind": "raised", "classes": ["CompileError"], "message": "no"},
    },
]


def prepare() -> None:
    for seed in SEEDS:
        attempt((seed, USES))


def make(random: random.Random) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a description, and the uses of it that a test makes."""
    answer = _changed(random, random.choice(SEEDS), 0.08)
    if not isinstance(answer, dict) or not isinstance(answer.get("kind"), str):  # the messenger refuses these
        answer = {"kind": random.choice(KINDS), random.choice(KEYS): answer}
    return answer, (random.choice(USES),)


def attempt(made: tuple[dict[str, Any], tuple[str, ...]]) -> tuple[str, str]:
    answer, uses = made
    found = [judged(answer, f"from warplab import checks\nassert {use}", SECONDS, {}) for use in uses]
    return found[-1].kind or "right", found[-1].trace


def shown(made: tuple[dict[str, Any], tuple[str, ...]]) -> str:
    return ascii(made)


def _changed(random: random.Random, part: Any, share: float) -> Any:
    if random.random() < share:
        return _any(random, 3)
    if isinstance(part, dict):
        kept = {name: _changed(random, value, share) for name, value in part.items() if random.random() > share / 3}
        return kept | ({random.choice(KEYS): _any(random, 3)} if random.random() < share else {})
    if isinstance(part, list):
        parts = [_changed(random, value, share) for value in part if random.random() > share / 3]
        return parts * random.choice([2, 70]) if random.random() < share / 4 else parts
    return part


def _any(random: random.Random, depth: int) -> Any:
    if depth and random.random() < 0.5:
        parts = [_any(random, depth - 1) for _ in range(random.randrange(5))]
        return parts if random.random() < 0.6 else {random.choice(KEYS): part for part in parts}
    if random.random() < 0.02:
        deep: list = []
        for _ in range(random.choice([50, 300, 900])):
            deep = [deep]
        return deep
    return random.choice(WORDS if random.random() < 0.6 else NUMBERS)
