"""Aggregation turns the updates of a round into one, and says who had how much part in it."""

from sluice.aggregation.allowance import Share
from sluice.aggregation.averages import CentredClipping, FedAvg, NormClipping
from sluice.aggregation.coordinates import CoordinateMedian, TrimmedMean
from sluice.aggregation.fltrust import FLTrust
from sluice.aggregation.foolsgold import FoolsGold
from sluice.aggregation.geometric import GeometricMedian
from sluice.aggregation.geometry import MedianLength
from sluice.aggregation.mixing import NearestNeighbourMixing
from sluice.aggregation.registry import RULES
from sluice.aggregation.rule import Aggregate, Centre, Fresh, Memory, RootUpdate, Rule, State
from sluice.aggregation.selection import Krum, MultiKrum
from sluice.aggregation.update import Update, Vector

__all__ = [
    "RULES",
    "Aggregate",
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
    "Memory",
    "MultiKrum",
    "NearestNeighbourMixing",
    "NormClipping",
    "RootUpdate",
    "Rule",
    "Share",
    "State",
    "TrimmedMean",
    "Update",
    "Vector",
]
