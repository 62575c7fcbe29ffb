"""What a plant gains over training alone, measured on its own records; nothing is sent.

One model is the last one received from the federation; the other is trained on this plant's rows
only. Both start from the same weights and train for the same number of rounds. Both get their
threshold on one half of clean rows that this plant has not trained on, and are measured on the
other half.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sluice.detector import Autoencoder, Parameters, TrainingSummary, calibrated, initial
from sluice.errors import SettingError
from sluice.federation import InProcess, Train, Trained
from sluice.network.plant.model import SeenModel
from sluice.network.terms import FederationTerms
from sluice.telemetry import Label, Record

__all__ = ["Figures", "Gain", "Own", "measured_gain"]

LEAST_WINDOWS = 200  # which a threshold at the 0.995 quantile needs
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one model on a plant's own records."""

    error: float  # mean score of clean windows; lower is a closer fit
    false_alarms_per_day: float  # stretches of alarms on clean rows
    recall: float | None  # share of attack windows that raise an alarm; None without attacks


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The figures of the plant's own model and of the federation's model."""

    rounds: int  # for which both models were trained
    windows: int  # clean windows measured
    attacked: int  # attack windows measured
    alone: Figures
    federation: Figures


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Own:
    """A plant's own rows: those it trains on, clean ones it does not, and attacks if it has any."""

    plant: str  # the name determines its shuffles, as in the federation
    batch: Record
    clean: Record
    attacks: Record | None = None


def measured_gain(
    terms: FederationTerms, received: SeenModel, own: Own, *, on_round: Callable[[], None]
) -> Gain:
    """Train alone for as many rounds as the federation; measure both models on the same rows."""
    clean, attacks = own.clean, own.attacks
    middle = len(clean) // 2
    halves = clean.rows(0, middle), clean.rows(middle, len(clean))
    windows = terms.framing.windows(halves[1])
    if min(len(windows), len(terms.framing.windows(halves[0]))) < LEAST_WINDOWS:
        raise SettingError(
            f"{len(clean):,} clean rows are too few to compare models on; give at least "
            f"{2 * (LEAST_WINDOWS + terms.window_rows):,} that the plant does not train on"
        )
    alone = _trained_alone(terms, own, rounds=received.round, on_round=on_round)
    figures = [
        _figures(terms, parameters, halves[0], halves[1], attacks)
        for parameters in (alone, received.parameters)
    ]
    attacked = 0 if attacks is None else int(np.sum(_labels(terms, attacks) == Label.ATTACK))
    return Gain(
        rounds=received.round,
        windows=len(windows),
        attacked=attacked,
        alone=figures[0],
        federation=figures[1],
    )


def _trained_alone(
    terms: FederationTerms, own: Own, *, rounds: int, on_round: Callable[[], None]
) -> Parameters:
    name, batch = own.plant, own.batch
    trainer = InProcess(
        batches={name: batch},
        windows={name: terms.framing.windows(batch)},
        descent=terms.descent,
        seed=terms.seed,
    )
    weights = initial(terms.framing.width, seed=terms.seed)
    for number in range(1, rounds + 1):
        request = Train(round=number, parameters=weights)
        reply = trainer.exchange({name: request})[name]
        assert isinstance(reply, Trained)
        weights = (weights + reply.vector).astype(np.float32)
        on_round()
    return weights


def _figures(
    terms: FederationTerms,
    parameters: Parameters,
    first: Record,
    second: Record,
    attacks: Record | None,
) -> Figures:
    training = TrainingSummary(records=(first.name,), windows=0, seed=terms.seed)
    model = Autoencoder(parameters)
    detector = calibrated(model, terms.framing, terms.framing.windows(first), training=training)
    scored = detector.score(second)
    days = len(scored) * terms.stride_s / DAY_S
    recall = None
    if attacks is not None:
        scored_attacks = detector.score(attacks)
        attacked = scored_attacks.labels == Label.ATTACK
        recall = float(np.mean(scored_attacks.alarms[attacked])) if attacked.any() else None
    return Figures(
        error=float(np.mean(scored.scores)),
        false_alarms_per_day=len(scored.stretches()) / days,
        recall=recall,
    )


def _labels(terms: FederationTerms, record: Record) -> np.ndarray:
    return np.asarray(terms.framing.windows(record).labels)
