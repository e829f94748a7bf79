# tries: answers with text that a test, which takes it for a number, makes 10 GB long
# expects: graded 0 0 0 0


# %% answer
answer = "42" * 50_000
