# tries: computes on the host, in an object that is launched like a kernel
# expects: graded 0 0 0 0


# %% scale
class Scale:
    def __getitem__(self, launch):
        return self

    def __call__(self, x, y):
        y[:] = 3 * x


scale = Scale()
