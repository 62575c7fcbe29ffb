"""The rules by the names the command line and the results use."""

from collections.abc import Mapping
from types import MappingProxyType

from sluice.aggregation.averages import CentredClipping, FedAvg, NormClipping
from sluice.aggregation.coordinates import CoordinateMedian, TrimmedMean
from sluice.aggregation.fltrust import FLTrust
from sluice.aggregation.foolsgold import FoolsGold
from sluice.aggregation.geometric import GeometricMedian
from sluice.aggregation.mixing import NearestNeighbourMixing
from sluice.aggregation.rule import Rule
from sluice.aggregation.selection import Krum, MultiKrum

__all__ = ["RULES"]

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "fedavg": FedAvg(),
        "median": CoordinateMedian(),
        "trimmed-mean": TrimmedMean(),
        "krum": Krum(),
        "norm-clipping": NormClipping(),
        "fltrust": FLTrust(),
        "foolsgold": FoolsGold(),
        "multi-krum": MultiKrum(),
        "centred-clipping": CentredClipping(),
        "geometric-median": GeometricMedian(),
        "nnm": NearestNeighbourMixing(rule=CoordinateMedian()),
    }
)
"""Each rule as the paper sets it; the last four, which the paper does not run, by their default."""
