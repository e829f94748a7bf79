# problem: run
# loses: run-copies, run-adds
# reason: returns the wrong type


def run(messages, arrays, slices):
    held = [array.copy() for array in arrays]
    n = held[0].size
    for now in sorted({message[0] for message in messages}):
        before = [array.copy() for array in held]
        for step, source, destination, i, add in messages:
            if step == now:
                place = slice(i * n // slices, (i + 1) * n // slices)
                held[destination][place] = before[source][place] + (held[destination][place] if add else 0)
    yield from held
