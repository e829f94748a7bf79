# problem: batches
# loses: batches-orders
# reason: two pairs of seed and epoch have the same order|has the same batches


def batches(images, labels, batch, seed, epoch):
    order = np.random.default_rng(seed ^ (epoch << 1)).permutation(len(images))
    parts = [order[i : i + batch] for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]
