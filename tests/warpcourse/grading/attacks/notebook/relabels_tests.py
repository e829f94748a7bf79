# tries: turns the tests into answer cells worth 1000 points each
# expects: graded 0 0 0 0
# edit: relabel_tests
def double(x):
    return x
