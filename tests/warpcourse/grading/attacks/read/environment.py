# tries: reads the secret seed in its own environment and its parents'
# expects: graded 0 0 0 0
# stock: 0 0 0 got
import os
import pathlib

texts = [repr(dict(os.environ))]
for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        texts.append(path.read_text(errors="replace"))
    except OSError:
        pass
print("TRIED", len(texts))
if any("secret-seed-" in text for text in texts):
    print("GOT the seed")
