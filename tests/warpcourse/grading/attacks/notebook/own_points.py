# tries: adds test cells of its own, worth 1000 points
# expects: graded 0 0 0 0
# edit: add_tests
def double(x):
    return x
