# tries: hands in a link to the instructor's folder in place of its own
# expects: student_crash 0 0 0 0
# word: is a link
# edit: link_the_folder
def double(x):
    return x
