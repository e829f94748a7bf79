"""The reference engine: a schedule run message by message in NumPy, on copies in this process's memory."""

from collections.abc import Sequence

import numpy as np

from kernels.collectives.schedule import Schedule, check_schedule


def check_arrays(schedule: Schedule, arrays: Sequence[np.ndarray]) -> None:
    """Raise ValueError or TypeError unless there is one array per rank, all of one shape and dtype."""
    if len(arrays) != schedule.ranks:
        raise ValueError(f"{len(arrays)} arrays for {schedule.ranks} ranks; give one per rank")
    for rank, array in enumerate(arrays):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"the array of rank {rank} is a {type(array).__name__}; give a numpy.ndarray")
        if (array.shape, array.dtype) != (arrays[0].shape, arrays[0].dtype):
            raise ValueError(
                f"the array of rank {rank} has shape {array.shape} and dtype {array.dtype}, that of rank 0 "
                f"{arrays[0].shape} and {arrays[0].dtype}; they must be equal"
            )


def run(schedule: Schedule, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return what each rank holds after the schedule; `arrays` stay as they are.

    `arrays`: one per rank, any shape and numeric dtype, all the same. Broadcast reads the root's alone, all-gather of
    each rank its own slices (`Schedule.owned` and `Schedule.elements`). Sums add in the order of the messages, so
    floating-point results may differ from NumPy's sum in the last bits. Raise ScheduleError for a schedule that
    `check_schedule` refuses, ValueError or TypeError for arrays that do not fit.
    """
    check_schedule(schedule)
    check_arrays(schedule, arrays)
    held = [np.array(array, order="C") for array in arrays]
    flat = [array.reshape(-1) for array in held]
    n = flat[0].size
    for sends in schedule.by_step():
        # All messages are read before one is written: they carry what their sources held when the step began.
        messages = [(send, flat[send.source][schedule.elements(send, n)].copy()) for send in sends]
        for send, message in messages:
            target = flat[send.destination][schedule.elements(send, n)]
            if send.reduce:
                target += message
            else:
                target[...] = message
    return held
