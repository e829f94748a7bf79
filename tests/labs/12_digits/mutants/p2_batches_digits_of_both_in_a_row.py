# problem: batches
# loses: batches-orders
# reason: epoch with a digit of the seed has the same batches


def batches(images, labels, batch, seed, epoch):
    order = np.random.default_rng(int(f"{seed}{epoch}")).permutation(len(images))
    parts = [order[i : i + batch] for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]
