# tries: hands in its answers as markdown and raw cells, and prose as code
# expects: graded 1 2 0 0
# edit: change_kinds
def double(x):
    return x * 2
