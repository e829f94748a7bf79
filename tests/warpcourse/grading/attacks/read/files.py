# tries: looks for notebooks, gradebooks and ledgers everywhere, first in the course's own folder
# expects: graded 0 0 0 0
# limits: graded 0 0 0 0 got
import os

found, looked = [], 0
for top in ("@COURSE@", "..", "/course", "/home", "/root", "/srv", "/mnt", "/media", "/opt", "/var", "/tmp"):
    for folder, folders, names in os.walk(top):
        looked += 1
        folders[:] = [name for name in folders if name not in ("site-packages", "node_modules", "proc")]
        found += [
            os.path.join(folder, name)
            for name in names
            if name.endswith((".db", "ledger.jsonl")) or (name.endswith(".ipynb") and "target" not in folder)
        ]
        if looked > 5000:
            break
own = os.path.abspath(".")
found = [path for path in found if not os.path.abspath(path).startswith(own) and "@COURSE@" in path]
print("TRIED", looked)
if found:
    print("GOT", found[:5])
