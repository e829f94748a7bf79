# tries: fills the disk
# expects: graded 0 0 0 0
# limits: graded 0 0 0 0 got
import os

block, total = bytes(1 << 20), 0
for folder in (".", os.environ["TMPDIR"], "/dev/shm"):
    for number in range(20):
        path = os.path.join(folder, f"fill-{number}")
        try:
            with open(path, "wb") as file:
                for _ in range(60):
                    total += file.write(block)
                    file.flush()
        except OSError:
            break
        if total > 300 << 20:
            break
for folder in (".", os.environ["TMPDIR"], "/dev/shm"):
    for number in range(20):
        if os.path.exists(os.path.join(folder, f"fill-{number}")):
            os.unlink(os.path.join(folder, f"fill-{number}"))
print("TRIED", total >> 20, "MiB")
if total > 256 << 20:
    print("GOT more than the limit")
