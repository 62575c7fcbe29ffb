from .audit_figures import (
    AuditPanel,
    Bar,
    Stem,
    demand_figure_suffix,
    write_coverage_figure,
    write_separation_figure,
)
from .grid_page import lab_report, write_lab_page, write_lab_summary, write_lab_tables
from .paper_page import write_paper_page
from .story_page import StoryPage, StoryPlant, Way, write_story_page

__all__ = [
    "AuditPanel",
    "Bar",
    "Stem",
    "StoryPage",
    "StoryPlant",
    "Way",
    "demand_figure_suffix",
    "lab_report",
    "write_coverage_figure",
    "write_lab_page",
    "write_lab_summary",
    "write_lab_tables",
    "write_paper_page",
    "write_separation_figure",
    "write_story_page",
]
