# tries: has a link that leads to itself in place of its folder
# expects: student_crash 0 0 0 0
# word: is a link
# edit: link_to_itself
def double(x):
    return x
