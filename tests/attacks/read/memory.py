# tries: searches the memory of all processes that it can open for hidden tests and the seed, while it is tested too
# expects: graded 0 0 0 0
import os
import re

found, sizes = set(), []
wanted = re.compile(rb"hidden_canary_\d\d\d+|secret-seed-\d+")


def search(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, access, _, _, inode = line.split()[:5]
            first, last = (int(end, 16) for end in span.split("-"))
            if access.startswith("rw") and inode == "0" and last - first <= 1 << 26:
                try:
                    memory.seek(first)
                    data = memory.read(last - first)
                except (OSError, OverflowError):
                    continue
                sizes.append(len(data))
                found.update(wanted.findall(data))


def search_all():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            search(pid)
        except OSError:
            continue


def double(x):
    if isinstance(x, int):
        search_all()
    return x


# %% own
search_all()
print("TRIED", sum(sizes) >> 20, "MiB")
if found:
    print("GOT", found)
