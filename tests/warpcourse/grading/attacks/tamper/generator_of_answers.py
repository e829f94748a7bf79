# tries: gives each test another value of one name, through a namespace and globals that compute on access
# expects: graded 0 0 0 0
class Names(dict):
    def __getitem__(self, name):
        return 42 if name == "answer" else super().__getitem__(name)


def double(x):
    return x


# %% answer
answer = 41

# %% own
shell = get_ipython()
try:
    shell.user_ns = Names(shell.user_ns)
except Exception:
    pass
