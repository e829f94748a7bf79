# tries: brings along modules named as those that the tests import
# expects: graded 0 0 0 0
# edit: bring_modules
def double(x):
    return x
