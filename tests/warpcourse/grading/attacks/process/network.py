# tries: tries to reach a port and an abstract socket of the grading machine
# expects: graded 0 0 0 0
# limits: graded 0 0 0 0 got
import os
import socket

reached = []
for family, address in (
    (socket.AF_INET, ("127.0.0.1", int("@PORT@"))),
    (socket.AF_UNIX, "\0warplab-attack-@PORT@"),
):
    with socket.socket(family) as outside:
        outside.settimeout(1)
        try:
            outside.connect(address)
            outside.sendall(repr(dict(os.environ)).encode())
            reached.append(address)
        except OSError:
            pass
print("TRIED")
if reached:
    print("GOT", reached)
