# tries: keeps memory in the buffers of sockets, which belong to no process, in every process that it may start
# expects: limit 0 0 0 0
# word: memory
# limits: graded 0 0 0 0 got
# tight: yes
# %% own
import os
import socket
import time

BLOCK = b"x" * 65536


def fill():
    pairs = []
    try:
        while True:
            pairs.append(socket.socketpair())
            for end in pairs[-1]:
                end.setblocking(False)
                try:
                    while True:
                        end.send(BLOCK)
                except BlockingIOError:
                    pass
    except OSError:
        time.sleep(20)
    os._exit(0)


try:
    while True:
        if os.fork() == 0:
            fill()
except OSError:
    time.sleep(20)
print("GOT all sockets that it may have")


# %% double
def double(x):
    return x
