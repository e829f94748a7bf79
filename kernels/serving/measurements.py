"""What lab 11 measures on a GPU, gathered from the modules that measure: `MEASUREMENTS` by the keys of recordings.json.

A module exports `MEASUREMENTS`, a function per table or plot that returns numbers in JSON types, and may export
`TABLES`, how `make bench` shows them. Keys end in their unit: `seconds`, `images_per_second`.
"""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from kernels.serving.overlap.sharing import measurements as sharing_measurements
from kernels.serving.overlap.streams import measurements as pipeline_measurements
from kernels.serving.serve.load import measurements as load_measurements
from kernels.serving.utilisation import measurements as utilisation_measurements
from warpcourse.bench.benchmark import Table

MODULES: tuple[ModuleType, ...] = (
    utilisation_measurements,
    pipeline_measurements,
    sharing_measurements,
    load_measurements,
)


def gathered(dictionaries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return all entries together. Raise ValueError for a key in two of them: one recording would replace the other."""
    found: dict[str, Any] = {}
    for one in dictionaries:
        if twice := sorted(found.keys() & one.keys()):
            raise ValueError(f"two modules measure {', '.join(twice)}; give each measurement a key of its own")
        found |= one
    return found


MEASUREMENTS: dict[str, Callable[[], Any]] = gathered(module.MEASUREMENTS for module in MODULES)
TABLES: dict[str, Table] = gathered(getattr(module, "TABLES", {}) for module in MODULES)
