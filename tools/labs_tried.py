"""What readers ran into who worked through a lab as newcomers, in the simulator, and what was changed for it.

For each lab, pairs of text in Markdown. docs/labs.md shows them.
"""

TRIED = {
    "02_memory_access": [
        (
            "The naive transpose was said to be slow since each sector of `out` is written by many blocks; with blocks "
            "of 32 × 8 one block fills each.",
            "The text names what `ncu` shows: the L1 cache does not gather stores, and the L2 cache takes eight times "
            "as many sectors.",
        ),
        (
            "The line of Little's law lay at twice what its key said, and contradicted the reader's own answer.",
            "A copy writes as much as it reads: key and text say so.",
        ),
        (
            "An offset of 8, which the question named, was not answered; the fifth sector was blamed for 3 % that an "
            "offset of 8 costs too.",
            "The text gives the recorded rates by offset, and says what was not examined.",
        ),
        (
            "GB/s of useful bytes at stride 2 are 79 % of those at stride 1, the counter says 50 %.",
            "The text computes the bytes that really move, for strides 2, 8 and 16.",
        ),
        (
            "A table before a prediction gave a wrong hint, since its grid was not the one that is timed.",
            "The grid-stride sum runs there on a small grid of fixed size, as the timed one does on a large one.",
        ),
        (
            "Numba's grid-stride sum is faster than that of CUDA C++, and nobody says why.",
            "The text does: the loop is unrolled, so four loads are under way.",
        ),
        (
            '"Confirmed" hung on a threshold that was only in the code, and on a simple two-dimensional tile.',
            "The verdict names threshold, radii and the tile's weakness.",
        ),
        (
            "Kernels of charts were never seen, or were other ones than the question named.",
            "The point kernels stand in cells; questions name the kernels; the files are linked.",
        ),
        (
            "`atomicAdd` was needed in the exercise and explained nowhere.",
            "The ladder of sums introduces it in C++ and Numba.",
        ),
        (
            "The message on a race in a Numba kernel asked for `__syncthreads()`; one on lost sums said "
            '"the last element".',
            "Messages name Numba's barriers, and stores to one element without an atomic operation.",
        ),
        (
            "Two problems of the exercise could be pasted from the lesson.",
            "They ask for a quarter turn through a tile of 16 × 64 and for four sums; the lesson's kernels with few "
            "edits are among the wrong answers.",
        ),
        (
            "Occupancy and the prefix sum went too fast; 90 minutes were too few.",
            "Occupancy has a task of its own, the look-back an example with numbers; the lab says two and a half "
            "hours.",
        ),
    ],
    "03_warp_divergence": [
        (
            "The first hand-over task accepted a `__syncwarp()` on one side only, against its own hint.",
            "The rule is stated (lanes that have not ended), the task goes there and back, and the one-sided answers "
            "are tried in the tests.",
        ),
        (
            "Code that writes one place from all lanes was told that the result is wrong, not that there is a race.",
            "The message gives both.",
        ),
        (
            "`in_turn` was described such that it could be read as `ordered`.",
            "Its ten lines stand in the text.",
        ),
        (
            "Lanes that wait for others and lanes that are done looked alike in the timelines; letters changed colour.",
            "Waiting lanes are hatched, the key names both, one palette serves all pictures.",
        ),
        (
            "A branch was predicted to double the instructions; 1.65 times came, without a word.",
            "The loops are long enough that 0.50 and twice come out.",
        ),
        (
            "After some predictions no sentence followed: passes of matched atomics, counts of two lines, two "
            "efficiencies that differ.",
            "A sentence each.",
        ),
        (
            "`BSSY` and `BSYNC` were explained below a listing that ended one line before the second; `P0`, `FSETP` "
            "and `FFMA` were not.",
            "The listing is whole, and the words are explained.",
        ),
        (
            "The number of turns that spinning lanes wait looked like one of the hardware.",
            "The text says that the simulator chose it.",
        ),
        (
            "The ladders at the end named kernels that a reader had never seen.",
            "A line for each, in a table.",
        ),
        (
            "The exercise needs four intrinsics in C++ that the lesson showed in Numba only.",
            "The lesson names both.",
        ),
        (
            "The repair with `__syncwarp()` could be got around without any hand-over.",
            "Lesson and exercise count the loads from shared memory; shuffles instead are among the wrong answers.",
        ),
        (
            "90 minutes were too few.",
            "The lab says two and a half hours; cooperative groups are marked as optional.",
        ),
    ],
    "04_matrix_multiply": [
        (
            "Four rows a thread, written as the hints say, took more passes than an order that looks worse (1.31, "
            "0.81), and nobody said why.",
            "The text does: the compiler unrolls one loop by four and the other in full. A test holds both numbers.",
        ),
        (
            'A sum that starts at `0` is float64: "right", and then a count twice too high.',
            "The text says why `float32(0)` stands there; check and exercise count operations in float64 and name the "
            "line.",
        ),
        (
            "A problem said that values are read again where the loop over k is inside; the compiler had saved it.",
            "Problem and hint say that the machine code is counted and that one should not rely on the compiler; a "
            "message on local memory asks how many values a thread keeps.",
        ),
        (
            "A prediction for two steps gave the blocks of one, and no registers.",
            "A table gives both; both are drawn.",
        ),
        (
            "The timeline of asynchronous copies looked as if nothing overlapped.",
            "A picture of tiles: when each is on its way, and when it is used.",
        ),
        (
            "Loads of 16 bytes were used and not explained.",
            "Two sentences before they are met, and a task on their bank conflicts.",
        ),
        (
            '"Nothing is full" at 74 %, "the limit" at 72 %; a point left of the one before it "nearer to the corner".',
            "The picture has a line at 80 %, the text gives the shares.",
        ),
        (
            'Measured shares above what a formula allows; "128 or 256 blocks" for nine shapes of fifteen.',
            "The formula is divided by its best value, too; the exceptions are named.",
        ),
        (
            "Messages named one line where several add to a counter, a thread's own element where it loads for the "
            "block, a bound where there was none; a compiler's error named no cause; 44 for 45 was an error that "
            '"differs from input to input".',
            "All lines with their share, the guard of the load into shared memory, the guard of the store, the "
            "sizes of a shared array, off by one.",
        ),
        (
            "Talks A, B and C were listed nowhere.",
            "A page on the sources, linked from the lessons.",
        ),
    ],
    "05_tensor_cores": [
        (
            "A forgotten `fill_fragment` earned full points, since the simulator read 0 from registers that nothing "
            "had written.",
            "It is an error where the fragment is used; answers without it are among the wrong ones.",
        ),
        (
            "The ladder's section described pictures that did not exist, as nobody had timed it then; the README said "
            '"ready".',
            "The text says what shows without a GPU and without a recording. The ladder has been timed since, and the "
            "verdict prints what was measured here and what was recorded.",
        ),
        (
            "Step 4 seemed to be able to reach the peak: that `mma.sync` does not, on an H100, stood in a file's "
            "header only, and its bound by shared memory was not explained.",
            "Both are in the text.",
        ),
        (
            "FP16 sums were rounded in one place, and tensor cores cut off in another.",
            "The text says which sums are rounded and which are cut.",
        ),
        (
            "Where a tile lay past the end, or a bias, the message blamed the types of a parameter that was right.",
            "Only the array in question is looked at, halves in pairs are no mistake, and loads of fragments are told "
            "of the tile that lies past the end.",
        ),
        (
            "A two-dimensional tile as the source of a fragment made the compiler print 230 lines.",
            "Declarations of headers that do not match are counted, not printed; a hint names types and pointer, and "
            "so does the problem.",
        ),
        (
            'A wrong layout of a fragment was told of "the expression that computes an element".',
            "The message speaks of layout, stride and start, and names the factor whose tiles came out transposed.",
        ),
        (
            "The repair's hint asked to launch the kernel on matrices of one's own, and arrays for that were missing.",
            "The hint has the call with `simulate`.",
        ),
        (
            "Four tiles came in an order that nobody told, and that `ldmatrix` delivers what `mma.sync` wants was "
            "taken for granted.",
            "The order is stated, and the text says which cell tests the rest.",
        ),
        (
            "Colours and numbers without a key, curves that hid others, a word outside its axes.",
            "The pictures have keys and titles; curves below others are wider.",
        ),
        (
            "The scale that the reader computed was used nowhere.",
            "It is tried beside 4096, and the text says why frameworks stay below the largest.",
        ),
        (
            "Lesson and exercise used different namespaces; 14.8 for the H100 was unexplained; the time for the "
            "exercise was missing.",
            "One namespace, the two clocks, three hours.",
        ),
        (
            "The peaks of one table were 894 and 661 TFLOP/s, of another 783 and 514, and the text drew conclusions "
            "from the first; clocks were given that could not carry the rates.",
            "Step 1, which lets the card rest, is timed apart. All was recorded anew, and the limits come from counts "
            "of Nsight Compute.",
        ),
        (
            "Steps 2 and 3 stayed at half of what their headers expected, and nothing said why.",
            "The headers have the profile.",
        ),
        (
            "The headers of the kernels gave away the prediction; the prediction asked for shares of the library and "
            "gave bounds of the peak.",
            "The reader is told how far to read, and what the library reaches of the data sheet.",
        ),
        (
            "It was not said of each claim whether it holds.",
            "Each paragraph of the verdict begins with that.",
        ),
        (
            "Sums made by the ordinary cores earned five points, against the exercise's own words.",
            "The cells that test results count products on tensor cores, too.",
        ),
    ],
}
