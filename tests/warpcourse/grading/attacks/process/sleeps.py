# tries: uses up the notebook's time in small pieces
# expects: timeout 0 0 0 0
# tight: notebook 8
import time

time.sleep(3)
# %% answer
time.sleep(3)
# %% scale
time.sleep(3)
# %% own
time.sleep(3)
