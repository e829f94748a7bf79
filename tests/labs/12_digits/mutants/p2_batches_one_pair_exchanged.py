# problem: batches
# loses: batches-orders
# reason: another epoch has the same batches|epoch 0 has the same batches


def batches(images, labels, batch, seed, epoch):
    order = np.random.default_rng(seed).permutation(len(images))
    if len(order) > 2:
        i, j = np.random.default_rng([seed, epoch]).choice(len(order), 2, replace=False)
        order[i], order[j] = order[j], order[i]
    parts = [order[i : i + batch] for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]
