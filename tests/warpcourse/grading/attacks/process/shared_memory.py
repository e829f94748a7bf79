# tries: takes memory that no process has: shared mappings that it fills and gives back, kept by a process that sleeps
# expects: graded 0 0 0 0
# limits: graded 0 0 0 0 got
# tight: yes
# %% own
import mmap
import os
import time

MIB = 1 << 20


def take(how):
    """Fill 2 GiB in pieces that stay mapped and are no longer in this process's memory."""
    kept, taken = [], 0
    try:
        while taken < 2048 * MIB:
            piece = how(64 * MIB)
            for start in range(0, 64 * MIB, MIB):
                piece[start : start + MIB] = bytes(b"x" * MIB)
            piece.madvise(mmap.MADV_DONTNEED)
            kept.append(piece)
            taken += 64 * MIB
            if len(kept) == 8:  # of which only one process has the mapping
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                for piece in kept:
                    piece.close()
                kept.clear()
    except OSError as error:
        return f"{taken // MIB} MiB ({error.strerror})"
    return "GOT"


def zero(size):
    with open("/dev/zero", "r+b") as file:
        return mmap.mmap(file.fileno(), size)


told = [take(lambda size: mmap.mmap(-1, size)), take(zero)]
print("GOT 2 GiB beyond every limit" if "GOT" in told else f"TRIED {told}")


# %% double
def double(x):
    return x
