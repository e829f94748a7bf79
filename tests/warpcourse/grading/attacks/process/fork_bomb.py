# tries: a fork bomb
# expects: timeout 0 0 0 0
# tight: notebook 8
import os
import time

while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.02)  # this one is to fill the process table, not the processors
