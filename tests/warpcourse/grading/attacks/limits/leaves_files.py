# tries: leaves files where everybody may write, as a message to whoever is graded next and as memory nobody gives back
# expects: graded 0 0 0 0
import os

left = 0
for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run/lock"):
    try:
        with open(os.path.join(folder, f"warplab-attack-{os.getpid()}"), "wb") as file:
            file.write(bytes(1 << 20))
        left += 1
    except OSError:
        pass
print("TRIED", left)
