"""The circuit of a statement: its columns, its constraints in their order, and its identity."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from sluice.attestation.systems.full.reference.columns import Column, ColumnPlan
from sluice.attestation.systems.full.reference.field import DEGREE, Ext
from sluice.attestation.systems.full.reference.gadgets import (
    CHAIN,
    Channels,
    CountColumns,
    Counted,
    Couplings,
    Digest,
    FormWeights,
    Levels,
    MomentColumns,
    Relations,
    Spectra,
    SwitchBands,
    WindowChecks,
    draw_form,
)
from sluice.attestation.systems.full.reference.hashes import blake3, blake3_stream
from sluice.attestation.systems.full.reference.parameters import NAMED
from sluice.attestation.systems.full.reference.rows import Frame, RowPair
from sluice.attestation.systems.full.reference.seams import (
    SEAM_REPETITIONS,
    CellsRead,
    Seam,
    draw_weights,
    state_seam,
)
from sluice.attestation.systems.full.reference.soundness import demand_sound
from sluice.attestation.systems.full.reference.statement import read_statement

__all__ = ["ReferenceCircuit"]


class ReferenceCircuit:
    """A statement laid out. The order of columns and constraints is part of the identity."""

    def __init__(self, content: bytes) -> None:
        self.content, self.statement = content, read_statement(content)
        demand_sound(self.statement)
        self.columns = columns = ColumnPlan()
        self.channels = Channels(self.statement, columns)
        self._couplings = Couplings(self.statement, columns)
        self._relations = Relations(self.statement, columns)
        self._windows = WindowChecks(self.statement, columns)
        self._switches = SwitchBands(self.statement, columns)
        self._spectra = Spectra(self.statement, columns)
        self._levels = Levels(self.statement, columns)
        self.counts = CountColumns(self.statement, columns)
        self._digest = Digest(self.statement, columns)
        statistic = self.statement.statistic
        self._moments = MomentColumns(statistic, columns) if statistic else None

    def state(
        self,
        frame: Frame,
        totals: Sequence[int],
        digest: Sequence[int],
        form: Sequence[FormWeights] = (),
        seam: Seam | None = None,
    ) -> None:
        """State every constraint about two rows.

        After the digest come the form's totals, then the values of the seams at both ends.
        """
        for digit in self.columns.digits:
            frame.member(digit)

        begins = seam is None or seam.enters is None
        if begins:
            self._state_first(frame.first_row())

        rows = frame.every_row()
        self._couplings.shared(self.channels, rows)
        self.channels.every(rows)
        self._couplings.every(self.channels, rows)
        self._relations.every(self.channels, rows)
        self._windows.every(rows)
        self._spectra.every(rows)
        self._levels.every(rows)
        self.counts.every(self._flags(rows), rows, totals)
        masks = self._digest.every(self.channels, rows, digest[:CHAIN])
        if self._moments:
            self._moments.every(self.channels, rows, form, digest[CHAIN : CHAIN + len(form)])
            if begins:
                self._moments.mask(frame.first_row(), masks)

        rows = frame.following_row()
        self._couplings.following(self.channels, rows)
        self._windows.following(self.channels, rows)
        self._spectra.following(self.channels, rows)
        self._levels.following(self.channels, rows)
        self._relations.following(self.channels, rows)
        self._windows.in_turn(rows)
        self._switches.following(self.channels, rows)
        if self._moments:
            self._moments.following(self.channels, rows)

        if seam is not None:
            state_seam(seam, frame, digest[CHAIN + len(form) :], masks=self.columns.width)

    def _state_first(self, rows: RowPair) -> None:
        """State what holds on the first row of a batch."""
        self._couplings.first(rows)
        self._windows.first(rows)
        self._spectra.first(rows)
        self._levels.first(self.channels, rows)
        self.counts.first(rows)
        self.channels.first(rows)
        if self._moments:
            self._moments.first(rows)

    @cached_property
    def carried(self) -> tuple[Column, ...]:
        """The columns that pass a seam: those that a constraint about the next row reads."""
        width = self.columns.width
        cells = [CellsRead(1 << at) for at in range(2 * width)]
        some = CellsRead(0)
        frame = Frame(
            here=cells[:width],
            next=cells[width:],
            public=[some] * len(self.columns.schedules),
            first=some,
            transition=some,
            last=some,
            violating=self.channels.violating,
        )
        statistic = self.statement.statistic
        form = (
            draw_form(statistic, b"", context="sluice full moments identity 1") if statistic else []
        )
        totals = [0] * len(self.counts.shared)
        self.state(frame, totals, [0] * (CHAIN + len(form)), form)
        carried = 0
        for constraint in frame.stated:
            if isinstance(constraint, CellsRead) and constraint.cells >> width:
                carried |= constraint.cells
        return tuple(at for at in range(width) if carried >> at & 1)

    @cached_property
    def chain_identity(self) -> bytes:
        """Hash the constraints of a segment with seams at both ends, in the same way."""
        cells = len(self.carried)
        enters, leaves = (
            draw_weights(cells, self.identity + bytes(at), context="sluice full seam identity 1")
            for at in (1, 2)
        )
        context = "sluice full chain circuit 2"
        stream = blake3_stream(self.identity, context=context)
        points = _points(byte for block in stream for byte in block)
        width = self.columns.width + SEAM_REPETITIONS
        here, following, public = (
            [next(points) for _ in range(count)]
            for count in (width, width, len(self.columns.schedules))
        )
        first, last, transition, challenge = (next(points) for _ in range(4))
        frame = Frame(
            here=here,
            next=following,
            public=public,
            first=first,
            transition=transition,
            last=last,
            violating=self.channels.violating,
        )
        statistic, form = self.statement.statistic, list[FormWeights]()
        if statistic:
            form = draw_form(statistic, self.identity, context="sluice full moments identity 1")
        publics = [0] * CHAIN
        publics += [next(points).coordinates[0] for _ in range(len(form) + 2 * SEAM_REPETITIONS)]
        seam = Seam(carried=self.carried, enters=enters, leaves=leaves)
        self.state(frame, [0] * len(self.counts.shared), publics, form, seam)
        value = frame.folded(challenge)
        hashed = self.identity + b"".join(_word(part) for part in value.coordinates)
        return blake3(hashed, context=context)

    def _flags(self, rows: RowPair) -> Callable[[Counted], Ext]:
        """Return what a row adds to each count."""
        flags: dict[str, Sequence[Column | None]] = {
            "violating": [self.channels.violating],
            "severe": [self.channels.severe],
            "segments": [self.channels.start],
            "window": self._windows.violating,
            "switch": self._switches.violating,
        }
        unsteady = self._couplings.unsteady(self.channels, rows)
        products = {"unsteady": unsteady, "block": self._spectra.violating(rows)}

        def flag(counted: Counted) -> Ext:
            if counted.kind in products:
                return products[counted.kind][counted.rule]
            column = flags[counted.kind][counted.rule]
            assert column is not None
            return rows.here[column]

        return flag

    @cached_property
    def identity(self) -> bytes:
        """Hash the parameters, the statement, and the constraints at one point.

        The point follows from parameters and statement. Other constraints have another value
        there.
        """
        hashed = b"".join(name.encode() + b"\0" + _word(value) for name, value in NAMED)
        hashed += _word(len(self.content)) + self.content
        stream = blake3_stream(hashed, context="sluice full circuit 1")
        points = _points(byte for block in stream for byte in block)
        here, following, public = (
            [next(points) for _ in range(count)]
            for count in (self.columns.width, self.columns.width, len(self.columns.schedules))
        )
        first, last, transition, challenge = (next(points) for _ in range(4))
        frame = Frame(
            here=here,
            next=following,
            public=public,
            first=first,
            transition=transition,
            last=last,
            violating=self.channels.violating,
        )
        publics, form = [0] * CHAIN, list[FormWeights]()
        if self.statement.statistic:
            seed = blake3(hashed, context="sluice full circuit 1")
            form = draw_form(
                self.statement.statistic, seed, context="sluice full moments identity 1"
            )
            publics += [next(points).coordinates[0] for _ in form]
        self.state(frame, [0] * len(self.counts.shared), publics, form)
        value = frame.folded(challenge)
        hashed += b"".join(_word(part) for part in value.coordinates)
        return blake3(hashed, context="sluice full circuit 1")


def _points(stream: Iterator[int]) -> Iterator[Ext]:
    while True:
        words = [bytes(next(stream) for _ in range(8)) for _ in range(DEGREE)]
        yield Ext(*(int.from_bytes(word, "little") for word in words))


def _word(value: int) -> bytes:
    return value.to_bytes(8, "little")
