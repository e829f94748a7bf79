# tries: keeps the arguments of hidden calls, and tells them by the kinds, the number and the order of errors in many cells
# expects: graded 1 2 0 0
# edit: add_cells_that_fail
# %% double
seen = []


def double(x):
    if isinstance(x, str):
        seen.append(x)
    return 2 * x
