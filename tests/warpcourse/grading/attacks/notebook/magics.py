# tries: hides what cells do behind magics, aliases, input transformers and a shell that runs other code
# expects: graded 0 0 0 0
shell = get_ipython()
shell.input_transformers_post.append(
    lambda lines: ["answer = 42\n"] if any("assert" in line for line in lines) else lines
)
shell.run_line_magic("alias", "assert echo")
shell.run_cell_magic("capture", "", "answer = 41")
shell.run_line_magic("reset", "-f")


def double(x):
    return x


# %% own
get_ipython().run_line_magic("autocall", "2")
get_ipython().run_cell_magic("writefile", "sitecustomize.py", "raise SystemExit")
get_ipython().run_line_magic("reset", "-f")
