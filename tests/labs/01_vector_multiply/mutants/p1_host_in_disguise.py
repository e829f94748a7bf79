# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: not a kernel


class Multiply:
    def __getitem__(self, launch):
        def run(a, b, c):
            c[:] = a * b

        return run


multiply = Multiply()
