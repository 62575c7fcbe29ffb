"""Cells as a report reads them, without the store and the federations behind them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from sluice.evaluation import Ballots, VoteCertificate, certify
from sluice.lab.reports.tables import ReportTable, Value
from sluice.lab.results.cell import Asked, CellResult, Score
from sluice.lab.results.reading import GridState, StoredCell
from sluice.telemetry import Label

MALICIOUS = ("plant-1", "plant-2")
CLIENTS = ("plant-0", *MALICIOUS)
ASKED = Asked(
    study="removal",
    record="swat",
    stand_in=None,
    clients=3,
    liars=2,
    rule="fedavg",
    attack="replay",
    mode="clean",
    invariants="paper-wide",
    seed=0,
)
SCORE = Score(
    targeted_recall=0.5,
    untargeted_recall=None,
    targeted_auc_pr=None,
    precision=None,
    recall=0.3,
    f1=0.4,
    auc_pr=0.5,
    oracle_best_f1=0.6,
    detected_attacks=2.0,
    attacks=3,
    median_delay_s=None,
    false_alarms_per_day=None,
    etaf1=0.1,
    influence={},
    passed={},
)


def done(
    mode: str,
    seed: int = 0,
    *,
    asked: Asked = ASKED,
    score: Score = SCORE,
    refused: Sequence[str] = (),
) -> StoredCell:
    """A finished cell; in mode honest-only the malicious clients are not invited."""
    asked = replace(asked, mode=mode, seed=seed)
    invited = [c for c in CLIENTS if mode != "honest-only" or c not in MALICIOUS]
    result = CellResult(
        mode=mode,
        attack=asked.attack,
        rule=asked.rule,
        seed=seed,
        admitted=tuple(client for client in invited if client not in refused),
        refused=dict.fromkeys(refused, ("the level stands still",)),
        liars=MALICIOUS,
        score=score,
    )
    return _stored(asked, GridState.DONE, result=result)


def recalling(
    mode: str,
    recalls: Iterable[float | None],
    *,
    asked: Asked = ASKED,
    refused: Sequence[str] = (),
) -> list[StoredCell]:
    """One finished cell for each targeted recall, of seeds 0, 1, ..."""
    return [
        done(
            mode,
            seed,
            asked=asked,
            refused=refused,
            score=replace(SCORE, targeted_recall=recall),
        )
        for seed, recall in enumerate(recalls)
    ]


def failed(mode: str, seed: int, reason: str) -> StoredCell:
    return _stored(replace(ASKED, mode=mode, seed=seed), GridState.FAILED, reason=reason)


def waiting(mode: str, seed: int) -> StoredCell:
    return _stored(replace(ASKED, mode=mode, seed=seed), GridState.WAITING)


def column(table: ReportTable | None, name: str, *, nth: int = 0) -> list[Value]:
    """The values below the nth column of a name."""
    assert table is not None
    at = [at for at, column in enumerate(table.columns) if column.name == name][nth]
    return [row[at] for row in table.rows]


def _stored(
    asked: Asked, state: GridState, *, result: CellResult | None = None, reason: str | None = None
) -> StoredCell:
    return StoredCell(
        asked=asked,
        work=str(asked),
        settings="{}",
        state=state,
        reason=reason,
        result=result,
        federation=str(asked) if result else None,
        made_by=None,
        attempts=1,
        recalled=None,
        wall_s=None,
        ended=None,
        trained_by=None,
        trained_s=None,
        trained_at=None,
    )


def a_certificate() -> VoteCertificate:
    """Return the certificate of three plants on a short record."""
    labels = np.zeros(40, np.int8)
    labels[10:20] = Label.ATTACK
    votes = np.stack([labels == Label.ATTACK] * 3)
    votes[0, 30] = True
    ballots = Ballots(
        members=("north", "south", "west"),
        voters=(frozenset({"north"}), frozenset({"south"}), frozenset({"west"})),
        votes=votes,
        needed=2,
        labels=labels,
        last_rows=np.arange(40),
        row_labels=labels,
        stride_s=60.0,
    )
    return certify(ballots, malicious=1)
