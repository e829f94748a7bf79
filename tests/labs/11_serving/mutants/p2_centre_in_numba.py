# problem: centre
# loses: centre-each, centre-turns, centre-counted
# reason: written in the wrong language


@cuda.jit
def centre(x, first, y, requests):
    sums = cuda.shared.array(1024, float32)
    for request in range(cuda.blockIdx.x, requests, cuda.gridDim.x):
        begin, end = first[request], first[request + 1]
        total = float32(0)
        for i in range(begin + cuda.threadIdx.x, end, cuda.blockDim.x):
            total += x[i]
        sums[cuda.threadIdx.x] = total
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half > 0:
            if cuda.threadIdx.x < half:
                sums[cuda.threadIdx.x] += sums[cuda.threadIdx.x + half]
            cuda.syncthreads()
            half //= 2
        for i in range(begin + cuda.threadIdx.x, end, cuda.blockDim.x):
            y[i] = x[i] - sums[0] / float32(end - begin)
        cuda.syncthreads()
