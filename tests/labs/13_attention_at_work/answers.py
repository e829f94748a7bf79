"""Right and wrong answers to the tasks of lab 13's second lesson ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers, one_line


def kernel(head: str, *body: str) -> str:
    return "\n".join(["@cuda.jit", f"def {head}:", *(f"    {line}" for line in body)])


def split(
    keys: str = "range(b * part, (b + 1) * part)",
    result: str = "acc",
    total: str = "own_total * shrink + p",
    acc: str = "acc * shrink + p * v[j, c]",
    start: str = "float32(-math.inf)",
    weight: str = "math.exp(s - new)",
    scale: str = "SCALE",
) -> str:
    return kernel(
        "split(q, k, v, top, total, o)",
        "b, c = cuda.blockIdx.x, cuda.threadIdx.x",
        "part = k.shape[0] // cuda.gridDim.x",
        f"own, own_top, own_total, acc = q[c], {start}, float32(0), float32(0)",
        f"for j in {keys}:",
        f"    s = warp_sum(own * k[j, c]) * {scale}",
        "    new = max(own_top, s)",
        f"    shrink, p = math.exp(own_top - new), {weight}",
        f"    own_total = {total}",
        f"    acc = {acc}",
        "    own_top = new",
        f"o[b, c] = {result}",
        "if c == 0: top[b], total[b] = own_top, own_total",
    )


def combine(weights: str = "np.exp(top - top.max())", result: str = "weights @ o / (weights @ total)") -> str:
    return f"def combine(top, total, o):\n    weights = {weights}\n    return {result}"


def backward(
    score: str = "s *= SCALE",
    weight: str = "p = math.exp(s - lse[y])",
    ds: str = "tile[y, x] = p * (dp - delta[y])",
    wait: str = "cuda.syncthreads()",
    product: str = "acc += tile[y, j] * k[j, x]",
    result: str = "acc * SCALE",
) -> str:
    return kernel(
        "backward(q, k, v, do, lse, delta, dq)",
        "tile = cuda.shared.array((32, 33), float32)",
        "x, y = cuda.threadIdx.x, cuda.threadIdx.y",
        "s, dp, acc = float32(0), float32(0), float32(0)",
        "for c in range(32):",
        "    s += q[y, c] * k[x, c]",
        "    dp += do[y, c] * v[x, c]",
        score,
        weight,
        ds,
        wait,
        "for j in range(32):",
        f"    {product}",
        f"dq[y, x] = {result}",
    )


OPERAND = "operand(left, right)"
CACHE = "cache_bytes(layers, kv_heads, head, tokens, itemsize)"
AGAIN = "again(d, itemsize, tflops, gbs)"
PRODUCTS = "products(heads, queries, keys, size)"
KV_HEAD = "kv_head(head, heads, kv_heads)"
HELD = "held(rank, step, ranks)"

ANSWERS = {
    "your-turn-operand": Answers(
        one_line(OPERAND, "np.concatenate([left, right], axis=1).astype(np.float16)"),
        {
            one_line(OPERAND, "np.concatenate([right, left], axis=1).astype(np.float16)"): "which half has columns",
            one_line(OPERAND, "np.concatenate([left, right], axis=1)"): "another kind of array",
            one_line(
                OPERAND, "np.stack([left, right], axis=2).reshape(32, 8).astype(np.float16)"
            ): "operand returns wrong values",
        },
    ),
    "your-turn-products": Answers(
        one_line(PRODUCTS, "heads * queries * keys * size // 1024"),
        {
            one_line(PRODUCTS, "heads * queries * keys * size // 2048"): "every result is",
            one_line(PRODUCTS, "2 * heads * (queries // 16) * (keys // 16) * (size // 16)"): "every result is",
            one_line(PRODUCTS, "heads * queries * keys // 64"): "products(heads=",
            one_line(PRODUCTS, "queries * keys * size // 1024"): "products(heads=4",
        },
    ),
    "your-turn-cache": Answers(
        one_line(CACHE, "2 * layers * kv_heads * head * tokens * itemsize"),
        {
            one_line(CACHE, "layers * kv_heads * head * tokens * itemsize"): "every result is",
            one_line(CACHE, "2 * kv_heads * head * tokens * itemsize"): "cache_bytes(layers=2",
        },
    ),
    "your-turn-kv-head": Answers(
        one_line(KV_HEAD, "head * kv_heads // heads"),
        {
            one_line(KV_HEAD, "head % kv_heads"): "kv_head(head=",
            one_line(KV_HEAD, "head // kv_heads"): "kv_head(head=",
            one_line(KV_HEAD, "head"): "kv_head(head=",
        },
    ),
    "your-turn-split": Answers(
        split(),
        {
            split(keys="range(k.shape[0])"): "wrong in",
            split(keys="range(b, k.shape[0], cuda.gridDim.x)"): "wrong in",
            split(result="acc / own_total"): "wrong in",
            split(total="own_total + p"): "total is wrong",
            split(acc="acc + p * v[j, c]"): "o is wrong",
            split(total="own_total + p", acc="acc + p * v[j, c]", weight="math.exp(s)"): "they are no float32",
            split(start="float32(0)"): "it starts too high",
            split(scale="float32(1)"): "the scale: 1/√32",
        },
    ),
    "your-turn-combine": Answers(
        combine(),
        {
            combine(weights="np.ones(top.size)"): "what totals and outputs of a part refer to",
            combine(result="(o / total[:, None]).mean(axis=0)"): "combine returns wrong values",
            combine(result="weights @ o"): "combine returns wrong values",
            combine(weights="np.exp(top.max() - top)"): "combine returns wrong values",
            combine(weights="np.exp(top)"): "infinite, or all 0",
        },
    ),
    "your-turn-backward": Answers(
        backward(),
        {
            backward(wait="pass"): "nothing orders the two",
            backward(ds="tile[y, x] = p * dp"): "ds: delta",
            backward(result="acc"): "dq: 1/√32, in the end",
            backward(score="pass"): "p: the scale of s",
            backward(product="acc += tile[j, y] * k[j, x]"): "dq is wrong",
            backward(weight="p = math.exp(s)"): "dq is wrong",
        },
    ),
    "your-turn-again": Answers(
        one_line(AGAIN, "2 * d * gbs / (1000 * tflops * itemsize)"),
        {
            one_line(AGAIN, "d * gbs / (1000 * tflops * itemsize)"): "every result is",
            one_line(AGAIN, "1000 * tflops * itemsize / (2 * d * gbs)"): "again(d=64",
            one_line(AGAIN, "2 * d * gbs / (tflops * itemsize)"): "unit of the result",
        },
    ),
    "your-turn-ring": Answers(
        one_line(HELD, "(rank - step) % ranks"),
        {
            one_line(HELD, "(rank + step) % ranks"): "held(rank=",
            one_line(HELD, "rank - step"): "held(rank=",
            one_line(HELD, "rank"): "held(rank=",
        },
    ),
}
