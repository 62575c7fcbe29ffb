"""The states of plants and rounds in words that an operator reads.

A state says what the log and the store show, not what is hoped for: a plant is in good order only
if its update is in the last round's model, or in the round in progress.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from sluice.attestation.log import Ledger
from sluice.attestation.protocol import step_in_words
from sluice.network.coordinator.store import SHADOW, Member

__all__ = ["PlantState", "PlantWord", "plant_state", "round_in_words", "round_progress"]

SILENT_STEP = "6"


class PlantWord(StrEnum):
    """One word for the state of a plant."""

    WAITING = "waiting"
    ATTESTED = "attested"
    TRAINED = "trained"
    SILENT = "silent"
    LEFT_OUT = "left out"
    SUSPENDED = "suspended"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantState:
    """The state of a plant: a word, and the rest of the sentence."""

    word: PlantWord
    detail: str
    takes_part: bool = False  # nothing that is known keeps it out of the current or the next round

    @property
    def sentence(self) -> str:
        """The state as one text."""
        return f"{self.word.value}: {self.detail}" if self.detail else self.word.value


def plant_state(member: Member, ledger: Ledger) -> PlantState:
    """Return the state of a plant, from its row in the store and from the log."""
    if member.removed:
        return PlantState(word=PlantWord.REMOVED, detail="by an operator")
    if member.suspended:
        detail = f"it was absent in {member.absences} recent rounds"
        return PlantState(word=PlantWord.SUSPENDED, detail=detail)
    if member.shared is not None and member.shared == member.attestation:
        detail = "its statistic is in the model"
        return _excused(PlantState(word=PlantWord.TRAINED, detail=detail, takes_part=True), member)
    step = ledger.rounds.excluded.get(member.name)
    if member.attestation is None:
        return _unattested(member, step, round_=ledger.rounds.last)
    if step is not None:
        return _excluded(step, round_=ledger.rounds.last)
    return _excused(_in_round(member.name, ledger), member)


def _excused(state: PlantState, member: Member) -> PlantState:
    """Return the state with the reason for which the plant needs no proof, if it has one."""
    if member.excuse is None:
        return state
    how = (
        "in shadow: would have been refused at step 4"
        if member.excuse == SHADOW
        else f"by waiver {member.excuse[:12]}, without a proof"
    )
    return replace(state, detail=f"{state.detail} ({how})")


def _unattested(member: Member, step: str | None, *, round_: int) -> PlantState:
    failed = member.step or step
    if failed is None:
        return PlantState(word=PlantWord.WAITING, detail="its first batch has not arrived")
    return _excluded(failed, round_=round_ if step else None)


def _excluded(step: str, *, round_: int | None) -> PlantState:
    of = f"of round {round_} " if round_ else ""
    word = PlantWord.SILENT if step == SILENT_STEP else PlantWord.LEFT_OUT
    if word is PlantWord.SILENT:
        return PlantState(word=word, detail=f"in round {round_} {step_in_words(step)}")
    return PlantState(word=word, detail=f"{of}because {step_in_words(step)} (step {step})")


def _in_round(name: str, ledger: Ledger) -> PlantState:
    """Return the state of an attested plant that the last round did not leave out."""
    rounds = ledger.rounds
    standing, last = rounds.standing, rounds.last
    if standing is None:
        word, detail = PlantWord.ATTESTED, "it waits for the first round"
    elif standing.aggregated and name in rounds.members:
        word, detail = PlantWord.TRAINED, f"in round {last}"
    elif standing.ended:
        word, detail = PlantWord.ATTESTED, "it waits for the next round"
    elif name in standing.revealed:
        word, detail = PlantWord.TRAINED, f"its update of round {last} is there"
    elif rounds.token(last, name) is not None:
        word, detail = PlantWord.TRAINED, f"its update of round {last} is pledged"
    else:
        word, detail = PlantWord.WAITING, f"its token of round {last} has not arrived"
    return PlantState(word=word, detail=detail, takes_part=True)


def round_progress(ledger: Ledger) -> int:
    """Return which of the agreed rounds runs, or was the last to end; 0 before the first.

    Rounds that were given up have a number in the log but do not count, so this is not the log's
    number.
    """
    return ledger.rounds.counted + (0 if ledger.rounds.between else 1)


def round_in_words(ledger: Ledger, *, rounds: int) -> str:
    """Return the last round in one line: who was aggregated, and why others were left out."""
    last, progress = ledger.rounds.last, round_progress(ledger)
    number = f" (number {last} in the log)" if last != progress else ""
    members = ", ".join(ledger.rounds.members) or "none, so the model is unchanged"
    if ledger.opened.statistic is not None:
        line = f"round {last}: took in the statistics of {members}"
    else:
        line = f"round {progress} of {rounds}{number}: aggregated {members}"
    left_out = "; ".join(
        f"{client} because {step_in_words(step)} (step {step})"
        for client, step in sorted(ledger.rounds.excluded.items())
    )
    return f"{line}. Left out: {left_out}" if left_out else line
