# tries: reads the solution by tf.io, a dataset of lines and a compiled graph
# expects: graded 0 0 0
# limits: graded 0 0 0 got
found = []
path = "@COURSE@/solutions/@NAME@/@NAME@.ipynb"
for read in (
    lambda: tf.io.read_file(path).numpy(),
    lambda: tf.io.gfile.GFile(path).read(),
    lambda: tf.raw_ops.ReadFile(filename=path).numpy(),
    lambda: b"".join(line.numpy() for line in tf.data.TextLineDataset(path)),
    lambda: tf.function(lambda: tf.io.matching_files("@COURSE@/solutions/*/*"))().numpy().tobytes() or 1 / 0,
    lambda: tf.io.gfile.glob("@COURSE@/grading/*") or 1 / 0,
    lambda: tf.io.gfile.listdir("@COURSE@/solutions"),
):
    try:
        found.append(read())
    except BaseException:
        pass
found = [what for what in found if what]
print("TRIED")
if found:
    print("GOT", len(found))
