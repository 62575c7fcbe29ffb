"""The rules, by the names in the command line and the results."""

from sluice.aggregation.averages import CentredClipping, FedAvg, NormClipping
from sluice.aggregation.coordinates import CoordinateMedian, TrimmedMean
from sluice.aggregation.fltrust import FLTrust
from sluice.aggregation.foolsgold import FoolsGold
from sluice.aggregation.geometric import GeometricMedian
from sluice.aggregation.mixing import NearestNeighbourMixing
from sluice.aggregation.rule import Rule
from sluice.aggregation.selection import Krum, MultiKrum
from sluice.plugins import Registry

__all__ = ["RULES"]

RULES: Registry[Rule] = Registry(
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
    },
    group="sluice.aggregation",
)
"""Each rule with the paper's settings; the last four are not in the paper and use defaults."""
