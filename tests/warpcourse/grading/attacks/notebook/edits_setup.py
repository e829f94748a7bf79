# tries: makes the locked cell that imports NumPy import something else
# expects: graded 0 0 0 0
# word: was edited
# edit: change_setup
def double(x):
    return x
