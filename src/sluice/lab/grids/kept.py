"""Federations kept in a file: taken over before a grid runs, and written when it ends."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sluice.detector import DetectorKind
from sluice.errors import SettingError
from sluice.lab.attacks import UPDATE_ATTACKS
from sluice.lab.grids.work import Work
from sluice.lab.results import (
    Behaviour,
    Provenance,
    ResultStore,
    TrainedFederations,
    difference,
    load_federations,
    save_federations,
    trained_federations,
)
from sluice.lab.trials import BLEND

__all__ = ["KeptFederations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFederations:
    """A file of federations, and those of them that the present code would train the same."""

    path: Path
    usable: TrainedFederations
    now: Provenance
    behaviour: Behaviour  # of the present code

    @classmethod
    def of(
        cls, path: Path, works: Sequence[Work], *, now: Provenance, warn: Callable[[str], None]
    ) -> "KeptFederations":
        """Read a file and compare the behaviour of each maker with that of the present code."""
        _demand_rounds(works)
        kept = load_federations(path)
        behaviour = _behaviour(works)
        differing = {
            maker: name
            for maker, other in kept.behaviours.items()
            if (name := difference(behaviour, other)) is not None
        }
        for maker, name in differing.items():
            lost = sum(one.made_by == maker for one in kept.federations)
            warn(
                f"{lost} federations in {path} are trained again: code {maker.code[:12]} (commit "
                f"{maker.commit[:12]}) gave other figures for the probe {name!r} than this code"
            )
        usable = TrainedFederations(
            federations=tuple(one for one in kept.federations if one.made_by not in differing),
            behaviours={m: b for m, b in kept.behaviours.items() if m not in differing},
        )
        return cls(path=path, usable=usable, now=now, behaviour=behaviour)

    @contextmanager
    def shared_with(self, store: ResultStore) -> Iterator[None]:
        """Let a store take over the federations; write the file when its run ends or is stopped."""
        store.take_over(self.usable.federations)
        try:
            yield
        finally:
            known = (*self.usable.federations, *trained_federations(store))
            behaviours = {**self.usable.behaviours, self.now: self.behaviour}
            kept = TrainedFederations(federations=known, behaviours=behaviours)
            save_federations(self.path, kept)


def _behaviour(works: Sequence[Work]) -> Behaviour:
    from sluice.lab.trials import behaviour  # noqa: PLC0415 - jax takes a second

    attacks = {work.attack for work in works if work.attack is not None}
    return behaviour(
        {work.rule for work in works}, {a for a in attacks if a == BLEND or a in UPDATE_ATTACKS}
    )


def _demand_rounds(works: Sequence[Work]) -> None:
    for work in works:
        detector = work.layout.training.detector
        if detector != DetectorKind.AUTOENCODER:
            raise SettingError(
                f"a federations file keeps autoencoders, which take minutes to train; this grid "
                f"has the detector {detector!r}, which takes seconds: leave the file out"
            )
