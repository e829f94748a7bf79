# tries: writes numbers of thousands of digits, and such as no JSON has, where its notebook keeps counts and ids
# expects: student_crash 0 0 0 0
# edit: write_endless_numbers
def double(x):
    return x
