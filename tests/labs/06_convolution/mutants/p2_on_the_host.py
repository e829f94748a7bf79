# problem: direct
# loses: direct-plain, direct-any, direct-work
# reason: runs on the host

import numpy as np


def direct(x, w, y, padding, stride):
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    y[:] = np.einsum("ncpqrs,kcrs->nkpq", views, w)
