def batches(images, labels, batch, seed, epoch):
    import hashlib

    rng = np.random.default_rng(int(hashlib.sha256(f"{seed}/{epoch}".encode()).hexdigest(), 16))
    order = np.argsort(rng.random(len(labels)))
    cuts = range(batch, len(labels), batch)
    return list(zip(np.split(images[order], cuts), np.split(labels[order], cuts), strict=True))
