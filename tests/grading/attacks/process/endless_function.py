# tries: a loop without end in a function, only when it is called by a hidden test
# expects: graded 1 0 1 0
# tight: cell 2
def double(x):
    while isinstance(x, str):
        pass
    return 2 * x


# %% answer
answer = 42
