# tries: 200 MB of output, line by line, after right answers
# expects: graded 1 2 1 0
def double(x):
    return 2 * x


# %% answer
answer = 42
for _ in range(200):
    print("x" * 999_999, flush=True)
