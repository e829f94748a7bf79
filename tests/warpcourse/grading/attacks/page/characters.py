# tries: piles up accents, turns lines around and hides text, in outputs, errors and markdown, by the megabyte
# expects: graded 0 0 0 0
# edit: pile_up_characters
def double(x):
    return x
