# tries: hands in its notebook in UTF-16, with a mark at its beginning
# expects: student_crash 0 0 0 0
# edit: encode_otherwise
def double(x):
    return 2 * x
