# tries: takes the time of the whole notebook in small pieces
# expects: timeout 0 0 0 0
# tight: yes
import time

time.sleep(2.5)
# %% answer
time.sleep(2.5)
# %% scale
time.sleep(2.5)
# %% own
time.sleep(2.5)
