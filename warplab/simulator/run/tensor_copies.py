"""cp.async.bulk.tensor: boxes of a tensor to shared memory and back, as a tensor map says (`memory.tensor_maps`).

All 16-byte pieces of the boxes that the lanes of a group ask for are gathered or scattered at once. When they arrive,
and who is told, is the business of `async_copies`, as for any bulk copy. Pieces outside the tensor arrive as zeros, or
NaN, and are not stored; they count among the bytes that an mbarrier waits for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from warplab.simulator.errors import IllegalAddress, MisalignedAddress, SimulatorError, UnsupportedInstruction
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.recurring import fixed, recurring, repeated
from warplab.simulator.memory.tensor_maps import (
    MAP_ALIGNMENT,
    MAP_BYTES,
    PIECE,
    Box,
    TensorMap,
    decode,
    rounded_to_tf32,
    swizzled,
)
from warplab.simulator.run.async_copies import OutCopy
from warplab.simulator.translate.block_writer import Site

SHARED_ALIGNMENT = 128  # of a box in shared memory
_ENCODE = (
    "The host encodes it (cuTensorMapEncodeTiled; cuda.bindings.driver has it), and the kernel takes it by value: "
    "`const __grid_constant__ CUtensorMap map`."
)


@dataclass(eq=False)
class TensorStore(OutCopy):
    """Boxes on their way to a tensor: of each piece the addresses of its units, and which lie in the tensor."""

    box: Box = None  # type: ignore[assignment]

    def select(self, chosen: np.ndarray) -> "TensorStore":
        part = super().select(chosen)
        part.box = self.box._replace(address=self.box.address[chosen], inside=self.box.inside[chosen])
        return part

    def written(self) -> tuple[Site, np.ndarray, np.ndarray, list[np.ndarray]]:
        site, (unit, count) = unit_site(self.site, self.box.unit), _items(self.box.unit)
        inside, per_piece = self.box.inside, self.box.inside.shape[1]
        data = np.stack(self.values, axis=1).view(f"u{unit}").reshape(-1, per_piece, count)[inside]
        lanes = np.repeat(self.lanes, per_piece)[inside.reshape(-1)]
        return site, self.box.address[inside], lanes, list(data.T)


class TensorCopies:
    """Called by translated blocks of one chunk. `lanes` are the group's, None for all lanes of the chunk.

    `maps`: addresses of tensor maps, generic. `at`: coordinates, one array per axis, the innermost first.
    """

    def __init__(self, chunk) -> None:
        self.chunk = chunk

    def load(
        self,
        reader: Site,
        writer: Site,
        maps: np.ndarray,
        at: Sequence[np.ndarray],
        offsets: Sequence[np.ndarray],
        target: Addresses,
        mbarrier: tuple[Site, Addresses],
        mask: np.ndarray | None,
        im2col: bool,
        pairs: bool,
        lanes,
    ) -> None:
        """Copy a box to shared memory, for the blocks of the cluster in `mask` or, if None, the one at `target`.

        `pairs`: of .cta_group::2, where the mbarrier may be of either block of a pair. Of several pairs that receive
        the box, each hears of it in the same of its blocks."""
        chunk = self.chunk
        every = chunk.all_lanes if lanes is None else lanes
        start = np.broadcast_to(target.at(writer.offset), every.shape)
        barrier, word = mbarrier
        self._aligned(writer, start, every)
        for notify in chunk.observers.bulk_copy:
            notify(reader, every.shape[0])
        site = replace(writer, offset=0)
        for tensor, chosen in self._maps(reader, maps, len(at), im2col, every):
            copiers, corner = every[chosen], _chosen(at, chosen, every)
            self._aligned_corner(reader, tensor, corner, copiers)
            box = tensor.places(corner, _chosen(offsets, chosen, every) if offsets else None)
            values = self._gather(reader, tensor, box, copiers)
            self._fits(writer, tensor, start[chosen], copiers)
            words = Addresses(np.broadcast_to(word.base, every.shape)[chosen])
            wanted = None if mask is None else np.broadcast_to(mask, every.shape)[chosen]
            for receiving, shift in chunk.copies.receivers(writer, start[chosen], wanted, copiers):
                by = repeated(copiers[receiving], box.offset.shape[1])
                to, apart = self._pieces(tensor, start[chosen][receiving] + shift, box.offset, copiers[receiving])
                for notify in chunk.observers.tensor_copy:
                    notify(site, to, by, tensor.span)
                told = words.base[receiving] + shift
                if pairs and mask is not None:
                    told = self._of_the_pair(words.base[receiving], start[chosen][receiving] + shift)
                part = values
                if receiving.shape[0] < len(chosen):
                    part = [v.reshape(len(chosen), -1)[receiving].reshape(-1) for v in values]
                chunk.copies.send(
                    site,
                    by,
                    to.base,
                    part,
                    (barrier, Addresses(told)),
                    np.full(receiving.shape, tensor.box_bytes),
                    copiers[receiving],
                    to=to if apart else None,
                )

    def _pieces(
        self, tensor: TensorMap, start: np.ndarray, offset: np.ndarray, copiers: np.ndarray
    ) -> tuple[Addresses, bool]:
        """Return where the pieces of boxes go that begin at `start`, and whether the boxes lie apart."""

        def make() -> tuple[Addresses, bool]:
            place = swizzled(start[:, None] + offset, tensor.span).reshape(-1)
            return Addresses(fixed(place)), bool((np.diff(np.sort(start)) >= np.uint64(tensor.room)).all())

        form = tensor.span, tensor.lines, tensor.pitch, tensor.line_bytes
        key = "box", *form, self.chunk.threads, self.chunk.shared_stride, start.tobytes(), copiers.tobytes()
        return recurring(key, start.shape[0] * offset.shape[1], make)

    def store(
        self,
        reader: Site,
        writer: Site,
        maps: np.ndarray,
        at: Sequence[np.ndarray],
        source: Addresses,
        operation: tuple[str, str] | None,
        im2col: bool,
        lanes,
    ) -> None:
        """Copy a box from shared memory; `operation`: that of cp.reduce, whose elements have the map's type."""
        chunk = self.chunk
        every = chunk.all_lanes if lanes is None else lanes
        start = np.broadcast_to(source.at(reader.offset), every.shape)
        self._aligned(reader, start, every)
        for notify in chunk.observers.bulk_copy:
            notify(reader, every.shape[0])
        site, to = replace(reader, offset=0), replace(writer, offset=0)
        for tensor, chosen in self._maps(reader, maps, len(at), im2col, every):
            copiers = every[chosen]
            if tensor.flushed and operation is not None:
                raise UnsupportedInstruction(
                    "a reduction with a tensor map of an FTZ type",
                    reason="The simulator does not know what a GPU makes of subnormal numbers there; take FLOAT32.",
                    **chunk.where(reader, int(copiers[0])),
                )
            self._fits(reader, tensor, start[chosen], copiers)
            corner = _chosen(at, chosen, every)
            self._aligned_corner(reader, tensor, corner, copiers)
            self._not_before(reader, tensor, corner, copiers)
            box = tensor.places(corner)
            by = np.repeat(copiers, box.offset.shape[1])
            origin = swizzled(start[chosen][:, None] + box.offset, tensor.span).reshape(-1)
            units = box.address.reshape(-1, box.address.shape[2]), box.inside.reshape(-1, box.inside.shape[2])
            stored = units[1].any(axis=1)  # what lies outside the tensor is not read
            by, origin, units = by[stored], origin[stored], (units[0][stored], units[1][stored])
            if not by.size:
                continue
            box = box._replace(address=units[0], inside=units[1])
            group = chunk.copies.committed_bulk[by]
            values = chunk.copies.fetch(site, Addresses(origin), by)
            arguments = to, by, group, units[0][:, 0], values, chunk.copies.issued, site, origin
            given = None if operation is None else (operation[0], tensor.dtype)
            chunk.copies.outgoing.append(TensorStore(*arguments, operation=given, box=box))

    def _gather(self, reader: Site, tensor: TensorMap, box: Box, copiers: np.ndarray) -> list[np.ndarray]:
        """Return what the boxes hold: the first and second 8 bytes of each piece."""
        site, (unit, count) = unit_site(reader, box.unit), _items(box.unit)
        if box.unit == PIECE and box.inside.all() and not tensor.rounded:
            by = repeated(copiers, box.inside[0].size)
            return self.chunk.copies.fetch(site, Addresses(box.address.reshape(-1)), by)
        data = np.empty((*box.inside.shape, count), f"u{unit}")
        if not box.inside.all():
            fill = np.full(MAP_BYTES // tensor.item, tensor.fill, f"u{tensor.item}")
            data[:] = fill.view(f"u{unit}")[:count]
        if box.inside.any():
            by = np.repeat(copiers, box.inside[0].size)[box.inside.reshape(-1)]
            found = self.chunk.copies.fetch(site, Addresses(box.address[box.inside]), by)
            together = np.stack(found, axis=1)
            if tensor.rounded:
                together = rounded_to_tf32(together.view(np.uint32)).view(together.dtype)
            data[box.inside] = together
        pieces = data.reshape(-1, PIECE // unit).view(np.uint64)
        return [pieces[:, 0], pieces[:, 1]]

    def _of_the_pair(self, mbarrier: np.ndarray, box: np.ndarray) -> np.ndarray:
        """Return where the mbarrier lies in the pair of blocks that a box goes to, in the block of its own parity."""
        stride = self.chunk.shared_stride
        own, to = (address.astype(np.int64) // stride for address in (mbarrier, box))
        return mbarrier + (((to & ~1 | own & 1) - own) * stride).view(np.uint64)

    # -- what must hold --------------------------------------------------------------------------------------------

    def _maps(
        self, site: Site, maps: np.ndarray, axes: int, im2col: bool, every: np.ndarray
    ) -> Iterator[tuple[TensorMap, np.ndarray]]:
        """Yield each distinct map, and which of the lanes use it."""
        maps = np.broadcast_to(maps, every.shape)
        for address in np.unique(maps):
            chosen = np.flatnonzero(maps == address)
            yield self._map(site, int(address), axes, im2col, int(every[chosen[0]])), chosen

    def _map(self, site: Site, address: int, axes: int, im2col: bool, lane: int) -> TensorMap:
        memory, where = self.chunk.device.memory, self.chunk.where(site, lane)
        if address % MAP_ALIGNMENT:
            raise MisalignedAddress(
                f"misaligned address: a tensor map at {address:#x}",
                reason=f"A tensor map must start at a multiple of {MAP_ALIGNMENT} bytes: declare it alignas(64).",
                address=address,
                **where,
            )
        allocation = memory.find(address)
        room = allocation is not None and address + MAP_BYTES <= allocation.end
        tensor = decode(memory.view(address, MAP_BYTES).tobytes()) if room else None
        if tensor is None:
            raise SimulatorError(f"there is no tensor map at {address:#x}", reason=_ENCODE, address=address, **where)
        if tensor.rank != axes:
            raise SimulatorError(
                f"a copy with {axes} coordinates from a tensor of {tensor.rank} axes",
                reason="The instruction's .1d to .5d and the map's tensorRank must agree.",
                **where,
            )
        if tensor.im2col != im2col:
            given, wanted = ("im2col", "tiled") if tensor.im2col else ("tiled", "im2col")
            raise SimulatorError(
                f"a copy in {wanted} mode with a tensor map in {given} mode",
                reason="cuTensorMapEncodeTiled makes maps for .tile, cuTensorMapEncodeIm2col those for .im2col.",
                **where,
            )
        return tensor

    def _aligned(self, site: Site, start: np.ndarray, every: np.ndarray) -> None:
        bad = start % np.uint64(SHARED_ALIGNMENT) != 0
        if bad.any():
            place = int(np.argmax(bad))
            offset = int(start[place]) % max(1, self.chunk.shared_stride)
            raise MisalignedAddress(
                f"misaligned address: a box at byte {offset} of shared memory",
                reason=f"TMA wants boxes at multiples of {SHARED_ALIGNMENT} bytes, with a swizzle better of 1024: "
                "declare the array alignas(1024), or round its address up.",
                address=int(start[place]),
                **self.chunk.where(site, int(every[place])),
            )

    def _aligned_corner(self, site: Site, tensor: TensorMap, corner: np.ndarray, copiers: np.ndarray) -> None:
        bad = corner[:, 0] * tensor.item % PIECE != 0
        if self.chunk.checked and bad.any():
            place = int(np.argmax(bad))
            raise MisalignedAddress(
                f"misaligned box: it begins at coordinate {corner[place, 0]} along the innermost axis, "
                f"{corner[place, 0] * tensor.item} bytes",
                reason=f"TMA takes multiples of {PIECE} bytes; an H100 stops there with an illegal instruction.",
                **self.chunk.where(site, int(copiers[place])),
            )

    def _not_before(self, site: Site, tensor: TensorMap, corner: np.ndarray, copiers: np.ndarray) -> None:
        bad = (corner < 0).any(axis=1)
        if self.chunk.checked and bad.any() and not tensor.im2col:
            place = int(np.argmax(bad))
            raise IllegalAddress(
                f"illegal address: a box is stored at the coordinates {tuple(corner[place].tolist())}",
                reason="TMA stores no box that begins before its tensor; an H100 stops there with an illegal "
                "instruction. It may reach beyond the tensor's end.",
                **self.chunk.where(site, int(copiers[place])),
            )

    def _fits(self, site: Site, tensor: TensorMap, start: np.ndarray, copiers: np.ndarray) -> None:
        """Refuse a box that reaches beyond the shared memory of its block, even into that of the next."""
        self.chunk.copies.check_room(site, start, np.full(start.shape, tensor.room), copiers)


def unit_site(site: Site, unit: int) -> Site:
    """Return the site of accesses to `unit` bytes each, by an instruction that moves pieces."""
    nbytes, count = _items(unit)
    return replace(site, dtype=f"u{nbytes}", count=count, offset=0)


def _items(unit: int) -> tuple[int, int]:
    """Return a unit as elements of up to 8 bytes: their size and number."""
    return min(unit, 8), max(1, unit // 8)


def _chosen(columns: Sequence[np.ndarray], chosen: np.ndarray, every: np.ndarray) -> np.ndarray:
    """Return rows of coordinates, int64, one for each of the chosen lanes."""
    rows = [np.broadcast_to(column, every.shape)[chosen].astype(np.int64) for column in columns]
    return np.stack(rows, axis=1)
