"""A check of the exercise's own, repeated on fresh random inputs: `trials`."""

from collections.abc import Callable

import numpy as np

from warplab.checks.errors import CheckFailed
from warplab.checks.session import fresh_seed


def trials(
    name: str, check: Callable[[np.random.Generator], object], count: int = 20, *, seed: int | None = None
) -> None:
    """Run `check(rng)` `count` times, each time with a generator of a new seed; raise `CheckFailed` if one fails.

    `name`: of the function that is checked. `check` draws inputs from `rng`, calls the function and raises
    `CheckFailed` where the answer is wrong; what it returns does not matter. The seed of the trial is added to the
    failure. Any other exception counts as the answer's own. `seed` repeats one trial alone: the seed of a failure.
    ValueError if there is nothing to run.
    """
    if count < 1:
        raise ValueError(f"trials: count is {count}; at least one trial must run")
    seeds = (
        [int(n) for n in np.random.default_rng(fresh_seed()).integers(2**32, size=count)] if seed is None else [seed]
    )
    for drawn in seeds:
        try:
            check(np.random.default_rng(drawn))
        except CheckFailed as failed:
            raise failed.at(f"seed {drawn}") from failed.__cause__
        except Exception as error:
            raise CheckFailed(
                f"{name} raises {type(error).__name__}: {error}", where=f"seed {drawn}", kind="exception"
            ) from error
    print(f"{name}: right for {len(seeds)} input{'s' if len(seeds) > 1 else ''}.")
