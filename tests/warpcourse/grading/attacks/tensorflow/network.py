# tries: reaches a port of the grading machine through tf.data's service, and serves one itself
# expects: graded 0 0 0
import threading

reached = []


def ask():
    data = tf.data.Dataset.range(4)
    data = data.apply(tf.data.experimental.service.distribute("parallel_epochs", "grpc://127.0.0.1:@PORT@"))
    reached.extend(map(int, data))


def dispatch():
    found = tf.data.experimental.service.DispatchServer(
        tf.data.experimental.service.DispatcherConfig(port=0, work_dir=".")
    )
    reached.append(found.target) if "127.0.0.1" not in found.target and "localhost" not in found.target else None


threads = [threading.Thread(target=target, daemon=True) for target in (ask, dispatch)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(3)
print("TRIED")
if reached:
    print("GOT", reached)
