# tries: fills sources with zero bytes, halves of characters, line separators and escapes
# expects: graded 0 0 0 0
# edit: add_control_characters
def double(x):
    return x
