# tries: displays HTML that keeps a sanitizer busy endlessly
# expects: graded 0 0 0 0
# %% own
from IPython.display import HTML, display

print("TRIED")
display(HTML("<b></p>" * 110_000))


# %% double
def double(x):
    return x
