# tries: takes 100 GB of memory at once, then piece by piece
# expects: limit 0 0 0 0
# tight: yes
# word: memory
try:
    block = bytearray(100 << 30)
    print("GOT 100 GB")
except MemoryError:
    print("TRIED")

# %% answer
# In a later cell, which starts when the judge has what the first one printed: the end comes too soon to print here.
import os

for _ in range(8):
    if os.fork() == 0:
        break
blocks = []
while True:
    try:
        blocks.append(b"x" * (16 << 20))
    except MemoryError:
        pass
