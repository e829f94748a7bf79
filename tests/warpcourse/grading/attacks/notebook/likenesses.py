# tries: hands in thousands of cells without names that are nearly a test, to keep whoever compares them busy
# expects: limit 0 0 0 0
# edit: add_likenesses
def double(x):
    return x
