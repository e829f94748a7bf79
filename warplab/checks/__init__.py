"""Checks of a learner's answers: `kernel` for kernels, `examples` and `function` for functions, `array` for arrays,
`predictions` for numbers to be predicted. `trials` repeats a check of the exercise's own on fresh random inputs,
`called` calls a learner's function, `returned` is for what one returns in several parts, and `untouched` for the arrays
that it was given. `own_work` refuses cells that take answers from the course.

A check prints one line and returns None, or raises `CheckFailed`, whose message says what was expected, what came,
for which input, and where to look.

A new check is a module with one function, named here. The check of a kernel has several: `cases` makes its inputs and
`drawn_sizes` their sizes, `kernels` takes them in order, `kernel_run` and `launch_failures` launch, `outputs` looks at
the arrays, `counter_limits` at the counters and `thread_work` at what the busiest thread did; `shared_work` has the
limits of shared work; `illegal_access`, `explain_outputs` and `explain_fragments` find the likely cause.
"""

from warplab.checks.arrays import array
from warplab.checks.called import called
from warplab.checks.cases import DEFAULT_SIZES, Case, at_the_end, cover, cover_tiles, distinct, elementwise, summable
from warplab.checks.drawn_sizes import drawn
from warplab.checks.errors import CheckFailed
from warplab.checks.functions import examples, function
from warplab.checks.kernels import kernel
from warplab.checks.own_work import own_work
from warplab.checks.predictions import predictions
from warplab.checks.returned import returned, untouched
from warplab.checks.shared_work import shared_work
from warplab.checks.trials import trials
