"""The last model a plant received from the federation, and the detector that it makes of it."""

from dataclasses import dataclass
from pathlib import Path

from sluice.attestation.log import Ledger
from sluice.detector import Autoencoder, Detector, Parameters, TrainingSummary, calibrated
from sluice.files import atomically
from sluice.network.terms import FederationTerms
from sluice.network.wire import model_hash, read_parameters, write_parameters
from sluice.telemetry import Record

__all__ = ["SeenModel", "keep_model", "last_model", "shared_detector"]

FILE = "model.weights"
ROUND_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeenModel:
    """The weights, and the number of rounds for which they were trained."""

    round: int
    parameters: Parameters


def keep_model(folder: Path, parameters: Parameters, *, round_: int) -> None:
    """Save the weights with which a round was opened."""
    with atomically(folder / FILE, private=True) as draft:
        draft.write_bytes(round_.to_bytes(ROUND_BYTES, "big") + write_parameters(parameters))


def last_model(folder: Path, *, count: int) -> SeenModel | None:
    """Return the last model received; None before the first round is done."""
    path = folder / FILE
    if not path.exists():
        return None
    raw = path.read_bytes()
    round_ = int.from_bytes(raw[:ROUND_BYTES], "big")
    if round_ == 0:
        return None  # the initial weights, equal for all plants
    return SeenModel(round=round_, parameters=read_parameters(raw[ROUND_BYTES:], count=count))


def shared_detector(
    terms: FederationTerms, received: SeenModel, ledger: Ledger, clean: Record
) -> Detector:
    """Return the federation's model as a detector with a threshold from a plant's own clean rows.

    The plant must not have trained on these rows.
    """
    training = TrainingSummary(
        records=(),  # no plant knows the others' records
        windows=0,
        seed=terms.seed,
        clients=len(ledger.rounds.members),
        rounds=received.round,
        rule=terms.rule,
        descent=terms.descent,
        federation=terms.federation,
        model=model_hash(received.parameters),
    )
    windows = terms.framing.windows(clean)
    return calibrated(Autoencoder(received.parameters), terms.framing, windows, training=training)
