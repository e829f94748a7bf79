# tries: reverses the cells, so that tests come before the answers they test
# expects: graded 0 0 0 0
# word: were moved
# edit: reverse
def double(x):
    return x
