# tries: hands in links to the instructor's notebook and to the secret
# expects: student_crash 0 0 0 0
# word: is missing
# edit: hand_in_links
def double(x):
    return x
