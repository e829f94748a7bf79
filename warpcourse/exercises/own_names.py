"""The names that an exercise's own cells define, given back to each of these cells where a learner's cell took one.

Answers and tests share one process: a helper called as one of the tests' would change what they test, unseen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

NOTE = "The tests take the exercise's own "


def guard(shell: Any, own: Collection[str]) -> None:
    """Watch the cells that the IPython `shell` runs: those of `own`, by `key`, get their names back and keep them."""
    kept: dict[str, Any] = {}
    before: dict[str, Any] = {}

    def give_back(info: Any) -> None:
        if key(info.raw_cell) in own:
            names = shell.user_ns
            if taken := [name for name, value in kept.items() if names.get(name, value) is not value]:
                print(f"{NOTE}{', '.join(taken)}, not what a cell of yours calls so. Give yours another name.")
            names.update(kept)
            before.clear()
            before.update(names)

    def keep(result: Any) -> None:
        if key(result.info.raw_cell) in own:
            own_names = {name: value for name, value in shell.user_ns.items() if not name.startswith("_")}
            kept.update({name: value for name, value in own_names.items() if before.get(name, before) is not value})

    shell.events.register("pre_run_cell", give_back)
    shell.events.register("post_run_cell", keep)


def key(source: str) -> str:
    """Return what stands for a cell's text."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]
