# tries: empties the tests
# expects: graded 0 0 0 0
# word: was edited
# edit: empty_tests
def double(x):
    return x
