# tries: has lists, numbers and nothing where names, metadata, tags and kernels of a notebook belong
# expects: graded 0 0 0 0
# edit: change_types
def double(x):
    return x
