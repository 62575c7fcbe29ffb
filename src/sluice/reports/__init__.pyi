from .certificate_page import (
    certificate_figures,
    certificate_sections,
    write_certificate_page,
)
from .drawings import Drawing
from .page import (
    Bullets,
    Cell,
    Columns,
    DataColumn,
    DataTable,
    Legend,
    LegendKey,
    PageSection,
    Part,
    Prose,
    ReportPage,
    Tile,
    Tone,
    asset,
    plotly_source,
    rendered_main,
    write_page,
)
from .record_page import write_record_page
from .score_page import write_score_page
from .verdict_page import write_verdict_figure, write_verdict_page

__all__ = [
    "Bullets",
    "Cell",
    "Columns",
    "DataColumn",
    "DataTable",
    "Drawing",
    "Legend",
    "LegendKey",
    "PageSection",
    "Part",
    "Prose",
    "ReportPage",
    "Tile",
    "Tone",
    "asset",
    "certificate_figures",
    "certificate_sections",
    "plotly_source",
    "rendered_main",
    "write_certificate_page",
    "write_page",
    "write_record_page",
    "write_score_page",
    "write_verdict_figure",
    "write_verdict_page",
]
