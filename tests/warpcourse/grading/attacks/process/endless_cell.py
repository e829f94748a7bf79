# tries: an endless loop in a cell
# expects: timeout 0 0 1 0
# tight: cell 5
# word: endless loop
import time

while True:
    time.sleep(0.01)

# %% answer
answer = 42
