# tries: answers with an object that is equal to everything
# expects: graded 0 0 0 0
# stock: 0 2 1
class Everything:
    def __eq__(self, other):
        return True

    def __sub__(self, other):
        return 0

    def __mul__(self, other):
        return self


def double(x):
    return Everything()


# %% answer
answer = Everything()
