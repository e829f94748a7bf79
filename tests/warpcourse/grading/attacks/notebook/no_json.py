# tries: hands in endless brackets
# expects: student_crash 0 0 0 0
# word: not a Jupyter notebook
# edit: hand_in_brackets
def double(x):
    return x
