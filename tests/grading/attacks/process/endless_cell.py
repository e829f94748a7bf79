# tries: a loop without end in a cell
# expects: timeout 0 0 1 0
# tight: cell 2
# word: endless loop
while True:
    pass

# %% answer
answer = 42
