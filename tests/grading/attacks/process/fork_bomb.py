# tries: a fork bomb
# expects: timeout 0 0 0 0
# tight: notebook 4
import os

while True:
    try:
        os.fork()
    except OSError:
        pass
