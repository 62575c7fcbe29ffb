"""A file of trained federations, with which a grid continues on another machine or by other code.

The results folder of a grid ends with its machine; this file is small enough to be committed. It
contains the score of each federation under its digest, which covers the rows of all clients and the
rows it is measured on. The digest does not cover the code. Therefore each score names its maker,
and each maker has its behaviour: what that code gave for a few tiny federations. A score is taken
over only if the present code gives the same.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from sluice.errors import ResultsError
from sluice.files import atomically, read_bounded
from sluice.lab.results.cell import Score
from sluice.lab.results.provenance import Provenance

__all__ = [
    "Behaviour",
    "TrainedFederation",
    "TrainedFederations",
    "difference",
    "load_federations",
    "save_federations",
]

LARGEST = 64 << 20
"""Bytes of the largest file: 30 times the paper's grid."""
CLOSE = 1e-3
"""Figures of equal behaviour differ by less, relatively. Processors round differently."""
NEGLIGIBLE = 1e-6

Parsed = TypeVar("Parsed")
Behaviour = Mapping[str, tuple[float, ...]]
"""Figures of tiny federations by their name; `sluice.lab.trials.probe` computes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedFederation:
    """The score of one federation, and the code that trained it."""

    federation: str  # digest
    layout: str
    rule: str
    score: Score
    made_by: Provenance
    wall_s: float
    ended: float
    works: tuple[str, ...]  # the pieces of work that it is the result of, by id


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedFederations:
    """The content of a file."""

    federations: tuple[TrainedFederation, ...] = ()
    behaviours: Mapping[Provenance, Behaviour]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Maker:
    made_by: Provenance
    behaviour: dict[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    format: Literal["sluice-federations-1"]
    makers: tuple[_Maker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    federation: str
    layout: str
    rule: str
    maker: int  # its place in the head
    wall_s: float
    ended: float
    works: tuple[str, ...]
    score: Score


_HEAD = TypeAdapter(_Head)
_LINE = TypeAdapter(_Line)
FORMAT: Literal["sluice-federations-1"] = "sluice-federations-1"


def load_federations(path: Path) -> TrainedFederations:
    """Read a file; a file that does not exist is empty."""
    if not path.exists():
        return TrainedFederations(behaviours={})
    raw = read_bounded(path, "federations file", largest=LARGEST, error=ResultsError)
    first, *others = raw.splitlines() or [b""]
    head = _parsed(_HEAD, first, path, 1)
    found = []
    for at, text in enumerate(others, start=2):
        line = _parsed(_LINE, text, path, at)
        if not 0 <= line.maker < len(head.makers):
            raise _damaged(path, at, f"maker {line.maker} is not in the first line")
        found.append(
            TrainedFederation(
                federation=line.federation,
                layout=line.layout,
                rule=line.rule,
                score=line.score,
                made_by=head.makers[line.maker].made_by,
                wall_s=line.wall_s,
                ended=line.ended,
                works=line.works,
            )
        )
    return TrainedFederations(
        federations=tuple(found),
        behaviours={maker.made_by: maker.behaviour for maker in head.makers},
    )


def save_federations(path: Path, kept: TrainedFederations) -> None:
    """Write a file: one line per federation in the order of their digests, each once (the first).

    A federation of a maker without a known behaviour is left out: no code could take it over.
    """
    known: dict[str, TrainedFederation] = {}
    for one in kept.federations:
        if one.made_by in kept.behaviours:
            before = known.get(one.federation, one)
            known[one.federation] = replace(before, works=(*before.works, *one.works))
    makers = sorted({one.made_by for one in known.values()}, key=_order)
    head = _Head(
        format=FORMAT,
        makers=tuple(
            _Maker(made_by=maker, behaviour=dict(kept.behaviours[maker])) for maker in makers
        ),
    )
    lines = [_HEAD.dump_json(head)]
    for digest in sorted(known):
        one = known[digest]
        line = _Line(
            federation=digest,
            layout=one.layout,
            rule=one.rule,
            maker=makers.index(one.made_by),
            wall_s=round(one.wall_s, 1),
            ended=round(one.ended),
            works=tuple(sorted(set(one.works))),
            score=one.score,
        )
        lines.append(_LINE.dump_json(line))
    with atomically(path) as draft:
        draft.write_bytes(b"\n".join(lines) + b"\n")


def difference(one: Behaviour, other: Behaviour) -> str | None:
    """Name the first tiny federation that `other` does not give as `one` does; None if equal."""
    for name, figures in one.items():
        there = other.get(name, ())
        if len(there) != len(figures) or not all(map(_close, figures, there)):
            return name
    return None


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=NEGLIGIBLE)


def _order(maker: Provenance) -> tuple[str, ...]:
    return maker.version, maker.commit, maker.code, maker.environment


def _parsed(kind: TypeAdapter[Parsed], text: bytes, path: Path, at: int) -> Parsed:
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _damaged(path, at, first["msg"]) from None


def _damaged(path: Path, at: int, why: str) -> ResultsError:
    return ResultsError(
        f"federations file {path}, line {at} is damaged: {why}; restore the file, or delete it "
        "to train all federations again"
    )
