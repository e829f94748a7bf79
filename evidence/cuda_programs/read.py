"""What the messages of the simulator on HeCBench's programs stand for, after the code was read; by program."""

READ = {
    **dict.fromkeys(
        (
            *(
                "easyWave",
                "face",
                "frna",
                "gd",
                "geodesic",
                "gmm",
                "grep",
                "heartwall",
                "henry",
                "hogbom",
                "lanczos",
            ),
            *("lr", "lsqt", "lzss", "mcpr", "mnist", "mpc", "mriQ", "mt", "multimaterial", "nn"),
        ),
        "the data that it reads are not in the repository, or too large for the clone.",
    ),
    "hungarian": "its `__managed__` variables were refused then. Since they are taken its reductions are found to "
    "trust that a warp goes in step.",
    "bmf": "its parser of options is host code in classes that NVRTC cannot read without `std::string`.",
    "dxtc2": "16 lanes permute `colors` in place, `colors[xrefs[idx]] = colors[idx]`, with no `__syncwarp()` between "
    "load and store: it trusts that a warp goes in step.",
    "floydwarshall2": "other threads read these rows of `s_kj` in the loop before, and no barrier stands between.",
    "fpdc": "lanes add up through shared memory with `__threadfence_block()` between, which orders a thread's own "
    "accesses and waits for nobody: it trusts that a warp goes in step.",
    "gemv": "its arguments, made small, fail its own assertion.",
    "graphB+": "edges move to the front of their list with a field that only those of the tree were given; it is moved "
    "and, as far as was read, never used.",
    "groupnorm": "`shared_sum` is written anew in the loop over channels, with no barrier after the reads before.",
    "adamw": "`fused_4bit_kernel` calls CUB's block reduction inside `if (global_id < total_size)`: the last "
    "block's other threads have ended, and shuffles ask for their values.",
    "addBiasQKV": "`addBias` allocates the array that the kernel reads, its bias and its scale, and never fills them.",
    "bezier-surface": "the guard of `BezierGPU` is `if (i > RESOLUTIONI) return;` where `>=` is meant: the thread with "
    "`i == RESOLUTIONI` writes a row past the end.",
    "aes": "the picture that it reads is not in the repository.",
    "amgmk": "`relax` reads neighbours' `u_data`, which other threads update in the same launch: a relaxation that "
    "converges in any order, and whose numbers depend on it.",
    "asta": "a block reads the tile that comes next before it asks by `atomicExch` whether it is its own, and throws "
    "away what it read if not; meanwhile the owner may write it. Harmless: what the race gives is never used.",
    "axhelm": "it needs a library for BLAS, of which the repository has the address alone.",
    "b+tree": "its files are named by options, which the runner leaves out.",
    "base64e": "each stream copies its part and encodes it, but `id` is compared with the end of the whole: the last "
    "block of a launch goes on into the part that the next stream has not copied yet.",
    "bh": "the `wait-free` passes of `summarize` take a cell's `countd` once its mass is there; other blocks store the "
    "two one after the other with no fence between, so that a mass may come with an old count.",
    "bitcracker": "its files of hashes and passwords are named by options, which the runner leaves out.",
    "bscan": "`__ballot_sync` gets `lanemask_lt()`, in which the calling lane is not; CUDA asks that it is.",
    "chacha20": "all threads write `raw_key` in `hex_to_raw`, and thread 0 reads it with no `__syncthreads()` between.",
    "bm3d": "its picture is read by a program that is not on this machine.",
    "boxfilter": "its reader of pictures is a file of another program's folder, which the runner leaves out.",
    "bsw": "its sequences are not in the repository.",
    "btree": "a search goes down the tree by plain loads (`volatileRead` has no `volatile`) of nodes that other "
    "blocks, which hold their locks, write meanwhile.",
    "cc": "the graph that it reads is not in the repository.",
    "clink": "the file that it reads is not in the repository.",
    "ccs": "its file of data is named by an option, which the runner leaves out.",
    "ced": "it needs OpenCV.",
    "cfd": "the mesh that it reads is not in the repository.",
    "cm": "the folder of queries that it reads is not in the repository.",
    "cmp": "the traces that it reads are not in the repository.",
    "columnarSolver": "the data that it reads is not in the repository.",
    "conversion": "`convert` never fills the array whose elements it converts.",
    "dct8x8": "lanes exchange a tile through shared memory with nothing between the stores and the loads: it trusts "
    "that a warp goes in step, which it need not since Volta. `__syncwarp()` mends it.",
    "ddbp": "`img_integration_kernel` adds up along an axis in place, a thread for each element: each round reads what "
    "a thread `s` further on has written, and adds, with no barrier anywhere.",
    "d2q9-bgk": "its parameters and obstacles are not in the repository.",
    "deredundancy": "its sequences are not in the repository.",
    "diamond": "its Makefile builds it of many files by rules that the runner does not follow.",
    "pns": "the kernel compares entries of `conflict_array` with the step, also those that no transition has set yet; "
    "the array is `cudaMalloc`'s and nobody fills it.",
    "qtclustering": "a block clears its mask of points, each thread a part, and thread 0 then sets the first point's, "
    "with no barrier between: that may be cleared again.",
    "quantAQLM": "a launch writes a sum for each of 12,288 rows into room for 384 of them (`12288 / 32`).",
    "quicksort": "the last block of a sequence, found by `atomicSub` with no `__threadfence()` before, reads what the "
    "others stored, and writes the pivot over what they have read.",
    "radixsort": "`scanwarp` adds across lanes through shared memory, which is not even `volatile`, with no "
    "`__syncwarp()` between its steps: it trusts that a warp goes in step.",
    "rsbench": "it knows the checksum of its full sizes alone.",
    "rsmt": "the data that it reads are not in the repository.",
    "sad": "its bitmap_image.hpp is not in the repository.",
    "sc": "blocks compact an array in place, one after the other by flags, which they set by `atomicAdd` with no "
    "`__threadfence()` before: what one has read is not known to be read when the next overwrites it.",
    "segsort": "`warp_exclusive_sum` works in place: a lane stores an element that the next one has loaded, with "
    "shuffles alone between, which order no memory by CUDA's guide. Harmless, as far as was read: each lane's load "
    "gives what it passes to the first shuffle.",
    "simplemoc": "the 14 vectors in `v_acc` are one thread's room for intermediate results, and all threads use them "
    "at once.",
    "simpleSpmv": "all threads of a row store their `temp` to `y[m]` behind the shuffles, and that of the first alone "
    "is the sum.",
    "slu": "its library NICSLU is not in the repository.",
    "sosfil": "threads pass a sample on to the next one through `s_out`, each reads its neighbour's and then stores "
    "its own, with no barrier between the two.",
    "ssm": "the host asks for the size of its shared memory, which holds a `cub::BlockScan`'s.",
    "sssp": "the graph that it reads is not in the repository.",
    "testSNAP": "the file of reference data that it includes is not in the repository.",
    "tpacf": "its loops over 128 points are unrolled, with a chain of up to 31 branches for each.",
    "tqs": "thread 0 of a block fetches the next task before it asks whether there is one: behind the last one it "
    "reads past the queue, and throws that away.",
    "tsp": "threads whose change is the best store their number to the same word; a comment there says so: "
    '"non-deterministic winner". Harmless, whoever wins.',
    "word2vec": "the text that it reads is not in the repository.",
    "romberg": "lanes 1 to 16 store their sums at line 59 and lane 0 adds them up from line 65 on; a `__syncwarp()` is "
    "missing between.",
    "split": "`scanwarp` adds across lanes through `volatile` shared memory and trusts that a warp goes in step.",
    "remap": "its kernel takes a `thrust::device_ptr`, which NVRTC is not given.",
    **dict.fromkeys(("snicit", "tonemapping"), "the data that it reads are not in the repository."),
    "seam-carving": "it needs stb_image.h, which is not in the repository.",
    "urng": "each thread's table is `iv[NTAB * j + tid]`, NTAB 16, where the number of threads must stand: "
    "those 16 apart share elements.",
    "threadcpy": "`remaining = n - index` is unsigned: for threads of the last block that begin behind the end it is a "
    "huge number, and they copy a vector past the array.",
    "interval": "its Boost is found by an option that its Makefile lacks.",
    "jaccard": "a warp holds rows of 16 threads with other numbers of rounds, and each shuffle names all 32 lanes.",
    "kmeans": "its Makefile builds it of many files by rules that the runner does not follow.",
    "layernorm": "the second `BlockReduce` writes shared memory that threads still read in the first; no barrier "
    "stands between the two.",
    "lci": "`alpha` asks for element 2 l - 1 = 299 of a table of 298.",
    "lfib4": "of `cy` the kernel sets the last third alone, and reads the others in its first round.",
    "lif": "after one step in place of thousands a time of -1138.4 is held to the host's within 0.1, and they differ "
    "by 0.1: other roundings of a logarithm. What a GPU does was not seen.",
    **dict.fromkeys(
        ("egs", "logic-resim"), "its data are not in the repository, and it reads on from what opening them gave."
    ),
    "lulesh": "it copies from `&m_dxx[0]`, `m_dyy` and `m_dzz`, of no elements before the first step; those "
    "copies fail, and nobody looks. All else of its 15 kernels runs without a defect.",
    "maxFlops": "kernels warm up on memory that is filled later.",
    "meanshift": "its data are not in the repository.",
    "mf-sgd": "its kernel calls `__shfl` and `__shfl_down`, which no card has that CUDA 13 knows.",
    "minibude": "its deck is not in the repository.",
    "minimap2": "its files are named by options, which the runner leaves out.",
    "morphology": "`twoWayScan` adds in place: threads read `opArray` where others write it in the same round.",
    "myocyte": "`kernel_cam` ends with `d_finavalu[com_offset] = ...` where its comment means `d_com`: it stores to "
    "elements 0 to 2, which `kernel_ecc` of the other block stores, too.",
    "opticalFlow": "textures.",
    "haversine": "the table of places that it reads is not in the repository.",
    "intrinsics-cast": "the host's loop fills elements 1 to n of arrays of n, one past their end; at the full size the "
    "arrays have pages of their own, which forgive it.",
    "pad": "blocks pad a matrix in place, one after the other by flags, and each sets its flag by `atomicAdd` with no "
    "`__threadfence()` before: what it read is not known to be read when the next one overwrites it.",
    "perlin": "the table has 256 elements, and `_hash[h0 + iy0]` asks for up to 510; noise by Perlin repeats it.",
    "phmm": "the two buffers change places after each launch, and the second is `cudaMalloc`'s: of its first row and "
    "column the kernel reads elements that no launch wrote.",
    **dict.fromkeys(("permutate", "prna"), "the data that it reads are not in the repository."),
    "daphne": "the data that it reads are not in the repository.",
    "pitch": "no element is filled before the kernels take the sigmoid of each.",
    "permute": "it needs cuBLAS.",
    **dict.fromkeys(("rotary", "unfold"), "its kernel is a template of a lambda's type, which NVRTC cannot name."),
    "wyllie": "each round reads entries of other threads and then writes its own, with a barrier of the block between "
    "the two; nothing orders a write and the next round's reads. Entries are whole (64 bits), so the list comes out "
    "right on a GPU. The barrier stands in a loop that threads leave after different numbers of rounds.",
}

# The same of the programs of `suites`, by suite and program.
READ_SUITES: dict[str, str] = {
    "polybench/atax": "blocks have 32 × 8 threads, and the kernels use the index along x alone: eight threads compute "
    "each element and add to it in global memory at once (`tmp[i] += ...`), so that it depends on their order.",
    "polybench/mvt": "as in atax: eight threads of a block of 32 × 8 add to each `x1[i]` at once.",
    "polybench/lu": "the last step launches a grid of no blocks, as no column is left; the launch fails on a GPU, too, "
    "and nobody looks.",
    "rodinia/srad_v2": "blocks at an edge load the row before the first, or behind the last, and then put the edge's "
    "own in its place: the loads lie outside the array, and what they give is thrown away.",
    "rodinia/hybridsort": "its helper_cuda.h reads `computeMode`, a member that cudaDeviceProp lacks since CUDA 13.",
    "rodinia/kmeans": "it binds texture references, which CUDA 12 removed.",
    **dict.fromkeys(
        ("shoc/DeviceMemory", "shoc/MD", "shoc/Spmv"), "it binds texture references, which CUDA 12 removed."
    ),
    "shoc/NeuralNet": "it needs cuBLAS.",
    **dict.fromkeys(("pmpp/21.1", "pmpp/21.2"), "its kernels launch kernels, which the simulator does not know."),
    "pmpp/11.1": "after the last step of a block's scan all threads read its last element, which another thread has "
    "just stored, with no barrier between.",
    "pmpp/12.1": "the range that thread 0 leaves in shared memory is read by all, and then overwritten by the first "
    "tile, with no barrier between.",
    "pmpp/13.1": "the merge sort swaps its two arrays in each pass and in the end frees the one that is not its "
    "result: after an odd number of passes that is its caller's. Its own data take 20 passes, those here 15.",
    "pmpp/15.1": "in a search by levels many threads set the same level of a node, and the same flag, while others "
    "look at them: all write the same number, so that it comes out right on a GPU.",
    "pmpp/17.2": "what measures the time allocates arrays and fills none of them.",
    "shoc/S3D": "its parser of options is host code in classes that NVRTC cannot read without `std::string`.",
    "kittens/b200_level_09": "warp 0 frees the tensor memory behind a cluster's barrier at which the second consumer "
    "does not arrive: its warps have ended, after they had waited for their product. PTX says of it only that "
    "it does not wait for threads that have ended, not that what they knew is passed on. Harmless, as far as was read.",
    **dict.fromkeys(
        ("shoc/Reduction", "shoc/Scan"),
        "the last warp adds through shared memory that is not even `volatile`, with nothing between its steps; a "
        'comment there says so: "would also need __sync calls if warp synchronous execution were not assumed".',
    ),
}

# Why nothing notices that a barrier was deleted (`barriers`), by program and kernel: what it does not order, as read.
READ_BARRIERS: dict[str, str] = {
    "HeCBench/backprop/kernel_adjust_weights": "needless: `w` and `oldw` are updated from element 18 on before it, and "
    "up to element 16 behind it.",
    "HeCBench/backprop/kernel_layerforward": "needless: the next one, three lines on, stands before the first read.",
    "HeCBench/moe/moeTopK": "needless at the size that runs: it parts the rounds of a loop that has one, as the best "
    "expert alone is asked for. Found where two are.",
    **dict.fromkeys(
        ("HeCBench/scatterAdd/scatterAdd_kernel", "HeCBench/scatterAdd/scatterAdd2_kernel"),
        "needless at the size that runs: all work is in the first of 16 rounds, and the barrier in the middle of the "
        "next stands before what is read behind the loop. Found with 1,200 indices in place of 152.",
    ),
    "kittens/b200_level_06/matmul_kernel": "needless: the next (`warpgroup::sync`) is of all its threads, too.",
    "kittens/b200_level_08/matmul_kernel": "needless: since the one before, nobody has written what others read.",
    "kittens/level_04/kernel": "needless: between it and the next one are products in registers alone.",
    "pmpp/6.1/TiledMatrixMulKernelColMajor": "needless at the size that runs: it parts the rounds of a loop "
    "that has one.",
    "shoc/Sort/scan": "needless: behind it, each thread uses registers of its own and global memory that is its own.",
}
