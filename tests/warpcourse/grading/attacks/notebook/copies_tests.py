# tries: adds empty cells with the tests' names, before and after them
# expects: graded 0 0 0 0
# word: times
# edit: copy_tests
def double(x):
    return x
