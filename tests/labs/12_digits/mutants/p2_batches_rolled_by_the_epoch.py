# problem: batches
# loses: batches-orders
# reason: another epoch has the same batches|epoch 0 has the same batches


def batches(images, labels, batch, seed, epoch):
    order = np.roll(np.random.default_rng(seed).permutation(len(images)), epoch * 7)
    parts = [order[i : i + batch] for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]
