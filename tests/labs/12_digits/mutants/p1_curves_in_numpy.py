# problem: curves
# loses: curves-logged
# reason: while network_of gives another network


def train(start, images, labels, held_images, held_labels, epochs, batch, rate):
    weights, found = [w.astype(float) for w in start], ([], [])
    for _ in range(epochs):
        for i in range(0, len(images), batch):
            weights, _ = descended(weights, images[i : i + batch], labels[i : i + batch], rate)
        found[0].append(mean_loss(weights, images, labels))
        found[1].append(mean_loss(weights, held_images, held_labels))
    return found


def best_epoch(validation):
    finite = [(loss, epoch) for epoch, loss in enumerate(validation, 1) if math.isfinite(loss)]
    return min(finite)[1] if finite else 0


def diagnose(train, validation, classes):
    last, steps = train[-1], len(train) - 1
    if not all(map(math.isfinite, [*train, *validation])):
        return "rate too high"
    if 4 * sum(after > 1.05 * before for before, after in itertools.pairwise(train)) >= steps:
        return "rate too high"
    if validation[-1] > 1.1 * min(validation) and last < validation[-1] / 2:
        return "overfits"
    if last > math.log(classes) / 4:
        return "too short" if last < 0.95 * train[-1 - len(train) // 4] else "too small"
    return "fits"
