"""Tables in four formats: a part of a page, CSV, LaTeX and Markdown."""

import csv
import io
from dataclasses import dataclass, replace
from itertools import compress

from sluice.reports import DataColumn, DataTable

__all__ = [
    "Column",
    "ReportTable",
    "Value",
    "as_csv",
    "as_latex",
    "as_markdown",
    "as_part",
    "without_empty_columns",
]

Value = str | float | int | None
NOTHING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A heading and the number of digits of its figures; None for text."""

    name: str
    digits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table with a sentence that explains it."""

    slug: str  # the stem of its file names
    title: str
    sentence: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    finding: str = ""  # the result in one sentence


def without_empty_columns(table: ReportTable) -> ReportTable:
    """Return the table without the columns that have no value in any row."""
    filled = [any(row[at] is not None for row in table.rows) for at in range(len(table.columns))]
    return replace(
        table,
        columns=tuple(compress(table.columns, filled)),
        rows=tuple(tuple(compress(row, filled)) for row in table.rows),
    )


def as_part(table: ReportTable) -> DataTable:
    """Return the table as a part of a page; figures are rounded and right-aligned."""
    return DataTable(
        columns=tuple(
            DataColumn(name=column.name, numeric=column.digits is not None)
            for column in table.columns
        ),
        rows=tuple(
            tuple(_shown(value, column) for value, column in zip(row, table.columns, strict=True))
            for row in table.rows
        ),
        key=f"table-{table.slug}",
        searched=True,
    )


def as_csv(table: ReportTable) -> str:
    """Return the table as CSV, without rounding."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows([["" if value is None else value for value in row] for row in table.rows])
    return text.getvalue()


def as_latex(table: ReportTable) -> str:
    """Return the table as LaTeX with booktabs."""
    spec = "".join("l" if column.digits is None else "r" for column in table.columns)
    lines = [
        " & ".join(
            _escaped(_shown(value, column))
            for value, column in zip(row, table.columns, strict=True)
        )
        + r" \\"
        for row in table.rows
    ]
    head = " & ".join(_escaped(column.name) for column in table.columns)
    caption = f"{table.sentence} {table.finding}".strip()
    return "\n".join(
        (
            r"\begin{table}[htb]\centering\small",
            rf"\caption{{{_escaped(caption)}}}\label{{tab:{table.slug}}}",
            rf"\begin{{tabular}}{{@{{}}{spec}@{{}}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        )
    )


def as_markdown(table: ReportTable) -> str:
    """Return the table as Markdown."""
    head = [column.name for column in table.columns]
    rules = ["---" if column.digits is None else "---:" for column in table.columns]
    body = [
        [_shown(value, column) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    lines = (head, rules, *body)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(value: Value, column: Column) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, float) and column.digits is not None:
        return f"{value:z.{column.digits}f}"  # z: no minus before a zero
    return str(value)


def _escaped(text: str) -> str:
    for char in "&%$#_{}":
        text = text.replace(char, f"\\{char}")
    return text.replace("~", r"\textasciitilde{}")
