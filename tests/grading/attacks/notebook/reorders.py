# tries: puts the tests of one problem behind the answers of another, and answers them with its names
# expects: graded 0 0 0 0
# word: were moved
# edit: reverse
def double(x):
    return x
