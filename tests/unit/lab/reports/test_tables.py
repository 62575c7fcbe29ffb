"""Tables in their four formats: what is rounded, what is escaped, and what a missing value is."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from sluice.lab.reports.tables import (
    Column,
    ReportTable,
    Value,
    as_csv,
    as_latex,
    as_markdown,
    as_part,
    without_empty_columns,
)

TABLE = ReportTable(
    slug="loss",
    title="Loss",
    sentence="Points lost.",
    columns=(Column(name="rule"), Column(name="points", digits=1), Column(name="seeds", digits=0)),
    rows=(("fedavg", 12.345, 5), ("krum", None, 3)),
)


def only(value: Value, *, digits: int | None) -> ReportTable:
    return replace(TABLE, columns=(Column(name="x", digits=digits),), rows=((value,),))


def test_a_table_on_a_page_is_exactly_this() -> None:
    part = as_part(TABLE)
    assert [(column.name, column.numeric) for column in part.columns] == [
        ("rule", False),
        ("points", True),
        ("seeds", True),
    ]
    assert part.rows == (("fedavg", "12.3", "5"), ("krum", "-", "3"))
    assert part.key == "table-loss"


def test_a_table_in_csv_is_exactly_this() -> None:
    assert as_csv(TABLE) == "rule,points,seeds\nfedavg,12.345,5\nkrum,,3\n"


def test_a_table_in_markdown_is_exactly_this() -> None:
    assert as_markdown(TABLE) == (
        "| rule | points | seeds |\n"
        "| --- | ---: | ---: |\n"
        "| fedavg | 12.3 | 5 |\n"
        "| krum | - | 3 |\n"
    )


def test_a_table_in_latex_is_exactly_this() -> None:
    assert as_latex(TABLE).splitlines() == [
        r"\begin{table}[htb]\centering\small",
        r"\caption{Points lost.}\label{tab:loss}",
        r"\begin{tabular}{@{}lrr@{}}",
        r"\toprule",
        r"rule & points & seeds \\",
        r"\midrule",
        r"fedavg & 12.3 & 5 \\",
        r"krum & - & 3 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    assert as_latex(TABLE).endswith("\\end{table}\n")


def test_the_caption_in_latex_ends_with_the_finding() -> None:
    found = replace(TABLE, finding="Krum loses 50 %.")
    assert r"\caption{Points lost. Krum loses 50 \%.}\label{tab:loss}" in as_latex(found)


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (2.5, 0, "2"),  # to even, as Python rounds
        (3.5, 0, "4"),
        (-0.04, 1, "0.0"),  # no minus before a zero
        (-0.06, 1, "-0.1"),
        (0.9996, 3, "1.000"),
        (7, 2, "7"),  # a count has no decimals, whatever its column
        (1234.5, 1, "1234.5"),
        (0.5, None, "0.5"),
        (None, 2, "-"),
        (None, None, "-"),
        ("3 of 4", 0, "3 of 4"),
    ],
)
def test_a_figure_is_rounded_alike_in_every_format_for_readers(
    value: Value, digits: int | None, shown: str
) -> None:
    table = only(value, digits=digits)
    assert as_part(table).rows == ((shown,),)
    assert as_markdown(table).splitlines()[-1] == f"| {shown} |"
    assert f"{shown} \\\\" in as_latex(table).splitlines()


def test_csv_gives_back_every_figure_to_the_last_bit() -> None:
    figures = (0.1 + 0.2, 1e-17, -0.0, 123456789.123456789)
    table = replace(
        TABLE, columns=(Column(name="x", digits=1),), rows=tuple((figure,) for figure in figures)
    )
    head, *rows = csv.reader(io.StringIO(as_csv(table)))
    assert head == ["x"]
    assert tuple(float(row[0]) for row in rows) == figures


def test_csv_quotes_what_would_break_a_row() -> None:
    text = 'a, "quoted"\nreason'
    rows = list(csv.reader(io.StringIO(as_csv(only(text, digits=None)))))
    assert rows == [["x"], [text]]


def test_a_heading_is_escaped_in_latex() -> None:
    table = replace(TABLE, columns=(Column(name="<R&D> 5 %"),), rows=())
    assert r"<R\&D> 5 \% \\" in as_latex(table).splitlines()


@pytest.mark.parametrize("char", list("&%$#_{}"))
def test_what_latex_would_read_as_a_command_is_escaped_once(char: str) -> None:
    assert f"a\\{char}b \\\\" in as_latex(only(f"a{char}b", digits=None)).splitlines()


def test_a_tilde_in_latex_is_not_a_space() -> None:
    assert r"MV101\textasciitilde{}FIT101 \\" in as_latex(only("MV101~FIT101", digits=None))


def test_a_column_with_one_value_or_a_zero_or_an_empty_text_is_kept() -> None:
    table = replace(
        TABLE,
        columns=tuple(Column(name=name) for name in "abcd"),
        rows=((None, 0.0, None, ""), (1, None, None, None)),
    )
    kept = without_empty_columns(table)
    assert [column.name for column in kept.columns] == ["a", "b", "d"]
    assert kept.rows == ((None, 0.0, ""), (1, None, None))
    assert (kept.slug, kept.title, kept.sentence) == (table.slug, table.title, table.sentence)


def test_a_table_without_rows_has_no_filled_column() -> None:
    assert without_empty_columns(replace(TABLE, rows=())).columns == ()


@pytest.mark.parametrize("written", [as_part, as_latex, as_markdown])
def test_a_row_that_does_not_fit_the_columns_is_refused(
    written: Callable[[ReportTable], object],
) -> None:
    with pytest.raises(ValueError, match="zip"):
        written(replace(TABLE, rows=(("fedavg", 1.0),)))
