"""Right and wrong answers to the tasks of lesson 13 ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers, one_line


def kernel(head: str, *body: str) -> str:
    return "\n".join(["@cuda.jit", f"def {head}:", *(f"    {line}" for line in body)])


def scores(
    total: str = "acc += q[i, c] * kt[c, j]",
    guard: str = "if i < s.shape[0] and j < s.shape[1]:",
    start: str = "float32(0)",
    result: str = "acc * SCALE",
) -> str:
    loop = f"    acc = {start}", "    for c in range(q.shape[1]):", f"        {total}", f"    s[i, j] = {result}"
    return kernel("scores(q, kt, s)", "j, i = cuda.grid(2)", guard, *loop)


SERIAL_SCORES = kernel(
    "scores(q, kt, s)",
    "if cuda.grid(2)[0] + cuda.grid(2)[1] == 0:",
    "    for i in range(s.shape[0]):",
    "        for j in range(s.shape[1]):",
    "            acc = float32(0)",
    "            for c in range(q.shape[1]): acc += q[i, c] * kt[c, j]",
    "            s[i, j] = acc * SCALE",
)

LANE = "row, lane = cuda.blockIdx.x, cuda.threadIdx.x"


def softmax(
    top: str = "top = warp_max(top)",
    total: str = "total = warp_sum(total)",
    weight: str = "math.exp(s[row, j] - top)",
    share: str = "/ total",
    first: str = "lane",
    start: str = "float32(-math.inf)",
) -> str:
    loop = f"for j in range({first}, s.shape[1], {32 if first == 'lane' else 1}):"
    return kernel(
        "softmax(s, p)",
        LANE,
        f"top, total = {start}, float32(0)",
        f"{loop} top = max(top, s[row, j])",
        top,
        f"{loop} total += {weight}",
        total,
        f"{loop} p[row, j] = {weight} {share}",
    )


def weighted(product: str = "p[i, j] * v[j, c]", guard: str = "if i < o.shape[0]:") -> str:
    loop = "    acc = float32(0)", f"    for j in range(p.shape[1]): acc += {product}", "    o[i, c] = acc"
    return kernel("weighted(p, v, o)", "c, i = cuda.grid(2)", guard, *loop)


def merge(total: str = "total_1 * math.exp(top_1 - top) + total_2 * math.exp(top_2 - top)") -> str:
    return f"def merge(top_1, total_1, top_2, total_2):\n    top = max(top_1, top_2)\n    return top, {total}"


def once(
    total: str = "own_total * math.exp(own_top - new) + math.exp(x - new)",
    lanes: str = "warp_sum(own_total * math.exp(own_top - new))",
    load: str = "x = s[row, j]",
    start: str = "float32(-math.inf)",
) -> str:
    return kernel(
        "once(s, top, total)",
        LANE,
        f"own_top, own_total = {start}, float32(0)",
        "for j in range(lane, s.shape[1], 32):",
        f"    {load}",
        "    new = max(own_top, x)",
        f"    own_total = {total}",
        "    own_top = new",
        "new = warp_max(own_top)",
        f"whole = {lanes}",
        "if lane == 0:",
        "    top[row], total[row] = new, whole",
    )


ONCE_TWICE = kernel(
    "once(s, top, total)",
    LANE,
    "own_top, own_total = float32(-math.inf), float32(0)",
    "for j in range(lane, s.shape[1], 32): own_top = max(own_top, s[row, j])",
    "own_top = warp_max(own_top)",
    "for j in range(lane, s.shape[1], 32): own_total += math.exp(s[row, j] - own_top)",
    "own_total = warp_sum(own_total)",
    "if lane == 0: top[row], total[row] = own_top, own_total",
)


RAW_ONCE = once("own_total + math.exp(x)", "warp_sum(own_total) * math.exp(-new)")


def one_row(
    total: str = "total = total * shrink + p",
    acc: str = "acc = acc * shrink + p * v[j, c]",
    query: str = "own",
    result: str = "acc / total",
    score: str = "warp_sum({} * k[j, c])",
    start: str = "float32(-math.inf)",
    new: str = "max(top, s)",
    scale: str = "SCALE",
) -> str:
    return kernel(
        "one_row(q, k, v, o)",
        "i, c = cuda.blockIdx.x, cuda.threadIdx.x",
        f"own, top, total, acc = q[i, c], {start}, float32(0), float32(0)",
        "for j in range(k.shape[0]):",
        f"    s = {score.format(query)} * {scale}",
        f"    new = {new}",
        "    shrink, p = math.exp(top - new), math.exp(s - new)",
        f"    {total}",
        f"    {acc}",
        "    top = new",
        f"o[i, c] = {result}",
    )


def tiled(
    name: str = "tiled",
    loop: str = "for start in range(0, k.shape[0], 32):",
    pitch: int = 33,
    masked: str = "",
    shrunk: str = "acc *= shrink",
    first_wait: str = "cuda.syncthreads()",
    second_wait: str = "cuda.syncthreads()",
    summed: str = "warp_sum(p)",
    start: str = "float32(-math.inf)",
    new: str = "max(top, warp_max(s))",
    weight: str = "math.exp(s - new)",
    scale: str = "s *= SCALE",
) -> str:
    return kernel(
        f"{name}(q, k, v, o)",
        f"k_tile, v_tile = cuda.shared.array((32, {pitch}), float32), cuda.shared.array((32, 32), float32)",
        "lane, warp = cuda.threadIdx.x, cuda.threadIdx.y",
        "i = 8 * cuda.blockIdx.x + warp",
        f"own, top, total, acc = q[i, lane], {start}, float32(0), float32(0)",
        loop,
        "    for r in range(warp, 32, 8):",
        "        k_tile[r, lane] = k[start + r, lane]",
        "        v_tile[r, lane] = v[start + r, lane]",
        f"    {first_wait}",
        "    s = float32(0)",
        "    for c in range(32):",
        "        s += cuda.shfl_sync(0xFFFFFFFF, own, c) * k_tile[lane, c]",
        f"    {scale}",
        *([f"    {masked}"] if masked else []),
        f"    new = {new}",
        f"    shrink, p = math.exp(top - new), {weight}",
        f"    total = total * shrink + {summed}",
        f"    {shrunk}",
        "    for j in range(32):",
        "        acc += cuda.shfl_sync(0xFFFFFFFF, p, j) * v_tile[j, lane]",
        "    top = new",
        f"    {second_wait}",
        "o[i, lane] = acc / total",
    )


MASK = "s = s if start + lane <= i else float32(-math.inf)"
SKIP = "for start in range(0, 8 * cuda.blockIdx.x + 8, 32):"


ZERO = "float32(0)"  # of which no maximum may start, and to which raw exponentials refer


def causal(masked: str = MASK, loop: str = SKIP, **others: str) -> str:
    return tiled("causal", loop, masked=masked, **others)


STORED = "stored(heads, length, itemsize)"

ANSWERS = {
    "your-turn-scores": Answers(
        scores(),
        {
            scores(result="acc"): "the scale: 1/√32, once",
            scores(guard="if True:"): "Is a guard missing",
            scores("acc += q[j, c] * kt[c, i]"): "past the end of q",
            SERIAL_SCORES: "one thread does too much of the work",
        },
    ),
    "your-turn-softmax": Answers(
        softmax(),
        {
            softmax(share=""): "the division by the row's sum",
            softmax(total="pass"): "a lane has only its own elements': warp_sum",
            softmax(top="pass"): "a lane has only its own elements': warp_max",
            softmax(weight="math.exp(s[row, j])"): "they are no float32",
            softmax(start=ZERO): "it starts too high",
            softmax(start="-math.inf"): "float64",
            softmax(first="0", top="pass", total="pass"): "one thread does too much of the work",
        },
    ),
    "your-turn-weighted": Answers(
        weighted(),
        {
            weighted("p[i, j] * v[c, j]"): "o is wrong in",
            weighted(guard="if True:"): "Is a guard missing",
            weighted("p[i, j]"): "o is wrong in",
        },
    ),
    "your-turn-stored": Answers(
        one_line(STORED, "heads * length**2 * itemsize"),
        {
            one_line(STORED, "heads * length * itemsize"): "how the result depends on each input",
            one_line(STORED, "2 * heads * length**2 * itemsize"): "every result is 2 times the right one",
            one_line(STORED, "length**2 * itemsize"): "stored(heads=16",
        },
    ),
    "your-turn-merge": Answers(
        merge(),
        {
            merge("total_1 + total_2"): "what a part's sum refers to",
            merge("total_1 * math.exp(top - top_1) + total_2 * math.exp(top - top_2)"): "what a part's sum refers to",
            merge("max(total_1, total_2)"): "the sum of a row",
            merge("(total_1 * math.exp(top_1) + total_2 * math.exp(top_2)) / math.exp(top)"): "infinite, or all 0",
        },
    ),
    "your-turn-once": Answers(
        once(),
        {
            once(total="own_total + math.exp(x - new)"): "what a lane added before its maximum grew",
            once(lanes="warp_sum(own_total)"): "each refers to its own lane's maximum",
            once(lanes="own_total"): "lane 0 has only its own elements'",
            once(start=ZERO): "it starts too high",
            RAW_ONCE: "they are no float32",
            ONCE_TWICE: "too many global load bytes",
        },
    ),
    "your-turn-one-row": Answers(
        one_row(),
        {
            one_row(total="total += p"): "total: what was added before the maximum grew",
            one_row(acc="acc += p * v[j, c]"): "acc: what was added before the maximum grew",
            one_row(result="acc"): "the division by total",
            one_row(query="q[i, c]"): "too many global load bytes",
            one_row(score="({} * k[j, c])"): "o is wrong in",
            one_row(start=ZERO, new=ZERO): "they are no float32",
            one_row(start=ZERO): "it starts too high",
            one_row(new="s"): "an earlier may be larger",
            one_row(scale="float32(1)"): "the scale: 1/√32",
        },
    ),
    "your-turn-tiled": Answers(
        tiled(),
        {
            tiled(shrunk="pass"): "acc: what was added before the maximum grew",
            tiled(pitch=32): "too many shared load bank conflicts",
            tiled(first_wait="pass"): "nothing orders the two",
            tiled(second_wait="pass"): "nothing orders the two",
            tiled(summed="p"): "only its own keys' weights: warp_sum",
            tiled(start=ZERO, new=ZERO): "they are no float32",
            tiled(start=ZERO): "it starts too high",
            tiled(new="warp_max(s)"): "an earlier may be larger",
            tiled(scale="pass"): "the scale: 1/√32",
        },
    ),
    "your-turn-causal": Answers(
        causal(),
        {
            causal(loop="for start in range(0, k.shape[0], 32):"): "too many global load bytes",
            causal(masked="pass"): "later keys of a tile must weigh nothing",
            causal(masked=MASK.replace("<=", "<")): "a token sees itself",
            causal(masked="", weight="math.exp(s - new) if start + lane <= i else float32(0)"): "it comes too late",
            causal(start=ZERO, new=ZERO): "they are no float32",
            causal(start=ZERO): "it starts too high",
            causal(scale="pass"): "the scale: 1/√32",
            causal(loop=SKIP.replace(" + 8", "")): "o is wrong in",
        },
    ),
}
