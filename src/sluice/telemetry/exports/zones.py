"""Time zones: offsets, letters such as CET, and local time over daylight saving time."""

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from sluice.arrays import Bools, Ints, Times
from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.plantfile import Fold, PlantFile

__all__ = ["Clock", "ClockContext", "from_temporal", "unreadable_stamp", "with_offsets", "zoned"]

ZONES_BY_LETTERS = {
    "z": 0, "utc": 0, "gmt": 0, "cet": 1, "cest": 2, "mez": 1, "mesz": 2, "wet": 0, "west": 1,
    "eet": 2, "eest": 3, "hnec": 1, "heec": 2,
}  # fmt: skip
"""Hours ahead of UTC. Letters with several meanings, such as EST or CST, are not here."""
BRACKETED_ZONE = re.compile(r"(?<=\d)\[[^\[\]]*\]$")
"""A zone behind an offset, as in `+01:00[Europe/Berlin]`, adds nothing to it."""
LONGEST_SHOWN = 80
OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The times of all rows, and how they were read."""

    times: Times
    utc: bool  # converted to UTC
    settings: tuple[SettingChoice, ...] = ()  # what was decided, as a plant file declares it
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockContext:
    """What a reader of times knows beside them."""

    name: str  # of the file
    plant: PlantFile
    groups: pl.Series | None = None  # the tag of every row of a long table


def unreadable_stamp(texts: pl.Series, row: int, name: str) -> RecordError:
    """Return the error of a time stamp that cannot be read, or not like the others."""
    first, here = (str(texts[at])[:LONGEST_SHOWN] for at in (0, row))
    if row == 0:
        return UnclearRecordError(
            f"cannot read the time stamp {first!r}",
            file=name,
            cure='[record] time_format, such as "%d.%m.%Y %H:%M:%S",',
            choices=(
                SettingChoice(
                    setting="time_format",
                    value="%d.%m.%Y %H:%M:%S",
                    meaning="day, month, year and time, with dots and colons",
                ),
            ),
            free=True,
        )
    return RecordError(
        f"{name}: row {row} has the time stamp {here!r}, the first row {first!r}; every row needs "
        "the same format"
    )


def from_temporal(column: pl.Series, context: ClockContext) -> Clock:
    """Read a column whose cells are times already."""
    kind = column.dtype
    if isinstance(kind, pl.Time | pl.Duration):
        raise RecordError(
            f"{context.name}: column {column.name!r} holds times of day without a date; name the "
            "column of dates in the plant file, [record] time = ..., and this one as time_of_day"
        )
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        raise RecordError(
            f"{context.name}: row {row} has no time stamp ({column.null_count()} such rows); every "
            "row needs one: correct the export"
        )
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        utc = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        note = f"times of zone {kind.time_zone} converted to UTC"
        return Clock(times=utc.cast(pl.Datetime("us")).to_numpy(), utc=True, notes=(note,))
    return zoned(column.cast(pl.Datetime("us")).to_numpy(), context)


def zoned(times: Times, context: ClockContext) -> Clock:
    """Convert local times to UTC if the plant file names their zone."""
    if not context.plant.time_zone:
        return Clock(times=times, utc=False)
    return _local(times, context.plant.time_zone, context)


def with_offsets(
    times: Times, written: pl.Series, texts: pl.Series, context: ClockContext
) -> Clock:
    """Apply the offset or the zone that is written behind each time."""
    if written.null_count() == len(written):
        return zoned(times, context)
    if written.null_count():
        raise unreadable_stamp(texts, int(written.is_null().arg_max() or 0), context.name)
    names = written.unique(maintain_order=True).to_list()
    ahead = {name: us for name in names if (us := _ahead_us(name)) is not None}
    if len(ahead) == len(names):
        offsets = written.replace_strict(list(ahead), list(ahead.values()), return_dtype=pl.Int64)
        utc: Ints = times.astype(np.int64) - offsets.to_numpy()
        return Clock(
            times=utc.astype("datetime64[us]"), utc=True, notes=("times converted to UTC",)
        )
    unknown = next(name for name in names if name not in ahead)
    if len(names) == 1 and "/" in unknown:
        return _local(times, unknown.strip("[]"), context)
    if context.plant.time_zone:
        return _by_letters(times, written, context)
    raise UnclearRecordError(
        f"the time zone {unknown!r} in {texts[0]!r} has several meanings",
        file=context.name,
        cure='[record] time_zone = "America/New_York" (or another zone)',
        choices=(
            SettingChoice(
                setting="time_zone", value="America/New_York", meaning="the plant's zone"
            ),
        ),
        free=True,
    )


def _ahead_us(name: str) -> int | None:
    """Return how far an offset or a zone of one meaning is ahead of UTC."""
    offset = OFFSET.fullmatch(BRACKETED_ZONE.sub("", name))
    if offset:
        size = (int(offset[2]) * 60 + int(offset[3] or 0)) * 60_000_000
        return -size if offset[1] == "-" else size
    hours = ZONES_BY_LETTERS.get(name.strip("[]").casefold())
    return None if hours is None else hours * 3_600_000_000


def _by_letters(times: Times, written: pl.Series, context: ClockContext) -> Clock:
    """Read times such as `01:30 EDT` in the declared zone; the letters decide in a fold."""
    zone = context.plant.time_zone
    letters = written.str.to_uppercase()
    chosen: Ints = np.full(len(times), -1, np.int64)
    for candidate in reversed(_candidates(times, zone, context.name)):
        aware = pl.Series(candidate.astype("datetime64[us]")).dt.replace_time_zone("UTC")
        shown = aware.dt.convert_time_zone(zone).dt.strftime("%Z").str.to_uppercase()
        fits = (shown == letters).to_numpy()
        chosen[fits] = candidate[fits]
    if (chosen == -1).any():
        row = int((chosen == -1).argmax())
        raise RecordError(
            f"{context.name}: row {row} has the time zone {written[row]!r}, which is not in use in "
            f"{zone} at that time; correct [record] time_zone in the plant file"
        )
    return Clock(
        times=chosen.astype("datetime64[us]"),
        utc=True,
        notes=(f"times of {zone} converted to UTC",),
    )


def _local(times: Times, zone: str, context: ClockContext) -> Clock:
    notes = (f"times of {zone} converted to UTC",)
    ahead = _ahead_us(zone) if OFFSET.fullmatch(zone) else None
    if ahead is not None:
        utc: Ints = times.astype(np.int64) - ahead
        return Clock(times=utc.astype("datetime64[us]"), utc=True, notes=notes)
    early, late = _candidates(times, zone, context.name)
    twice = early != late
    utc = early.copy()
    if twice.any():
        second = _second_pass(times, twice, zone, context)
        utc[second] = late[second]
    return Clock(times=utc.astype("datetime64[us]"), utc=True, notes=notes)


def _candidates(times: Times, zone: str, name: str) -> tuple[Ints, Ints]:
    """Return the earlier and the later UTC time of each local time; they differ in a fold."""
    naive = pl.Series(times.astype("datetime64[us]"))
    try:
        both = [
            naive.dt.replace_time_zone(zone, ambiguous=which, non_existent="null")
            for which in ("earliest", "latest")
        ]
    except pl.exceptions.PolarsError:
        raise UnclearRecordError(
            f"the time zone {zone!r} is unknown",
            file=name,
            cure="[record] time_zone to a name such as 'Europe/Berlin' or an offset such as "
            "'+01:00'",
            choices=_zone_choices("+01:00"),
            free=True,
        ) from None
    if both[0].null_count():
        row = int(both[0].is_null().arg_max() or 0)
        raise UnclearRecordError(
            f"row {row} has the local time {times[row]}, which {zone} skips when daylight saving "
            "time begins, so the clock does not follow it",
            file=name,
            cure="[record] time_zone to a fixed offset such as '+01:00'",
            choices=_zone_choices(_standard_offset(times[row], zone)),
            free=True,
        )
    early, late = (
        each.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy().astype(np.int64)
        for each in both
    )
    return early, late


def _zone_choices(offset: str) -> tuple[SettingChoice, ...]:
    return (
        SettingChoice(setting="time_zone", value=offset, meaning="this offset all year"),
        SettingChoice(setting="time_zone", value="UTC", meaning="times are UTC"),
    )


def _standard_offset(time: np.datetime64, zone: str) -> str:
    """Return the offset that a zone has a day before a time, such as `+01:00`."""
    day_before = np.array([time - np.timedelta64(1, "D")], "datetime64[us]")
    local = pl.Series(day_before)
    aware = local.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")
    return str(aware.dt.strftime("%:z")[0] or "+00:00")


def _second_pass(times: Times, twice: Bools, zone: str, context: ClockContext) -> Bools:
    """Return the rows of the hour that comes twice which belong to its second pass.

    The rows of one tag step back in time exactly once between the passes.
    """
    fold, groups = context.plant.fold, context.groups
    second = np.zeros(len(times), np.bool_)
    if fold:
        second[twice] = fold == Fold.SECOND
    rows = np.flatnonzero(twice)
    tags = (
        np.zeros(len(rows), np.int64)
        if groups is None
        else groups.gather(pl.Series(rows)).rank("dense").to_numpy().astype(np.int64)
    )
    days = times[rows].astype("datetime64[D]").astype(np.int64)
    order = np.lexsort((rows, days, tags))
    cuts = np.flatnonzero((np.diff(tags[order]) != 0) | (np.diff(days[order]) != 0)) + 1
    for stretch in np.split(order, cuts):
        at = rows[stretch]
        steps = np.diff(times[at].astype(np.int64))
        back = np.flatnonzero(steps <= 0)
        if back.size == 1:
            second[at] = False
            second[at[int(back[0]) + 1 :]] = True
        elif not fold:
            raise UnclearRecordError(
                f"the hour of {times[at[0]]} comes twice in {zone}, and the rows do not show "
                "which of the two is meant",
                file=context.name,
                cure='[record] fold = "first" or fold = "second"',
                choices=(
                    SettingChoice(
                        setting="fold",
                        value=Fold.FIRST.value,
                        meaning="the first time, in daylight saving time",
                    ),
                    SettingChoice(
                        setting="fold",
                        value=Fold.SECOND.value,
                        meaning="the second time, in standard time",
                    ),
                ),
            )
    return second
