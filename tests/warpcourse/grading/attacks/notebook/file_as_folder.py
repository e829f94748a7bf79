# tries: hands in the notebook where its folder belongs
# expects: student_crash 0 0 0 0
# word: is no folder
# edit: hand_in_a_file_as_folder
def double(x):
    return x
