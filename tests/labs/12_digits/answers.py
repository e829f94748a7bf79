"""Right and wrong answers to the tasks of lesson 12 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

STEP = "step_policy(rate, gamma, size, done)"
ORDER = "order(seed, epoch, count)"
IOU = "iou(a, b)"
MASK = "mask_iou(truth, guess, label)"


def best_epoch(new: str = "loss < losses[best]", ends: str = "epoch - best >= patience") -> str:
    return dedent(
        f"""\
        def best_epoch(losses, patience):
            best = 0
            for epoch, loss in enumerate(losses):
                if {new}:
                    best = epoch
                if {ends}:
                    break
            return best"""
    )


def confusion(body: str = "cuda.atomic.add(matrix, (labels[i], guesses[i]), 1)", guard: str = "i < labels.size") -> str:
    return dedent(
        f"""\
        @cuda.jit
        def confusion(labels, guesses, matrix):
            i = cuda.grid(1)
            if {guard}:
                {body}
        """
    )


SERIAL = "for k in range(labels.size):\n                    cuda.atomic.add(matrix, (labels[k], guesses[k]), 1)"


BY_STRIDES = """\
@cuda.jit
def confusion(labels, guesses, matrix):
    for i in range(cuda.grid(1), labels.size, cuda.gridsize(1)):
        cuda.atomic.add(matrix, (labels[i], guesses[i]), 1)"""
COUNTED = """\
def best_epoch(losses, patience):
    lowest, best, since = float("inf"), 0, 0
    for epoch, loss in enumerate(losses):
        if loss < lowest:
            lowest, best, since = loss, epoch, 0
        else:
            since += 1
            if since == patience:
                break
    return best"""


def occlusion(
    cover: str = "image.copy()",
    value: str = "0",
    places: str = "- size + 1",
    result: str = "scores(image[None])[0] - scores(np.array(covered))",
) -> str:
    return dedent(
        f"""\
        def occlusion(image, scores, size):
            h, w = image.shape[0] {places}, image.shape[1] {places}
            covered = []
            for y in range(h):
                for x in range(w):
                    one = {cover}
                    one[y : y + size, x : x + size] = {value}
                    covered.append(one)
            return ({result}).reshape(h, w)"""
    )


EACH = "np.array([scores(image[None])[0] - scores(one[None])[0] for one in covered])"


def kept(torn: str = "continue", test: str = 'point["step"] <= step') -> str:
    return dedent(
        f"""\
        def kept(text, step):
            points = []
            for line in text.splitlines():
                try:
                    point = json.loads(line)
                except ValueError:
                    {torn}
                if {test}:
                    points.append(point)
            return points"""
    )


def iou(
    across: str = "max(0, min(ax + aw, bx + bw) - max(ax, bx))",
    down: str = "max(0, min(ay + ah, by + bh) - max(ay, by))",
    result: str = "",
) -> str:
    return dedent(
        f"""\
        def iou(a, b):
            (ax, ay, aw, ah), (bx, by, bw, bh) = a, b
            across = {across}
            down = {down}
            both = across * down
            return {result or "both / (aw * ah + bw * bh - both)"}"""
    )


def nms(order: str = "np.argsort(-scores)", against: str = "kept", test: str = "overlap[i, j] <= limit") -> str:
    return dedent(
        f"""\
        def nms(scores, overlap, limit):
            kept = []
            for i in {order}:
                if all({test} for j in {against}):
                    kept.append(i)
            return kept"""
    )


def average_precision(envelope: str = "np.maximum.accumulate(precision[::-1])[::-1]", result: str = "") -> str:
    return dedent(
        f"""\
        def average_precision(right, objects):
            right = np.array(right, bool)
            precision = np.cumsum(right) / np.arange(1, len(right) + 1)
            envelope = {envelope}
            return {result or "envelope[right].sum() / objects"}"""
    )


ANSWERS = {
    "your-turn-step": Answers(
        one_line(STEP, "rate * gamma ** (done // size)"),
        {
            one_line(STEP, "rate * gamma ** (done / size)"): "step_policy returns the wrong value",
            one_line(STEP, "rate * gamma * (done // size)"): "step_policy returns the wrong value",
            one_line(STEP, "rate * gamma ** done"): "step_policy returns the wrong value",
            one_line(STEP, "rate * gamma ** (done % size)"): "step_policy returns the wrong value",
            one_line(STEP, "gamma ** (done // size)"): "step_policy returns the wrong value",
            one_line(STEP, "rate * gamma ** (done // 25)"): "size=20",
            one_line(STEP, "rate if done < size else rate * gamma"): "step_policy returns the wrong value",
        },
    ),
    "your-turn-confusion": Answers(
        confusion(),
        {
            confusion("matrix[labels[i], guesses[i]] += 1"): "one operation",
            confusion("cuda.atomic.add(matrix, (guesses[i], labels[i]), 1)"): "a row for the label",
            confusion(guard="i >= 0"): "reaches past the end",
            confusion(SERIAL, "i == 0"): "one thread does too much of the work",
            confusion(guard="i < labels.size and labels[i] != guesses[i]"): "which images are counted",
            confusion(guard="i < matrix.size"): "which images are counted",
            confusion("cuda.atomic.add(matrix, labels[i], guesses[i], 1)"): "takes an array, an index",
            confusion("cuda.atomic.add(matrix[labels[i], guesses[i]], 1)"): "takes an array, an index",
            confusion("cuda.atomic.add(matrix, 10 * labels[i] + guesses[i], 1)"): "for a matrix (row, column)",
        },
        also=(BY_STRIDES,),
    ),
    "your-turn-occlusion": Answers(
        occlusion(),
        {
            occlusion(cover="image"): "occlusion changes the image",
            occlusion(value="1"): "occlusion returns the wrong value",
            occlusion(places="- size"): "occlusion returns the wrong shape",
            occlusion(result="scores(np.array(covered)) - scores(image[None])[0]"): "occlusion returns the wrong value",
            occlusion(result="scores(np.array(covered))"): "occlusion returns the wrong value",
            occlusion(result=EACH): "asks the network too often",
        },
    ),
    "your-turn-best": Answers(
        best_epoch(),
        {
            one_line("best_epoch(losses, patience)", "int(np.argmin(losses))"): "best_epoch returns the wrong epoch",
            best_epoch(new="loss <= losses[best]"): "best_epoch returns the wrong epoch",
            best_epoch(ends="epoch - best > patience"): "best_epoch returns the wrong epoch",
            best_epoch(ends="epoch >= patience"): "best_epoch returns the wrong epoch",
            best_epoch(new="epoch and loss < losses[epoch - 1]"): "best_epoch returns the wrong epoch",
            COUNTED.replace("best, since = loss, epoch, 0", "best = loss, epoch"): "best_epoch returns the wrong epoch",
            best_epoch().replace("return best", "return losses[best]"): "best_epoch returns the wrong type",
        },
        also=(COUNTED,),
    ),
    "your-turn-order": Answers(
        one_line(ORDER, "np.random.default_rng([seed, epoch]).permutation(count)"),
        {
            one_line(
                ORDER, "np.random.default_rng(abs(hash(f'{seed} {epoch}'))).permutation(count)"
            ): "another order when it is asked again",
            one_line(ORDER, "np.random.permutation(count)"): "another order when it is asked again",
            one_line(ORDER, "np.random.default_rng(seed).permutation(count)"): "two epochs the same order",
            one_line(ORDER, "np.random.default_rng(seed + epoch).permutation(count)"): "two epochs the same order",
            one_line(
                ORDER, "np.random.default_rng([seed, epoch]).integers(0, count, count)"
            ): "does not return each image once",
            one_line(
                ORDER, "np.roll(np.random.default_rng(seed).permutation(count), epoch)"
            ): "the same images in a row",
            "rng = np.random.default_rng(0)\n"
            + one_line(ORDER, "rng.permutation(count)"): "another order when it is asked again",
        },
        also=(
            one_line(ORDER, "np.argsort(np.random.default_rng((epoch, seed)).random(count))"),
            one_line(ORDER, "np.random.default_rng(abs(hash((seed, epoch)))).permutation(count)"),
        ),
    ),
    "your-turn-kept": Answers(
        kept(),
        {
            one_line(
                "kept(text, step)", "[json.loads(line) for line in text.splitlines()]"
            ): "kept returns the wrong points",
            kept(test='point["step"] < step'): "kept returns the wrong points",
            kept(torn="return []"): "kept returns the wrong points",
            kept(torn="raise"): "kept raises JSONDecodeError",
            kept(test="True").replace("return points", "return points[:step]"): "kept returns the wrong points",
            kept().replace("return points", "return len(points)"): "kept returns the wrong type",
            one_line(
                "kept(text, step)", "[json.loads(line) for line in text.splitlines()[:step]]"
            ): "kept returns the wrong points",
        },
    ),
    "your-turn-iou": Answers(
        iou(),
        {
            iou(across="min(ax + aw, bx + bw) - max(ax, bx)"): "only this input",
            iou(
                across="min(ax + aw, bx + bw) - max(ax, bx)", down="min(ay + ah, by + bh) - max(ay, by)"
            ): "the inputs whose right answer is 0",
            iou(
                across="min(ax + aw, bx + bw) - max(ax, bx)",
                down="min(ay + ah, by + bh) - max(ay, by)",
                result="max(0, both) / (aw * ah + bw * bh - both)",
            ): "only this input",
            iou(result="both / (aw * ah + bw * bh)"): "iou returns the wrong value",
            iou(result="both / min(aw * ah, bw * bh)"): "iou returns the wrong value",
            iou(across="max(0, min(aw, bw) - max(ax, bx))"): "iou returns the wrong value",
            iou(result="both"): "iou returns the wrong value",
        },
    ),
    "your-turn-nms": Answers(
        nms(),
        {
            nms(against="range(len(scores)) if j != i"): "nms keeps the wrong boxes",
            nms(order="range(len(scores))"): "nms keeps the wrong boxes",
            nms(order="np.argsort(scores)"): "nms keeps the wrong boxes",
            nms(test="overlap[i, j] > limit"): "nms keeps the wrong boxes",
            nms(test="overlap[i, j] < limit"): "nms keeps the wrong boxes",
            nms(against="np.argsort(-scores)[:i]"): "nms keeps the wrong boxes",
            nms().replace("return kept", "return len(kept)"): "nms returns the wrong type",
        },
    ),
    "your-turn-ap": Answers(
        average_precision(),
        {
            average_precision(envelope="precision"): "average_precision returns the wrong value",
            average_precision(
                result="envelope[right].sum() / max(1, right.sum())"
            ): "average_precision returns the wrong value",
            average_precision(result="precision[right].mean()"): "average_precision returns the wrong value",
            average_precision(result="envelope.mean()"): "average_precision returns the wrong value",
            average_precision(result="right.sum() / objects"): "average_precision returns the wrong value",
            average_precision(envelope="np.maximum.accumulate(precision)"): "average_precision returns the wrong value",
        },
    ),
    "your-turn-mask-iou": Answers(
        one_line(MASK, "((truth == label) & (guess == label)).sum() / ((truth == label) | (guess == label)).sum()"),
        {
            one_line(MASK, "(truth == guess).mean()"): "mask_iou returns the wrong value",
            one_line(
                MASK, "((truth == label) & (guess == label)).sum() / (truth == label).sum()"
            ): "mask_iou returns the wrong value",
            one_line(
                MASK, "((truth == label) & (guess == label)).sum() / ((truth == label).sum() + (guess == label).sum())"
            ): "mask_iou returns the wrong value",
            one_line(MASK, "((truth == label) == (guess == label)).mean()"): "mask_iou returns the wrong value",
        },
    ),
}
