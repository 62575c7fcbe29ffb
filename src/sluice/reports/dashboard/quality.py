"""How good the shared model is after each round, on records that the coordinator has itself."""

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

__all__ = ["RoundQuality", "Yardstick"]

AT_ONCE = 8
"""Rounds measured for one view; those before them come with the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundQuality:
    """The model after one round."""

    round: int
    error: float  # mean reconstruction error of the clean reference's windows
    threshold: float  # their 99.5th percentile, above which a window alarms
    auc_pr: float | None  # on a labelled record, where one was given
    recall: float | None  # at that threshold


class Yardstick:
    """Measures models on the clean reference, and on a labelled record where there is one."""

    def __init__(self, site: CoordinatorFolder, labelled: Record | None = None) -> None:
        self._site = site
        self._labelled = labelled
        self._known: dict[tuple[int, str], RoundQuality | None] = {}  # by round and model
        self._lock = threading.Lock()

    @property
    def rounds(self) -> int:
        """How many rounds were measured so far."""
        return len(self._known)

    def measured(self, models: Sequence[tuple[int, str]]) -> tuple[RoundQuality, ...]:
        """Return the quality of these rounds' models, as far as it is known or soon told.

        A folder without its reference, a copy for instance, has none to show.
        """
        with self._lock:
            waiting = [pair for pair in reversed(models) if pair not in self._known]
            try:
                for pair in waiting[:AT_ONCE]:
                    self._known[pair] = self._measure(*pair)
            except (SluiceError, OSError):
                return ()
            told = (self._known.get(pair) for pair in models)
            return tuple(quality for quality in told if quality is not None)

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
        held = Autoencoder(parameters)
        clean = held.scores(self._clean)
        threshold = Threshold.from_clean(clean)
        auc_pr, found = None, None
        if self._attacked is not None:
            scores = held.scores(self._attacked)
            told = self._attacked.labels != Label.UNLABELLED
            attack = self._attacked.labels[told] == Label.ATTACK
            auc_pr = average_precision(scores[told], attack)
            found = recall(threshold.alarms(scores[told]), attack)
        return RoundQuality(
            round=round_,
            error=float(np.mean(clean)),
            threshold=threshold.score,
            auc_pr=auc_pr,
            recall=found,
        )

    def _parameters(self, round_: int) -> Parameters | None:
        store = CoordinatorStore(self._site.base, read_only=True)
        try:
            held = store.last(federation=self._site.terms.federation, before=round_ + 1)
        finally:
            store.close()
        return held.parameters if held is not None and held.round == round_ else None
