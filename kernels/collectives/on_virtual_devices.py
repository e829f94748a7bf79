"""The engine on virtual devices: a schedule run by kernels of k simulated GPUs, all at the same time.

Any schedule: a kernel per message and side (messages.cu), ordered by flags alone. A ring broadcast: the persistent
kernel that forwards slices (forward.cu), one launch per rank. A race between devices or a deadlock is an error.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernels.collectives.interpreter import check_arrays
from kernels.collectives.ring_forwarding import ENTRY, FILE, SOURCE, RingForwarding
from kernels.collectives.schedule import Schedule, check_schedule
from warplab import virtual_devices
from warplab.launch.kernel_source import CudaSource

MOST_RANKS = 16
_MESSAGES = "messages.cu"
_MESSAGES_SOURCE = (Path(__file__).parent / _MESSAGES).read_text(encoding="utf-8")
_ITEMS = {
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
}


def run(
    schedule: Schedule,
    arrays: Sequence[np.ndarray],
    *,
    persistent: bool | None = None,
    blocks: int = 2,
    threads: int = 64,
) -> list[np.ndarray]:
    """Return what each rank holds after the schedule; `arrays` stay as they are.

    `arrays`: one per rank, any shape, all the same; the dtype one of `float32`, `float64` or integers. `persistent`: by
    forward.cu, which runs ring broadcasts only; None: where it can. `blocks`: per rank, for that kernel. `threads`: per
    block. Raises ScheduleError for a schedule that `check_schedule` refuses, ValueError or TypeError for arrays that do
    not fit, DeviceRace and DeviceDeadlock for kernels that go wrong.
    """
    check_schedule(schedule)
    check_arrays(schedule, arrays)
    if schedule.ranks > MOST_RANKS:
        raise ValueError(f"{schedule.ranks} ranks: there are up to {MOST_RANKS} virtual devices; use the interpreter")
    order = ring_order(schedule)
    if persistent and order is None:
        raise ValueError("forward.cu runs ring broadcasts only (ring_broadcast); leave out persistent=True")
    item = _ITEMS.get(arrays[0].dtype.name)
    if item is None:
        raise TypeError(f"arrays of {arrays[0].dtype}: the kernels know {', '.join(_ITEMS)}")
    with virtual_devices(schedule.ranks) as devices:
        flat = [np.ravel(array) for array in arrays]
        buffers = [device.asarray(array) for device, array in zip(devices, flat, strict=True)]
        if order is None or persistent is False:
            _queue_messages(schedule, devices, buffers, item, threads)
        else:
            ring = ring_forwarding(devices, order, slices=schedule.slices, blocks=blocks, threads=threads)
            ring.launch(buffers, arrays[0].nbytes)
        devices.synchronize()
        return [buffer.get().reshape(array.shape) for buffer, array in zip(buffers, arrays, strict=True)]


def ring_order(schedule: Schedule) -> list[int] | None:
    """Return the ranks of a pipelined broadcast in ring order, the root first; None for any other schedule."""
    if schedule.collective != "broadcast":
        return None
    after = {send.source: send.destination for send in schedule.sends}
    order = [schedule.root]
    while order[-1] in after and len(order) <= schedule.ranks:
        order.append(after[order[-1]])
    wanted = {(i + p, order[p], order[p + 1], i, 1) for i in range(schedule.slices) for p in range(len(order) - 1)}
    found = {(send.step, send.source, send.destination, send.slice, send.count) for send in schedule.sends}
    return order if sorted(order) == list(range(schedule.ranks)) and found == wanted else None


def ring_forwarding(
    devices: Any, order: Sequence[int], *, slices: int, blocks: int, threads: int, source: str = SOURCE
) -> RingForwarding:
    """Return the launches of forward.cu on virtual devices; `source`: another text, to try what goes wrong."""
    kernel = CudaSource(source, ENTRY, file=FILE)

    def start(rank: int, grid: int, block: int, arguments: tuple) -> None:
        devices[rank].launch(kernel, grid, block, arguments)

    return RingForwarding(
        order,
        slices=slices,
        blocks=blocks,
        threads=threads,
        flags=lambda rank, n: devices[rank].zeros(n, np.uint32),
        start=start,
        abort=[device.zeros(1, np.uint32) for device in devices],
    )


def _queue_messages(schedule: Schedule, devices: Any, buffers: Sequence[Any], item: str, threads: int) -> None:
    """Queue the kernels of all messages. In each step a rank sends before it takes: it sends what it held before."""
    options = (f"-DITEM={item}",)
    send, take = (CudaSource(_MESSAGES_SOURCE, entry, options, _MESSAGES) for entry in ("send_message", "take_message"))
    n, sends = buffers[0].size, schedule.sends
    come = [device.zeros(max(1, len(sends)), np.uint32) for device in devices]
    for step in schedule.by_step():
        taken = []
        for message in step:
            part = schedule.elements(message, n)
            size = part.stop - part.start
            if not size:
                continue
            inbox = devices[message.destination].empty(size, buffers[0].dtype)
            number = sends.index(message)
            flag = come[message.destination][number : number + 1]
            count = np.uint32(size)
            devices[message.source].launch(send, 1, threads, (buffers[message.source][part], inbox, flag, count))
            target = buffers[message.destination][part]
            taken.append((message.destination, (target, inbox, flag, count, np.int32(message.reduce))))
        for rank, arguments in taken:
            devices[rank].launch(take, 1, threads, arguments)
