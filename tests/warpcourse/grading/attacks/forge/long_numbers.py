# tries: answers with numbers of 3,990 digits, whose text, powers and products take long or fail
# expects: graded 0 0 0 0
def double(x):
    return 10**3990 if isinstance(x, float) else {"x": -(10**3990)}


# %% answer
answer = 10**3990
