# tries: takes the time of the whole notebook in small pieces
# expects: timeout 0 0 0 0
# tight: notebook 4
import time

time.sleep(1.5)
# %% answer
time.sleep(1.5)
# %% scale
time.sleep(1.5)
# %% own
time.sleep(1.5)
