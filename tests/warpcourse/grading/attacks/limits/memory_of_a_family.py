# tries: takes memory in grandchildren whose parents have ended, each below the limit of a process
# expects: limit 0 0 0 0
# tight: yes
import os
import time

for _ in range(6):
    if os.fork() == 0:
        if os.fork():
            os._exit(0)
        os.setsid()
        taken = bytearray(b"x") * (400 << 20)
        time.sleep(60)
        os._exit(0)
time.sleep(60)
print("GOT 2.4 GiB")
