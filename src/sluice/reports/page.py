"""What all pages share: a self-contained skeleton, shaded attacks, drawings with fewer points."""

import html
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from sluice.arrays import Floats, Ints
from sluice.telemetry import Record

__all__ = ["ATTACK_COLOUR", "attack_shapes", "drawing", "page", "thinned"]

ATTACK_COLOUR = "rgba(200, 30, 30, 0.18)"

SKELETON = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
 body {{ font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 1rem;
        color: #1c2430; background: #fff; }}
 h1 {{ font-size: 1.5rem; margin: 0.2rem 0; }}
 p, li {{ max-width: 80ch; }}
 .scroll {{ overflow-x: auto; }}
 .beside {{ display: flex; flex-wrap: wrap; gap: 0 1.5rem; }}
 .beside > figure {{ width: calc(50% - 0.75rem); margin: 0.5rem 0; }}
 @media (max-width: 720px) {{ .beside > figure {{ width: 100%; }} }}
 table {{ border-collapse: collapse; font-size: 13px; }}
 td, th {{ padding: 2px 12px 2px 0; text-align: left; vertical-align: top; }}
 th {{ border-bottom: 1px solid #ccd; vertical-align: bottom; }}
 td.w {{ white-space: nowrap; }}
 th.n {{ text-align: right; }}
 td.n {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
 .key {{ display: inline-block; width: 0.9em; height: 0.9em; background: {attack};
         border: 1px solid #c88; vertical-align: -0.1em; }}
</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""


def page(title: str, body: str) -> str:
    """Return a whole page; the title is plain text, the body is HTML."""
    return SKELETON.format(title=html.escape(title), body=body, attack=ATTACK_COLOUR)


def drawing(figure: go.Figure, *, first: bool = True, tools: bool = True) -> str:
    """Return a figure as HTML that needs no network; the first of a page includes the library.

    Without `tools` the figure has no buttons for zooming and saving.
    """
    config = {
        "responsive": True,
        "displaylogo": False,
        **({} if tools else {"displayModeBar": False}),
    }
    return str(figure.to_html(full_html=False, include_plotlyjs=first, config=config))


def attack_shapes(record: Record) -> list[dict[str, object]]:
    """Return one rectangle per attack, across all rows of a figure.

    Plotly's own `add_vrect` draws one per row and takes minutes for fifty channels.
    """
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": str(record.times[run.start]),
            "x1": str(record.times[run.stop - 1]),
            "y0": 0,
            "y1": 1,
            "fillcolor": ATTACK_COLOUR,
            "line": {"width": 0},
        }
        for run in record.attack_segments
    ]


def thinned(readings: Floats, most: int) -> Ints:
    """Return about `most` rows to draw: the lowest and the highest reading of each stretch."""
    if len(readings) <= most:
        return np.arange(len(readings))
    edges = np.linspace(0, len(readings), most // 2 + 1).astype(np.int64)
    rows = {0, len(readings) - 1}
    for start, stop in pairwise(edges):
        stretch = readings[start:stop]
        if not np.isnan(stretch).all():
            rows |= {int(start + np.nanargmin(stretch)), int(start + np.nanargmax(stretch))}
    return np.array(sorted(rows), dtype=np.int64)
