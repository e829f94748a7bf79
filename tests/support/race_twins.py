"""Race detection by machine code beside NumPy's: what they record must be equal."""

import functools

import numpy as np

from warplab.simulator.check import race_words
from warplab.simulator.check.race_records import Record
from warplab.simulator.errors import DataRace


def compare_races(monkeypatch) -> list[bool]:
    """Let machine code examine accesses from the first one on, and NumPy those that it has. Returns which it has."""
    by_code: list[bool] = []
    for name in ("_LINKING", "_COMPILING"):
        monkeypatch.setattr(race_words, name, 0)
    examined = functools.partialmethod(_both, by_code, race_words.WordRaces._examined)
    monkeypatch.setattr(race_words.WordRaces, "_examined", examined)
    return by_code


def _both(self, by_code, examined, record, space, access, word, reads):
    """Examine an access by machine code and, on a copy of the record, by NumPy, which must come to the same."""
    twin = Record(record.words, self.sites, record.allocation, record.timed)
    for name in vars(record).keys() & record._dtypes.keys():
        setattr(twin, name, getattr(record, name).copy())
    twin.was_read = record.was_read
    operands = None if reads or space == "global" else self.operands
    before = None if operands is None else operands.latest.copy()
    by_code.append(examined(self, record, space, access, word, reads))
    if not by_code[-1]:
        return False
    try:
        for k in range(max(1, access.site.width // self.word[space])):
            if reads:
                self._read(twin, space, access, word + k)
            else:
                self._write(twin, space, access, word + k, None, None)
        if operands is not None:
            after, operands.latest[:] = operands.latest.copy(), before
            self._after_operands(operands, access, word, None, None)
            np.testing.assert_array_equal(after, operands.latest)
    except DataRace as race:
        raise AssertionError("machine code has missed it") from race
    for name in {*vars(record), *vars(twin)} & record._dtypes.keys():
        np.testing.assert_array_equal(getattr(record, name), getattr(twin, name), name)
    assert record.was_read == twin.was_read
    return True
