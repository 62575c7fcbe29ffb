"""Tables in four formats: HTML, CSV, LaTeX and Markdown."""

import csv
import html
import io
from dataclasses import dataclass, replace
from itertools import compress

__all__ = [
    "Column",
    "ReportTable",
    "Value",
    "as_csv",
    "as_html",
    "as_latex",
    "as_markdown",
    "without_empty_columns",
]

Value = str | float | int | None
NOTHING = "-"
SHORT = 16  # letters; a shorter text is not broken into lines


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


def as_html(table: ReportTable) -> str:
    """Return the table as HTML; figures are rounded and right-aligned."""
    head = "".join(
        f"<th{_figures(column)}>{html.escape(column.name)}</th>" for column in table.columns
    )
    body = "\n".join(
        "<tr>"
        + "".join(_cell(value, column) for value, column in zip(row, table.columns, strict=True))
        + "</tr>"
        for row in table.rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>\n{body}</table></div>'


def _cell(value: Value, column: Column) -> str:
    shown = _shown(value, column)
    short = " class=w" if column.digits is None and len(shown) <= SHORT else ""
    return f"<td{_figures(column) or short}>{html.escape(shown)}</td>"


def _figures(column: Column) -> str:
    return "" if column.digits is None else " class=n"


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
