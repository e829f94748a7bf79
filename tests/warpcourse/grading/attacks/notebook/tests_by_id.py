# tries: gives cells of its own the tests' ids, without nbgrader's names
# expects: graded 0 0 0 0
# edit: take_ids
def double(x):
    return x
