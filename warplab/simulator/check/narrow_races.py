"""Where the records of race detection lie, for code that compares and updates them itself (`translate.narrow_access`).

It does what `race_words` does, for accesses that race with none; all others come to `Races` as usual.
"""

from collections.abc import Sequence
from typing import Any

from warplab.simulator.check.race_records import Record
from warplab.simulator.check.races import Races


def followed(races: Races, site, space: str) -> bool | None:
    """Tell whether the accesses of a site are recorded; None if they have to be examined one by one."""
    if space not in races.word:
        return False
    if races.clocks is not None or races.fences is not None or site.strong or site.flag or ".volatile" in site.text:
        return None
    return site.op != "load" or bool(races.written & {space, "generic"})


def settled(races: Races) -> bool:
    """Examine the loads that are recorded. Returns False, and leaves them, where some race with stores before them."""
    records = [(races.shared, "shared"), *((record, "global") for record in races.allocations.values())]
    good = True
    for record, space in records:
        if not record.pending:
            continue
        if any(
            races._behind_writer(record, access, access.word + k).any()
            for access in record.pending
            for k in range(races._words(access.site, space))
        ):
            good = False
            continue
        stored, record.stored = record.stored, True
        races._flush(record, space)
        record.stored = stored
    return good


def record_of(races: Races, space: str, allocation) -> Record | None:
    """Return the record that accesses concern."""
    return races.shared if space == "shared" else races.allocations.get(allocation.address)


def to_write(races: Races, space: str, allocation) -> Record | None:
    """Return the record of the words that a store of all lanes is about to write, with the loads before it examined;
    None if `Races` itself has to look at the store."""
    if races.clocks is not None or races.fences is not None or races.any_volatile:
        return None
    record = races.record(space, allocation)
    record.stored = True
    races._flush(record, space)
    races.epoch_stored |= space == "shared"
    return record


def fields_of(races: Races, record: Record, site, space: str) -> dict[str, Any]:
    """Return what `narrow_access.PLACE` holds of a record whose words are about to be read or written."""
    record.was_read = True
    return races.words_of(record, site, space)


def told(races: Races, sites: Sequence[tuple[Any, str]]) -> None:
    """Note that sites have been used, each in a space."""
    if any(site.op == "store" and space == "shared" for site, space in sites):
        races.epoch_stored = True
