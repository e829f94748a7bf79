# tries: deletes the tests
# expects: graded 0 0 0 0
# word: put back
# edit: delete_tests
def double(x):
    return x
