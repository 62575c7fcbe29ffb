from .budgets import (
    LEAST_VIOLATIONS,
    Exclusion,
    clean_share,
    exclusion,
    silent_budgets,
    violation_budget,
)
from .guarantee import ROUNDS, TRIES, Guarantee, guarantee, pass_probability
from .keys import SINGLE_PARTY, VERIFYING, make_sampled, open_sampled
from .measurement import SampledVerdicts, measure_sampled
from .snarkjs import export, write_export
from .system import SAMPLED_ROWS, Sampled, SampledClaim, Sampling, poseidon, statement_of

__all__ = [
    "LEAST_VIOLATIONS",
    "ROUNDS",
    "SAMPLED_ROWS",
    "SINGLE_PARTY",
    "TRIES",
    "VERIFYING",
    "Exclusion",
    "Guarantee",
    "Sampled",
    "SampledClaim",
    "SampledVerdicts",
    "Sampling",
    "clean_share",
    "exclusion",
    "export",
    "guarantee",
    "make_sampled",
    "measure_sampled",
    "open_sampled",
    "pass_probability",
    "poseidon",
    "silent_budgets",
    "statement_of",
    "violation_budget",
    "write_export",
]
