"""Real cards and their published limits, each number with its source, read from cards.toml. `card("H100")` finds one.

Peaks are what the data sheet promises at boost clock; a card under load runs below them. The FP32 peak is
SMs x FP32 cores per SM x 2 (an FMA is two operations) x boost clock; the others likewise.
"""

import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("cards.toml")


@dataclass(frozen=True, kw_only=True)
class Card:
    """One GPU as sold. None is a number that nobody has published or measured, or of what the card lacks.

    `sms`: streaming multiprocessors. Those that the card shares with others of its compute capability are for one SM:
    `fp32_cores`, `fp64_cores`, `warp_schedulers`, `issue_rate` (warp instructions per clock), `tensor_fma` (of FP16 per
    clock), `shared_bytes` (most that blocks can use), `max_threads` and `max_blocks` (resident), `partitions` (each
    with its share of the registers), `block_shared_bytes` (most shared memory of one block), `shared_unit` (blocks get
    shared memory in multiples of it), `reserved_shared_bytes` (per block, for the system), `barriers` (of `bar.sync`),
    `per_clock` (results by pipe of `warplab.estimating.pipes`, in warps' instructions, that is lanes / 32; IMAD is an
    integer multiplication, which the FMA pipe does).
    `clock_mhz`: boost clock outside tensor cores; `tensor_clock_mhz`: in tensor cores.
    `fp16_tflops`: packed half precision outside tensor cores; `tensor_tflops`: FP16 in, FP32 sums, dense.
    `bandwidth_gbs`: peak of the memory, 1e9 bytes per second, from `memory_bits` of its bus and `memory_mhz` of its
    clock, with two transfers each. `launch_overhead_us`: time on the GPU of a launch that does next to nothing while
    the next one is queued already. `rates`: what estimates take of it besides (`warplab.estimating.rates`), empty where
    they cannot be made. `sources`: by field or rate.
    """

    name: str
    full_name: str
    year: int
    compute_capability: tuple[int, int]
    sms: int
    fp32_cores: int
    fp64_cores: int | None = None
    warp_schedulers: int
    issue_rate: int
    tensor_fma: int | None = None
    clock_mhz: int
    fp32_tflops: float
    fp64_tflops: float | None = None
    fp16_tflops: float | None = None
    tensor_tflops: float | None = None
    tensor_clock_mhz: int | None = None
    bandwidth_gbs: float
    memory_bits: int | None = None
    memory_mhz: float | None = None
    l2_bytes: int
    shared_bytes: int
    max_threads: int
    max_blocks: int
    partitions: int
    block_shared_bytes: int
    shared_unit: int
    reserved_shared_bytes: int
    barriers: int | None = None
    per_clock: dict[str, float] = field(repr=False)
    launch_overhead_us: float | None = None
    rates: dict[str, float] = field(default_factory=dict, repr=False)
    sources: dict[str, str] = field(repr=False)

    def source(self, name: str) -> str:
        """Return where the value of a field or rate was published."""
        return self.sources[name]

    @property
    def max_warps(self) -> int:
        """Return warps that the whole card can hold at once."""
        return self.sms * self.max_threads // 32


def read(file: Path = FILE) -> dict[str, Card]:
    """Return the cards of a file in the form of cards.toml, by name.

    Raises ValueError, which names the card and what is wrong: a number that it lacks or that is not above 0, a compute
    capability or a title that the file lacks.
    """
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    cards = {}
    for name, paragraph in data["card"].items():
        try:
            cards[name] = _card(name, paragraph, data)
        except KeyError as error:
            raise ValueError(f"{file.name}: the card {name} needs {error}, which is not there") from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file.name}: the card {name}: {error}") from None
    return cards


def _card(name: str, paragraph: dict[str, Any], data: dict[str, Any]) -> Card:
    capability = paragraph["compute_capability"]
    sources: dict[str, str] = {}

    def values(of: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for key, entry in of.items():
            if key not in ("source", "rates"):
                found[key], source = entry if isinstance(entry, list) else (entry, of["source"])
                sources[key] = source.format(**data["titles"])
        return found

    known = values(data["capability"][capability]) | values(paragraph)
    known["compute_capability"] = tuple(map(int, capability.split(".")))
    return _checked(Card(name=name, **known, rates=values(paragraph.get("rates", {})), sources=sources))


def _checked(found: Card) -> Card:
    for key, value in {**found.rates, **found.per_clock, **vars(found)}.items():
        may_be_zero = key in found.rates or key == "reserved_shared_bytes"
        if isinstance(value, int | float) and not (value > 0 or (value == 0 and may_be_zero)):
            raise ValueError(f"{key} is {value}; it must be above 0")
    return found


CARDS = read()
# Of a card of one's own: what grows with the clock, with this and the multiprocessors, and with the bandwidth.
_BY_CLOCK = ("clock_hz", "tensor_clock_mhz")
_BY_CLOCKS = (
    *("fp32_tflops", "fp64_tflops", "fp16_tflops", "tensor_tflops"),
    *("l2_bandwidth", "l2_stores", "partial_stores", "mma_flops", "wgmma_flops"),
)
_BY_BANDWIDTH = ("read_bandwidth", "copy_bandwidth", "scattered_bandwidth", "scattered_stores")


def _own(text: str) -> Card:
    name, first, *rest = [part.strip() for part in text.replace("=", ",", 1).split(",")]
    like = card(first)
    if not name or name in CARDS:
        raise ValueError(f"{text!r} needs a name that no other card has")
    numbers: dict[str, Any] = {
        **{k: v for k, v in vars(like).items() if isinstance(v, int | float | None)},
        **like.rates,
    }
    given: dict[str, Any] = {}
    for part in rest:
        key, _, value = (word.strip() for word in part.partition("="))
        if key not in numbers or not re.fullmatch(r"\d+(\.\d*)?(e[+-]?\d+)?", value):
            raise ValueError(f"{name}: {part!r} is not one of these with a number, as sms=46: {', '.join(numbers)}")
        given[key] = type(numbers[key] or 0.0)(float(value))
    of = {key: given.get(key, numbers[key]) / numbers[key] for key in ("clock_mhz", "sms", "bandwidth_gbs")}
    scaled = dict.fromkeys(_BY_CLOCK, of["clock_mhz"]) | dict.fromkeys(_BY_CLOCKS, of["clock_mhz"] * of["sms"])
    scaled |= dict.fromkeys(_BY_BANDWIDTH, of["bandwidth_gbs"])
    follows = {key: type(numbers[key])(numbers[key] * by) for key, by in scaled.items() if numbers.get(key)}
    follows |= {} if of["bandwidth_gbs"] == 1 else {"memory_bits": None, "memory_mhz": None}
    given = follows | given
    rates = {key: given.pop(key, value) for key, value in like.rates.items()}
    sources = {**like.sources, **dict.fromkeys((*given, *rates), f"given, or as of the {like.name}")}
    return _checked(replace(like, **given, name=name, full_name=name, rates=rates, sources=sources))


def card(name: str | Card) -> Card:
    """Return the card called `name` ("H100", "rtx4090", "A100-80GB"); a `Card` is returned as it is.

    "RTX 4070 = RTX 4090, sms=46, clock_mhz=2475, bandwidth_gbs=504, l2_bytes=36e6" is a card of your own: like one
    of its family but for these fields and rates. What follows from multiprocessors and clock, or bandwidth, is scaled.
    Raises ValueError for an unknown name, and for numbers that no card has.
    """
    if isinstance(name, Card):
        return name
    if "=" in name:
        return _own(name)
    known = {"".join(_words(known)): one for known, one in CARDS.items()}.get("".join(_words(str(name))))
    if known is None:
        raise ValueError(f"no card is named {name!r}; choose one of {', '.join(CARDS)}")
    return known


def card_of(device: str) -> Card | None:
    """Return the card that a GPU is, by the name that its driver gives it ("NVIDIA H100 80GB HBM3"); None if unknown.

    A card's other forms count, too: an H100 PCIe is taken for the H100 of the table, but no laptop's, D, Ti or SUPER
    for a card without that word.
    """
    words, others = set(_words(device)), {"LAPTOP", "D", "TI", "SUPER"}
    found = [name for name in CARDS if (own := set(_words(name))) <= words and not others & words - own]
    return CARDS[max(found, key=len)] if found else None


def _words(name: str) -> list[str]:
    return re.findall("[A-Z0-9]+", name.upper())
