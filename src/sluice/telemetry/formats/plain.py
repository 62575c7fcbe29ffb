"""Plain tables with a time column: text of any dialect, workbooks and Parquet, wide or long."""

import io
import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.channel import CHANNELS, CHANNELS_KEY
from sluice.telemetry.exports import (
    LABEL_NAMES,
    CellTable,
    Readings,
    Shaped,
    open_table,
    readings,
    shaped,
)
from sluice.telemetry.formats.format import Format
from sluice.telemetry.plantfile import Declaration, PlantFile
from sluice.telemetry.record import Label
from sluice.telemetry.source import Container, Source
from sluice.telemetry.table import Table, labels_from

__all__ = ["plain"]

VERSION = 2
NORMAL_WORDS = ("normal", "benign", "0", "0.0", "false", "ok")
ATTACK_WORDS = ("attack", "anomaly", "malicious", "1", "1.0", "true")
UNLABELLED_WORDS = ("unlabelled", "unlabeled", "unknown", "-999", "-999.0", "")
MOST_LABELS = 1_000
LABEL_LIKE = re.compile(r"\b(attacks?|lab[el]{2}s?|normal/attack|anomal(y|ies))\b", re.IGNORECASE)
"""Such a column can tell attacks; it must not become a channel."""


def plain(plant: PlantFile) -> Format:
    """Return the format of plain tables; the plant file gives what is unusual or unclear."""
    return Format(
        name="plain",
        title="plain CSV, workbook or Parquet",
        version=f"{VERSION}:{plant.settings}:{plant.ignored}:{sorted(plant.channels)}",
        recognises=lambda _: True,
        load=lambda source: _load(source, plant),
    )


def _load(source: Source, plant: PlantFile) -> Table:
    name = source.path.name
    opened = open_table(source, plant)
    ignored = [column for column in opened.frame.columns if plant.ignores(column)]
    label = _label_column(opened.frame, plant)
    found = shaped(
        opened.without(ignored),
        name=name,
        plant=plant,
        limits=source.limits,
        labels=(label,) if label else (),
    )
    found = found.renamed(_names(found.frame.columns, plant, name))
    labels, frame = _labels(found.frame, label, name, plant)
    frame = frame.drop([column for column in frame.columns if plant.ignores(column)])
    _refuse_label_like(frame, name, plant)
    if frame.width == 0:
        raise RecordError(f"{name} has a time column but no channels beside it")
    numbers = readings(frame, name=name, plant=plant, dot=opened.dot, dates=opened.dates)
    return Table(
        format="plain",
        frame=numbers.frame,
        times=found.times,
        labels=labels,
        notes=(*opened.notes, *found.notes, *numbers.notes),
        declared={**_declared(opened, found, numbers, plant), **_declared_in(source)},
        settings=_settings(opened, found, numbers, label),
        utc=found.utc,
        events=found.events,
    )


def _names(columns: list[str], plant: PlantFile, file: str) -> dict[str, str]:
    """Return names without the plant's prefix."""
    if not plant.prefix:
        return {}
    names = {column: column.removeprefix(plant.prefix) or column for column in columns}
    if len(set(names.values())) < len(names):
        raise RecordError(
            f"{file}: two tags have the same name without the prefix {plant.prefix!r}; give a "
            "shorter prefix in the plant file"
        )
    return names


def _declared(
    opened: CellTable, found: Shaped, numbers: Readings, plant: PlantFile
) -> dict[str, Declaration]:
    """Return the units and states that the file shows."""
    declared: dict[str, Declaration] = {}
    headed = {
        column.removeprefix(plant.prefix): Declaration(unit=unit)
        for column, unit in opened.units.items()
    }
    for source in (headed, found.declared, numbers.declared):
        for column, declaration in source.items():
            if column in numbers.frame.columns:
                earlier = declared.get(column, Declaration())
                declared[column] = declaration.over(earlier)
    return declared


def _declared_in(source: Source) -> dict[str, Declaration]:
    """Return the channels that a Parquet file written by Sluice declares."""
    if source.container is not Container.PARQUET:
        return {}
    declared = pl.read_parquet_metadata(io.BytesIO(source.data)).get(CHANNELS_KEY)
    try:
        channels = CHANNELS.validate_json(declared) if declared else ()
    except ValueError:
        return {}  # another program uses the same key: infer instead
    return {
        c.name: Declaration(role=c.role, unit=c.unit, codes=c.codes, span=c.span) for c in channels
    }


def _settings(
    opened: CellTable, found: Shaped, numbers: Readings, label: str
) -> tuple[SettingChoice, ...]:
    settings = [*opened.settings, *found.settings]
    if numbers.decimal == ",":
        settings.append(SettingChoice(setting="decimal", value=",", meaning=""))
    if numbers.status:
        settings.append(SettingChoice(setting="missing", value=numbers.status, meaning=""))
    if numbers.words:
        settings.append(SettingChoice(setting="words", value=dict(numbers.words), meaning=""))
    if label:
        settings.append(SettingChoice(setting="label", value=label, meaning=""))
    return tuple(settings)


# -- labels -----------------------------------------------------------------------------------


def _label_column(frame: pl.DataFrame, plant: PlantFile) -> str:
    named = [column for column in frame.columns if column.lower() in LABEL_NAMES]
    return plant.label or (named[0] if named else "")


def _labels(
    frame: pl.DataFrame, column: str, file: str, plant: PlantFile
) -> tuple[NDArray[np.int8], pl.DataFrame]:
    if not column:
        return np.full(len(frame), Label.UNLABELLED, np.int8), frame
    if column not in frame.columns:
        raise RecordError(f"{file} has no label column {column!r}, which the plant file names")

    def known(value: object) -> Label | None:
        text = str(value).strip()
        for label, words in (
            (Label.NORMAL, plant.normal_labels or NORMAL_WORDS),
            (Label.ATTACK, plant.attack_labels or ATTACK_WORDS),
            (Label.UNLABELLED, UNLABELLED_WORDS),
        ):
            if text in words or text.lower() in words:
                return label
        return None

    for value in frame[column].unique(maintain_order=True).drop_nulls().to_list()[:MOST_LABELS]:
        if known(value) is None:
            raise _unknown_label(column, str(value), file, plant)
    return labels_from(frame[column], known, name=file), frame.drop(column)


def _unknown_label(column: str, word: str, file: str, plant: PlantFile) -> UnclearRecordError:
    shown = word[:40]
    return UnclearRecordError(
        f"label column {column!r} holds {shown!r}, which means neither normal nor attack here",
        file=file,
        cure=f'[record] normal_labels = ["{shown}"] or attack_labels = ["{shown}"]',
        choices=(
            SettingChoice(
                setting="normal_labels",
                value=(word,) if plant.normal_labels else (*NORMAL_WORDS, word),
                meaning="normal operation",
            ),
            SettingChoice(
                setting="attack_labels",
                value=(word,) if plant.attack_labels else (*ATTACK_WORDS, word),
                meaning="an attack",
            ),
        ),
    )


def _refuse_label_like(frame: pl.DataFrame, file: str, plant: PlantFile) -> None:
    if plant.label:
        return
    like = [
        column
        for column in frame.columns
        if LABEL_LIKE.search(column.replace("_", " ")) and column not in plant.channels
    ]
    if like:
        raise UnclearRecordError(
            f"column {like[0]!r} can be a label of attacks or a reading",
            file=file,
            cure=f'[record] label = "{like[0]}" (or [channels."{like[0]}"] ignore = true)',
            choices=(
                SettingChoice(setting="label", value=like[0], meaning="it labels attacks"),
                SettingChoice(setting="ignored", value=(like[0],), meaning="ignore it"),
            ),
        )
