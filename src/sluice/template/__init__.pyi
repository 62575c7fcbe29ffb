from .mapping import CONFIDENT, Match, Proposal, propose
from .overlap import Overlap, demand_kinds, overlap_of
from .placing import mapped_plant_file, placements
from .points import Point, Template, derive_template, parse_template, read_template, write_template
from .units import Conversion, conversion, same_dimension

__all__ = [
    "CONFIDENT",
    "Conversion",
    "Match",
    "Overlap",
    "Point",
    "Proposal",
    "Template",
    "conversion",
    "demand_kinds",
    "derive_template",
    "mapped_plant_file",
    "overlap_of",
    "parse_template",
    "placements",
    "propose",
    "read_template",
    "same_dimension",
    "write_template",
]
