"""Sluice: physics-attested federated learning for critical water infrastructure.

This is the runtime's public API: read records, mine and accept rules, judge batches, prove and
verify verdicts, train and score detectors, and federate. `sluice.lab` is the lab's.

    import sluice

    record = sluice.read_record("plant.csv")
    rules = sluice.mine(record.rows(0, 20_000), record.rows(20_000, 40_000))
    verdict = sluice.judge(record.rows(40_000, 41_000), rules)
    print(verdict.admitted, *verdict.sentences)
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
