# tries: hands in 60,000 empty cells, and copies of the tests among them
# expects: limit 0 0 0 0
# edit: add_thousands_of_cells
def double(x):
    return x
