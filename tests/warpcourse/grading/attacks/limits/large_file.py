# tries: writes a file beyond the limit of one file, in one piece, by holes, and by appending to what it has
# expects: graded 0 0 0 0
import os
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, most = os.path.join(os.environ["TMPDIR"], "large"), 0
for way in ("truncate", "seek", "append", "allocate"):
    try:
        with open(path, "ab" if way == "append" else "wb") as file:
            if way == "truncate":
                file.truncate(65 << 20)
            elif way == "allocate":
                os.posix_fallocate(file.fileno(), 0, 65 << 20)
            elif way == "seek":
                file.seek(65 << 20)
                file.write(b"x")
            else:
                for _ in range(65):
                    file.write(bytes(1 << 20))
    except OSError:
        pass
    most = max(most, os.path.getsize(path))
    os.unlink(path)
print("TRIED", most)
if most > 64 << 20:
    print("GOT a file of", most)
