"""Files of trained federations: what they keep, and when code behaves the same."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.errors import ResultsError
from sluice.lab.results.federations import (
    TrainedFederation,
    TrainedFederations,
    difference,
    load_federations,
    save_federations,
)
from tests.unit.lab.results.test_store import MAKER, SCORE

BEHAVIOUR = {"fedavg": (0.25, 1.0)}
OTHER = replace(MAKER, code="other code")


def trained(digest: str, *, code: str = MAKER.code) -> TrainedFederation:
    return TrainedFederation(
        federation=digest,
        layout="layout",
        rule="fedavg",
        score=SCORE,
        made_by=replace(MAKER, code=code),
        wall_s=20.5,
        ended=1_700_000_000.0,
        works=("w1",),
    )


def test_a_file_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    kept = load_federations(tmp_path / "none.jsonl")
    assert (kept.federations, kept.behaviours) == ((), {})


def test_scores_are_read_back_to_the_last_digit_with_their_makers(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    kept = TrainedFederations(
        federations=(trained("b"), trained("a", code="other code")),
        behaviours={MAKER: BEHAVIOUR, OTHER: {"fedavg": (0.5,)}},
    )
    save_federations(path, kept)
    again = load_federations(path)
    assert again.federations == (trained("a", code="other code"), trained("b"))
    assert again.behaviours == kept.behaviours


def test_the_same_federations_in_another_order_give_the_same_bytes(tmp_path: Path) -> None:
    one, other = trained("a"), trained("b", code="other code")
    behaviours = {MAKER: BEHAVIOUR, OTHER: BEHAVIOUR}
    for name, order in (("1", (one, other)), ("2", (other, one, other))):
        save_federations(
            tmp_path / name, TrainedFederations(federations=order, behaviours=behaviours)
        )
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_a_maker_whose_behaviour_is_unknown_leaves_nothing(tmp_path: Path) -> None:
    kept = TrainedFederations(federations=(trained("a"),), behaviours={OTHER: BEHAVIOUR})
    save_federations(tmp_path / "f.jsonl", kept)
    assert load_federations(tmp_path / "f.jsonl").federations == ()


def test_a_federation_is_kept_once_with_every_work_that_needs_it(tmp_path: Path) -> None:
    again = replace(trained("a", code="other code"), works=("w2", "w1"))
    kept = TrainedFederations(
        federations=(trained("a"), again), behaviours={MAKER: BEHAVIOUR, OTHER: BEHAVIOUR}
    )
    save_federations(tmp_path / "f.jsonl", kept)
    (one,) = load_federations(tmp_path / "f.jsonl").federations
    assert (one.made_by, one.works) == (MAKER, ("w1", "w2"))


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (b"", 1, "Invalid JSON"),
        (b'{"format":"sluice-federations-2","makers":[]}', 1, "sluice-federations-1"),
        (b"HEAD\n{}", 2, "Field required"),
        (b"HEAD\nLINE\n\xff", 3, "Invalid JSON"),
        (b"HEAD\n" + b"MAKER", 2, "maker 7 is not in the first line"),
    ],
)
def test_a_damaged_file_is_refused_by_its_line(
    text: bytes, line: int, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.jsonl"
    save_federations(
        path, TrainedFederations(federations=(trained("a"),), behaviours={MAKER: BEHAVIOUR})
    )
    head, one = path.read_bytes().splitlines()
    text = text.replace(b"HEAD", head).replace(b"LINE", one)
    path.write_bytes(text.replace(b"MAKER", one.replace(b'"maker":0', b'"maker":7')))
    with pytest.raises(ResultsError, match=rf"f.jsonl, line {line} is damaged: .*{why}.*restore"):
        load_federations(path)


def test_behaviours_differ_by_a_figure_or_by_a_missing_probe() -> None:
    now = {"fedavg": (0.25, 1.0), "krum": (0.5, 0.0)}
    assert difference(now, {**now, "median": (9.0,)}) is None
    assert difference(now, {**now, "krum": (0.5001, 1e-9)}) is None  # as processors round
    assert difference(now, {**now, "krum": (0.51, 0.0)}) == "krum"
    assert difference(now, {**now, "krum": (0.5,)}) == "krum"
    assert difference(now, {"krum": now["krum"]}) == "fedavg"
