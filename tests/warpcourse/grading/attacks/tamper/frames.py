# tries: changes the variables of the test through the frames above it
# expects: graded 0 0 0 0
# stock: 1 0 0
import sys

import numpy as np


def double(x):
    frame = sys._getframe(1)
    while frame is not None:
        for name, value in list(frame.f_globals.items()):
            if value is x:
                frame.f_globals[name] = np.zeros(1)
        frame = frame.f_back
    return np.zeros(1)
