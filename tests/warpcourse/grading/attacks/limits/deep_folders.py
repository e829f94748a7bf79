# tries: leaves folders nested thousands deep, with no right to enter them, for whoever clears up behind it
# expects: graded 0 0 0 0
import os

made = 0
for _ in range(4000):
    os.mkdir("d")
    os.chdir("d")
    made += 1
os.chmod(".", 0)
os.chdir(os.environ["TMPDIR"])
print("TRIED", made)
