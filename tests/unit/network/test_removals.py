"""A statistic is taken out only of a model that both the store and the log have."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from sluice.errors import SettingError
from sluice.network.coordinator import operations


class ReachedError(Exception):
    """The removal has gone on to the statistics."""


def take_out(monkeypatch: pytest.MonkeyPatch, checkpoint: object, **rounds: object) -> None:
    closed: list[bool] = []
    store = SimpleNamespace(last=lambda **_: checkpoint, close=lambda: closed.append(True))
    monkeypatch.setattr(operations, "CoordinatorStore", lambda _: store)

    def reached(*_: object) -> None:
        raise ReachedError

    monkeypatch.setattr(operations, "statistics_in", reached)
    ledger = SimpleNamespace(rounds=SimpleNamespace(**{"last": 1, "between": True} | rounds))
    site: Any = SimpleNamespace(
        terms=SimpleNamespace(federation="water", grouped=False),
        protocol=lambda: SimpleNamespace(log=SimpleNamespace(ledger=ledger)),
        base=None,
    )
    try:
        operations._take_out(site, "west", at=datetime.now(UTC))
    finally:
        assert closed == [True]


CHECKPOINT = SimpleNamespace(parameters=None)


def test_a_statistic_is_taken_out_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReachedError):
        take_out(monkeypatch, CHECKPOINT)


@pytest.mark.parametrize(
    ("checkpoint", "rounds"),
    [(None, {}), (CHECKPOINT, {"last": 0}), (CHECKPOINT, {"between": False})],
    ids=["a store without a checkpoint", "a log without a round", "a round in progress"],
)
def test_nothing_is_taken_out_of_a_model_that_store_or_log_lacks(
    monkeypatch: pytest.MonkeyPatch, checkpoint: object, rounds: dict[str, object]
) -> None:
    with pytest.raises(SettingError, match="no statistic was collected yet, or a round is in"):
        take_out(monkeypatch, checkpoint, **rounds)
