"""The check of a learner's plan in exercise 08: no plan has a lower peak."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warplab.checks import CheckFailed


def check_best_plan(best_plan: Callable[..., Any], inputs: Sequence[int], inside: Sequence[int]) -> bool:
    """Run `best_plan` on one chain; raise CheckFailed unless its peak is the least. `inputs`, `inside`: see `plan`."""
    from kernels.recomputation import plan as plans  # here, where no answer finds it

    found, layers = best_plan(inputs, inside), len(inputs)
    where = f"inputs = {inputs}, inside = {inside}"
    if found is None:
        raise CheckFailed("best_plan is not written yet: it returns nothing.", where=where, kind="not written")
    whole = isinstance(found, tuple | list) and all(isinstance(i, int | np.integer) for i in found)
    if not whole or not found or found[0] != 0 or list(found) != sorted(set(found)) or found[-1] >= layers:
        wanted = f"a tuple that begins with 0 and rises, each below {layers}"
        raise CheckFailed("this is no plan.", expected=wanted, got=repr(found), where=where, kind="wrong type")
    most, least = (int(plans.peak(plan, inputs, inside)) for plan in (tuple(found), plans.best(inputs, inside)))
    if most != least:
        wanted, got = f"a peak of {least}", f"a peak of {most}: {found}"
        raise CheckFailed("best_plan is not the best.", expected=wanted, got=got, where=where)
    return True
