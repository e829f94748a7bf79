# tries: answers with text that a test, expecting a number, multiplies to 10 GB
# expects: graded 0 0 0 0


# %% answer
answer = "42" * 50_000
