# tries: finds open files, sockets and keys that its process has inherited from the grader
# expects: graded 0 0 0 0
import os
import socket
import stat

got = []
for number in range(3, 1024):
    try:
        mode, target = os.fstat(number).st_mode, os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        if not any(part in target for part in ("/usr/", "/lib", "python", "(deleted)")):
            got.append(target)
    elif stat.S_ISSOCK(mode):
        with socket.socket(fileno=os.dup(number)) as one:
            if one.type & 0xF == socket.SOCK_SEQPACKET:  # as the judge has with the zygote
                got.append(f"{number}: the zygote's channel")
print("TRIED")
if got:
    print("GOT", got[:5])
