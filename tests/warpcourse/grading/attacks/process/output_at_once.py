# tries: 200 MB of output in one message
# expects: limit 0 0 0 0
# word: sent more than
print("x" * 200_000_000)


def double(x):
    return 2 * x
