"""All unseen kernels, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from evidence.unseen_launches import (
    algebra,
    arrays,
    fifth,
    fourth,
    images,
    occupancy,
    rows,
    science,
    second_layers,
    second_physics,
    second_tables,
    sixth,
    stencils,
    third,
    training,
)
from evidence.unseen_launches.unseen import UnseenKernel, UnseenLaunch
from warpcourse.bench.lab_kernels import by_name

KERNELS: dict[str, UnseenKernel] = by_name(
    *(
        kernel
        for module in (stencils, images, rows, training, algebra, science, arrays, occupancy)
        for kernel in module.KERNELS
    ),
    *(
        dataclasses.replace(kernel, of_set=2)
        for module in (second_physics, second_layers, second_tables)
        for kernel in module.KERNELS
    ),
    *(dataclasses.replace(kernel, of_set=3) for kernel in third.KERNELS),
    *(dataclasses.replace(kernel, of_set=4) for kernel in fourth.KERNELS),
    *(dataclasses.replace(kernel, of_set=5) for kernel in fifth.KERNELS),
    *(dataclasses.replace(kernel, of_set=6) for kernel in sixth.KERNELS),
)


def launches() -> Iterator[tuple[str, UnseenKernel, UnseenLaunch]]:
    """Return every launch that is timed, with its name and kernel."""
    for kernel in KERNELS.values():
        for one in kernel.launches:
            yield kernel.launch_name(one), kernel, one
