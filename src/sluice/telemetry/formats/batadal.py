"""BATADAL: C-Town, hourly, in its competition, full-label and test forms (Taormina et al. 2018)."""

import numpy as np

from sluice.telemetry.channel import Role
from sluice.telemetry.formats.format import Format
from sluice.telemetry.record import Label, Note
from sluice.telemetry.source import Source
from sluice.telemetry.table import Table, clock, delimited, labels_from

__all__ = ["BATADAL"]

TIME = "DATETIME"
FLAG = "ATT_FLAG"
UNLABELLED_FLAG = -999


def recognises(source: Source) -> bool:
    """Look for a DATETIME column and C-Town's first tank."""
    names = source.cells(0)
    return TIME in names and "L_T1" in names


def load(source: Source) -> Table:
    """Read any of the forms; -999 means that the hour is unlabelled, not that it is normal."""
    frame = delimited(source, header_line=0, text=[TIME])
    # Two-digit year, hour only, day first: 06/01/14 00 is 6 January 2014.
    hours = frame[TIME].str.strip_chars() + ":00"
    times = clock(hours, ["%d/%m/%y %H:%M"], name=source.path.name)
    notes: list[Note] = []
    if source.head[1].split(source.delimiter)[1].startswith(" "):
        notes.append(Note(what="blanks before values (competition form)", rows=len(frame)))
    if FLAG in frame.columns:
        labels = labels_from(frame[FLAG], _label, name=source.path.name)
        unlabelled = labels == Label.UNLABELLED
        if unlabelled.any():
            what = f"{FLAG} {UNLABELLED_FLAG} read as unlabelled"
            first = int(unlabelled.argmax())
            notes.append(Note(what=what, rows=int(unlabelled.sum()), first_row=first))
    else:
        labels = np.full(len(frame), Label.UNLABELLED, np.int8)
        notes.append(Note(what=f"no {FLAG} column (test form): every row is unlabelled"))
    return Table(
        format=BATADAL.name,
        frame=frame.drop(TIME, FLAG, strict=False),
        times=times,
        labels=labels,
        notes=tuple(notes),
    )


def _label(value: object) -> Label | None:
    known = {0.0: Label.NORMAL, 1.0: Label.ATTACK, float(UNLABELLED_FLAG): Label.UNLABELLED}
    return known.get(float(value)) if isinstance(value, float | int) else None


BATADAL = Format(
    name="batadal",
    title="BATADAL (C-Town)",
    version="1",
    recognises=recognises,
    load=load,
    units=((Role.LEVEL, "m"), (Role.FLOW, "L/s"), (Role.PRESSURE, "m")),
)
