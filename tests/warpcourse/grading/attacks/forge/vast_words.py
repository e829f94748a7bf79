# tries: says of its names what is long, nested and odd: names, classes and reasons of megabytes
# expects: graded 0 0 0 0
kind = type("K" * 3_000_000 + "\x1b[2J<script>", (), {"__module__": "m" * 1_000_000})


def double(x):
    raise type("E" * 1_000_000, (ValueError, KeyError), {"__str__": lambda self: "\u202e" * 5_000_000})


double.__name__ = double.__qualname__ = "d" * 2_000_000

# %% answer
answer = kind()
