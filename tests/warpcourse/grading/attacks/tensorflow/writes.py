# tries: writes files by tf.io, a summary writer, a checkpoint and a SavedModel, into the course and beyond the limit
# expects: graded 0 0 0
# limits: graded 0 0 0 got
import os

got = []
module = tf.Module()
module.v = tf.Variable(tf.ones(8))
for folder in (
    "@COURSE@",
    "@COURSE@/solutions",
    "/course",
    "/course/warplab",
    "/usr/local",
    os.path.dirname(tf.__file__),
):
    for write in (
        lambda path: tf.io.write_file(path, "text"),
        lambda path: tf.raw_ops.WriteFile(filename=path, contents="text"),
        lambda path: tf.io.gfile.GFile(path, "w").write("text"),
        lambda path: tf.summary.create_file_writer(path).flush(),
        lambda path: tf.saved_model.save(module, path),
        lambda path: tf.train.Checkpoint(module).write(path),
    ):
        try:
            write(os.path.join(folder, "warplab-attack"))
        except BaseException:
            continue
        if "@COURSE@" not in folder and os.path.exists(os.path.join(folder, "warplab-attack")):
            got.append(folder)
total = 0
for number in range(10):
    try:
        tf.io.write_file(f"fill-{number}", tf.strings.reduce_join(tf.repeat(["x" * 1024], 50 << 10)))
        total += os.path.getsize(f"fill-{number}")
    except BaseException:
        break
for number in range(10):
    if os.path.exists(f"fill-{number}"):
        os.unlink(f"fill-{number}")
print("TRIED", total >> 20, "MiB")
if got or total > 256 << 20:
    print("GOT", sorted(set(got)), total >> 20, "MiB")
