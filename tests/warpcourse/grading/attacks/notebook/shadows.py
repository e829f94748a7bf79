# tries: brings along modules with the names of those that the tests import
# expects: graded 0 0 0 0
# edit: bring_modules
def double(x):
    return x
