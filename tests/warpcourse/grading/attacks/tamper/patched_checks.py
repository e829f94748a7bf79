# tries: replaces the course's checks, also inside the grader's modules, by ones that check nothing
# expects: graded 0 0 0 0
import sys

import warplab

for name, module in list(sys.modules.items()):
    if name.startswith(("warplab.checks", "warpcourse.grading", "warplab.simulator")):
        for attribute, value in list(vars(module).items()):
            if callable(value) and attribute in ("kernel", "elementwise", "examples", "function", "verdict", "launch"):
                setattr(module, attribute, lambda *arguments, **options: None)
warplab.checks.kernel = warplab.checks.elementwise = lambda *arguments, **options: None


# %% scale
@cuda.jit
def scale(x, y):
    y[0] = x[0]
