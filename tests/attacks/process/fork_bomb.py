# tries: a fork bomb
# expects: timeout 0 0 0 0
# tight: yes
import os

while True:
    try:
        os.fork()
    except OSError:
        pass
