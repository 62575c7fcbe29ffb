"""The tail that a plant lends with its statistic, in the token by which it pledges it.

The plant signs the token and the log keeps it, so a coordinator can neither change nor drop it.
"""

from sluice.attestation.messages import Token
from sluice.attestation.systems import Circuit
from sluice.detector import LentTail, cross_fitted_tail
from sluice.errors import SettingError, VerificationError
from sluice.network.statistics import plant_statistic
from sluice.network.terms import FederationTerms
from sluice.telemetry import Record

__all__ = ["OTHER_SUMS", "lent_tail", "plant_tail"]

OTHER_SUMS = "6.7"
"""The step of a statistic of other or untied channels, or with sums that no readings give; also of
a lent tail that cannot be."""


def lent_tail(token: Token) -> LentTail | None:
    """Return the tail that a plant lends with its pledge; refuse one that cannot be."""
    if token.tail is None:
        return None
    try:
        return LentTail.read(bytes.fromhex(token.tail))
    except SettingError as error:
        raise VerificationError(OTHER_SUMS, f"the tail of {token.client!r}: {error}") from None


def plant_tail(batch: Record, terms: FederationTerms, circuit: Circuit) -> LentTail:
    """Return how far clean scores of a plant's own detector rise above their median.

    Raises if the batch is too short for a tail.
    """
    framing = terms.framing_on(batch.names)
    return cross_fitted_tail(batch, framing, lambda rows: plant_statistic(rows, terms, circuit))
