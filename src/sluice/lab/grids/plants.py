"""A federation of sites: every client is a plant of a different size, as in the paper's simulator.

The paper's other records are one plant cut into shards. Here tanks, pumps and set-points differ
between clients. The rules and the validation, root and test rows come from the reference plant, so
the rules judge plants from which they were not mined.
"""

from types import MappingProxyType

from sluice.detector import Framing
from sluice.lab.attacks import choose_targets
from sluice.lab.trials import Scenario, Setup, client_names, malicious_clients
from sluice.seeding import stream
from sluice.telemetry import Record, Scaler, Split, feature_names

__all__ = ["SITES_PLANT", "site_scenario"]

SITES_PLANT = "line"
"""The only simulated plant whose sites differ by known amounts."""
ROWS_PER_DAY = 1440
SITE_ROWS, ROOT_ROWS, KNOWN_ROWS = 4_000, 800, 8_000
LARGEST_SHIFT = 1.0
VALIDATION_SEED, TEST_SEED, ROOT_SEED, KNOWN_SEED = 90_001, 90_002, 90_003, 12_345


def site_scenario(*, setup: Setup, seed: int) -> Scenario:
    """Build the sites of a seed and the records of the reference plant."""
    names = client_names(setup.clients)
    shifts = stream(seed, "sites").uniform(-LARGEST_SHIFT, LARGEST_SHIFT, len(names))
    shards = {
        name: _simulated(1_000 * seed + at, SITE_ROWS, shift=float(shift))
        for at, (name, shift) in enumerate(zip(names, shifts, strict=True))
    }
    reference = _simulated(KNOWN_SEED, KNOWN_ROWS)
    test = _simulated(TEST_SEED + seed, SITE_ROWS, attacks=True)
    features = feature_names(reference)
    return Scenario(
        setup=setup,
        seed=seed,
        parts=Split(
            fit=reference,
            calibration=reference,
            validation=_simulated(VALIDATION_SEED + seed, SITE_ROWS),
            root=_simulated(ROOT_SEED + seed, ROOT_ROWS),
            shards=tuple(shards.values()),
        ),
        shards=MappingProxyType(shards),
        malicious=malicious_clients(setup, seed=seed),
        labelled=choose_targets(test, rows=round(SITE_ROWS * setup.target_share), seed=seed),
        framing=Framing(
            scaler=Scaler.fit(tuple(shards.values()), features), stride_s=reference.stride_s
        ),
    )


def _simulated(seed: int, rows: int, *, shift: float = 0.0, attacks: bool = False) -> Record:
    from sluice.lab.plants.line import LineDesign, simulate  # noqa: PLC0415 - numba loads slowly

    return simulate(
        seed=seed, days=rows / ROWS_PER_DAY, attacks=attacks, site=LineDesign(shift=shift)
    )
