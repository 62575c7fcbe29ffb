from .allowance import AllowedShare
from .averages import CentredClipping, FedAvg, NormClipping
from .coordinates import CoordinateMedian, TrimmedMean
from .fltrust import FLTrust
from .foolsgold import FoolsGold
from .geometric import GeometricMedian
from .geometry import MedianLength
from .mixing import NearestNeighbourMixing
from .registry import RULES
from .rule import (
    Aggregate,
    Centre,
    Fresh,
    RootUpdate,
    Rule,
    RuleMemory,
    State,
    aggregated,
    expect_fresh,
)
from .selection import Krum, MultiKrum
from .update import Stack, Update, Vector, checked_vector, stacked

__all__ = [
    "RULES",
    "Aggregate",
    "AllowedShare",
    "Centre",
    "CentredClipping",
    "CoordinateMedian",
    "FLTrust",
    "FedAvg",
    "FoolsGold",
    "Fresh",
    "GeometricMedian",
    "Krum",
    "MedianLength",
    "MultiKrum",
    "NearestNeighbourMixing",
    "NormClipping",
    "RootUpdate",
    "Rule",
    "RuleMemory",
    "Stack",
    "State",
    "TrimmedMean",
    "Update",
    "Vector",
    "aggregated",
    "checked_vector",
    "expect_fresh",
    "stacked",
]
