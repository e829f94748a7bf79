# tries: claims to be a notebook of format 3, of a version that no program has, with keys twice
# expects: student_crash 0 0 0 0
# edit: claim_odd_formats
def double(x):
    return x
