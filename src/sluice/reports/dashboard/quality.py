"""The quality of the shared model after each round, on the coordinator's own records."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sluice.detector import Autoencoder, Parameters, Threshold
from sluice.errors import SluiceError
from sluice.evaluation import average_precision, recall
from sluice.network import TrainingRows, read_document
from sluice.network.coordinator import REFERENCE, CoordinatorFolder, CoordinatorStore
from sluice.network.wire import model_hash
from sluice.telemetry import Label, Record, Windows

__all__ = ["ModelEvaluator", "RoundQuality"]

AT_ONCE = 8
"""Rounds measured for one view, the latest first; earlier ones are measured by later views."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundQuality:
    """The model after one round."""

    round: int
    error: float  # mean reconstruction error of the clean reference's windows
    threshold: float  # their 99.5th percentile, above which a window raises an alarm
    auc_pr: float | None  # on a labelled record, if one was given
    recall: float | None  # at that threshold


class ModelEvaluator:
    """Measures models on the clean reference, and on a labelled record if there is one."""

    def __init__(self, site: CoordinatorFolder, labelled: Record | None = None) -> None:
        self._site = site
        self._labelled = labelled
        self._known: dict[tuple[int, str], RoundQuality | None] = {}  # by round and model
        self._lock = threading.Lock()

    @property
    def rounds(self) -> int:
        """Number of rounds measured so far."""
        return len(self._known)

    def measured(self, models: Sequence[tuple[int, str]]) -> tuple[RoundQuality, ...]:
        """Return the quality of these rounds' models, as far as they are measured.

        A folder without its reference, for example a copy, returns nothing.
        """
        with self._lock:
            waiting = [pair for pair in reversed(models) if pair not in self._known]
            try:
                for pair in waiting[:AT_ONCE]:
                    self._known[pair] = self._measure(*pair)
            except (SluiceError, OSError):
                return ()
            qualities = (self._known.get(pair) for pair in models)
            return tuple(quality for quality in qualities if quality is not None)

    @cached_property
    def _clean(self) -> Windows:
        share = read_document(TrainingRows, self._site.folder / REFERENCE)
        return self._site.terms.framing.windows(share.read())

    @cached_property
    def _attacked(self) -> Windows | None:
        if self._labelled is None:
            return None
        return self._site.terms.framing.windows(self._labelled)

    def _measure(self, round_: int, model: str) -> RoundQuality | None:
        parameters = self._parameters(round_)
        if parameters is None or model_hash(parameters) != model:
            return None  # a round that was given up
        autoencoder = Autoencoder(parameters)
        clean = autoencoder.scores(self._clean)
        threshold = Threshold.from_clean(clean)
        auc_pr, attack_recall = None, None
        if self._attacked is not None:
            scores = autoencoder.scores(self._attacked)
            labelled = self._attacked.labels != Label.UNLABELLED
            attack = self._attacked.labels[labelled] == Label.ATTACK
            auc_pr = average_precision(scores[labelled], attack)
            attack_recall = recall(threshold.alarms(scores[labelled]), attack)
        return RoundQuality(
            round=round_,
            error=float(np.mean(clean)),
            threshold=threshold.score,
            auc_pr=auc_pr,
            recall=attack_recall,
        )

    def _parameters(self, round_: int) -> Parameters | None:
        store = CoordinatorStore(self._site.base, read_only=True)
        try:
            checkpoint = store.last(federation=self._site.terms.federation, before=round_ + 1)
        finally:
            store.close()
        if checkpoint is None or checkpoint.round != round_:
            return None
        return checkpoint.parameters
