# tries: keeps the arguments of hidden calls and reveals them in an output, an error and a message
# expects: graded 1 2 0 0
# stock: 1 2 0 shown
kept = []


def double(x):
    kept.append(x if isinstance(x, str) else None)
    return 2 * x


# %% answer
answer = "I was called with " + repr([x for x in kept if x])

# %% own
print(kept)
raise ValueError(str(kept))
