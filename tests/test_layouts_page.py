"""The drills of docs/layouts.md: their checks fail blank and wrong answers and pass right ones; the facts hold."""

import re

import numpy as np
import pytest

from warpcourse.paths import COURSE
from warplab.checks.errors import CheckFailed
from warplab.draw.swizzle import swizzled
from warplab.simulator.ptx.fragments import mma_fragment

BLOCKS = re.findall(r"```python\n(.*?)```", (COURSE / "docs" / "layouts.md").read_text(), re.S)
DRILLS = {
    re.match(r"def (\w+)", blank)[1]: (blank, check) for blank, check in zip(BLOCKS[::2], BLOCKS[1::2], strict=True)
}

INDEX, PLACE = "def index(coordinate, stride):\n    ", "def place(number, shape, stride):\n    "
OF_B, SWIZZLE = "def of_b(lane, value):\n    ", "def swizzle(i, b, m, s):\n    "
LOOP = """total = 0
    for extent, step in zip(shape, stride):
        total += number % extent * step
        number //= extent
    return total"""
SLOWEST_FIRST = LOOP.replace("zip(shape, stride)", "zip(shape[::-1], stride[::-1])")

RIGHT = {
    "index": [
        INDEX + "return sum(c * d for c, d in zip(coordinate, stride))",
        "import numpy as np\n" + INDEX + "return int(np.dot(coordinate, stride))",
        INDEX + "return coordinate[0] * stride[0] + index(coordinate[1:], stride[1:]) if stride else 0",
        "import math\n" + INDEX + "return math.sumprod(coordinate, stride) if hasattr(math, 'sumprod') else "
        "sum(map(int.__mul__, coordinate, stride))",
    ],
    "place": [
        PLACE + LOOP,
        "import numpy as np\n" + PLACE + "return int(np.dot(np.unravel_index(number, shape, order='F'), stride))",
        PLACE + "if not shape:\n        return 0\n    return number % shape[0] * stride[0] + "
        "place(number // shape[0], shape[1:], stride[1:])",
        "import math\n"
        + PLACE
        + "return sum(number // math.prod(shape[:i]) % shape[i] * stride[i] for i in range(len(shape)))",
    ],
    "of_b": [
        OF_B + "return lane // 4 + 8 * (2 * (lane % 4) + value % 2 + 8 * (value // 2))",
        OF_B + "return 16 * (lane & 3) + (lane >> 2) + 8 * (value & 1) + 32 * (value & 2)",
        PLACE + LOOP + "\n\n\n" + OF_B + "return place(lane + 32 * value, (4, 8, 2, 2), (16, 1, 8, 64))",
        OF_B + "depth = [0, 1, 8, 9][value] + 2 * (lane % 4)\n    return lane // 4 + 8 * depth",
    ],
    "swizzle": [
        SWIZZLE + "return i ^ (i & (1 << b) - 1 << m + s) >> s",
        SWIZZLE + "return i ^ (i >> m + s) % 2**b * 2**m",
        SWIZZLE + "mask = ((1 << b) - 1) << m\n    return i & ~mask | (i ^ i >> s) & mask",
        SWIZZLE
        + "high = i >> m + s & 2**b - 1\n    chunk, rest = divmod(i, 2**m)\n    return (chunk ^ high) * 2**m + rest",
    ],
}
WRONG = {
    "index": [
        (INDEX + "return sum(coordinate)", r"expected +29\s+got +8\b"),
        (INDEX + "return coordinate[0] * stride[0] + coordinate[1] * stride[1]", "raises IndexError"),
        (INDEX + "return sum(c * d for c, d in zip(coordinate, stride[::-1]))", r"expected +29\s+got +43\b"),
        (INDEX + "print(sum(c * d for c, d in zip(coordinate, stride)))", "print shows a value, return hands it back"),
    ],
    "place": [
        (PLACE + SLOWEST_FIRST, r"expected +9\s+got +5\b"),
        (PLACE + LOOP.replace("number //= extent", "number //= step"), r"expected +9\s+got +8\b"),
        (PLACE + LOOP.replace("number % extent * step", "number % extent"), r"expected +9\s+got +2\b"),
        (PLACE + "return number % shape[0] * stride[0] + number // shape[0] * stride[1]", "IndexError|wrong value"),
        (PLACE + "return number", r"expected +9\s+got +5\b"),
    ],
    "of_b": [
        (OF_B + "return lane // 4 * 16 + 2 * (lane % 4) + value % 2 + 8 * (value // 2)", r"expected +8\s+got +1\b"),
        (OF_B + "return 32 * (lane % 4) + lane // 4 + 16 * (value % 2) + 8 * (value // 2)", r"expected +8\s+got +16\b"),
        (OF_B + "return lane // 4 + 8 * (2 * (lane % 4) + value)", r"expected +64\s+got +16\b"),
        (OF_B + "return lane % 4 + 8 * (2 * (lane // 4) + value % 2 + 8 * (value // 2))", r"expected +16\s+got +1\b"),
        (OF_B + "return lane // 4 + 8 * (lane % 4 + 4 * value)", r"expected +8\s+got +32\b"),
    ],
    "swizzle": [
        (SWIZZLE + "return i ^ i >> s", r"expected +16\s+got +18\b"),
        (SWIZZLE + "return i ^ (i & (1 << b) - 1 << m) << s", r"expected +16\s+got +144\b"),
        (SWIZZLE + "return i + ((i & (1 << b) - 1 << m + s) >> s)", r"expected +128\s+got +160\b"),
        (SWIZZLE + "return i ^ (i >> 7 & 7) << 4", r"wrong value[^~]*seed"),
        (SWIZZLE + "return i ^ (i >> m + b & (1 << b) - 1) << m", r"wrong value[^~]*seed"),
    ],
}


def check(drill: str, answer: str) -> dict[str, object]:
    """Run a drill's check on an answer; return the names. Raises what the learner would see."""
    names: dict[str, object] = {}
    for source in ("from warplab import checks", answer, DRILLS[drill][1]):
        exec(source, names)
    return names


def test_every_drill_has_answers():
    assert DRILLS.keys() == RIGHT.keys() == WRONG.keys() == {"index", "place", "of_b", "swizzle"}


@pytest.mark.parametrize(("drill", "answer"), [(drill, one) for drill, all_ in RIGHT.items() for one in all_])
def test_right_answer_passes(drill, answer, capsys):
    check(drill, answer)
    assert "missing" not in capsys.readouterr().out


@pytest.mark.parametrize("drill", DRILLS)
def test_blank_fails(drill):
    with pytest.raises(CheckFailed, match="not written yet"):
        check(drill, DRILLS[drill][0])


@pytest.mark.parametrize(
    ("drill", "answer", "reason"), [(drill, *one) for drill, all_ in WRONG.items() for one in all_]
)
def test_wrong_answer_fails_for_its_reason(drill, answer, reason):
    with pytest.raises(CheckFailed) as failure:
        check(drill, answer)
    assert re.search(reason, str(failure.value)), failure.value


def test_layouts_of_fragments_are_the_simulators():
    place, of_b = check("place", RIGHT["place"][0])["place"], check("of_b", RIGHT["of_b"][0])["of_b"]
    d, b = mma_fragment("m16n8k16", "d", "f32"), mma_fragment("m16n8k16", "b", "f16")
    for lane, value in np.ndindex(32, 4):
        assert place(lane + 32 * value, (4, 8, 2, 2), (32, 1, 16, 8)) == d.row[lane, value] + 16 * d.column[lane, value]
        assert of_b(lane, value) == b.column[lane, value] + 8 * b.row[lane, value]


def test_the_swizzle_of_128_bytes_is_tmas():
    swizzle = check("swizzle", RIGHT["swizzle"][0])["swizzle"]
    assert [swizzle(i, 3, 4, 3) for i in range(4096)] == [swizzled(i, 128) for i in range(4096)]
