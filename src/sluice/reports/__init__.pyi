from .page import drawing, page
from .record_page import write_record_page
from .score_page import write_score_page
from .verdict_page import write_verdict_figure, write_verdict_page

__all__ = [
    "drawing",
    "page",
    "write_record_page",
    "write_score_page",
    "write_verdict_figure",
    "write_verdict_page",
]
