# problem: run
# loses: run-copies, run-adds
# reason: is wrong in


def run(messages, arrays, slices):
    """Return what each rank holds after all messages (step, source, destination, slice, add): a list of arrays."""
    held = [array.copy() for array in arrays]
    n = held[0].size
    messages = list({message[:1] + message[2:3]: message for message in messages}.values())
    for now in sorted({message[0] for message in messages}):
        before = [array.copy() for array in held]
        for step, source, destination, i, add in messages:
            if step != now:
                continue
            place = slice(i * n // slices, (i + 1) * n // slices)
            if add:
                held[destination][place] += before[source][place]
            else:
                held[destination][place] = before[source][place]
    return held
