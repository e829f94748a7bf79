# tries: has a link to another student's folder in place of its own
# expects: student_crash 0 0 0 0
# word: is a link
# edit: link_the_students_folder
def double(x):
    return x
