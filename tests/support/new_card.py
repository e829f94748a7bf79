"""A card as somebody may add it, in a copy of cards.toml: much like a B200, under a name that no card has."""

from __future__ import annotations

from pathlib import Path

from warplab.hardware import cards

# Some numbers are left out, as nobody may know them; the others have no source.
PARAGRAPHS = """
[capability."10.9"]
source = "assumed, for a test"
fp32_cores = 128
warp_schedulers = 4
issue_rate = 4
shared_bytes = 233_472
max_threads = 2048
max_blocks = 32
partitions = 4
block_shared_bytes = 232_448
shared_unit = 128
reserved_shared_bytes = 1024
barriers = 64
per_clock = { FMA = 4.0, IMAD = 2.0, ALU = 2.0, FP64 = 2.0, XU = 0.5, LSU = 1.0 }

[card.X1]
full_name = "X1 SXM 180 GB"
year = 2024
compute_capability = "10.9"
source = "assumed, for a test"
sms = 148
clock_mhz = 1965
fp32_tflops = 74.5
tensor_tflops = 2250
bandwidth_gbs = 8000
l2_bytes = 132_644_864
"""


def cards_with_another(folder: Path) -> dict[str, cards.Card]:
    """Write cards.toml with the card X1 to a folder; return its cards."""
    file = folder / "cards.toml"
    file.write_text(cards.FILE.read_text(encoding="utf-8") + PARAGRAPHS)
    return cards.read(file)
