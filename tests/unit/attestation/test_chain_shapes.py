"""Chains, sealed statistics and totals of a proof: what the second verifier reads, and no more."""

from pathlib import Path

import pytest

from sluice.attestation.log.heads import Head, refuse_fork
from sluice.attestation.systems.full import SealedStatistic
from sluice.attestation.systems.full.chaining import Cut, cut_of
from sluice.attestation.systems.full.reference.chain import (
    MAGIC,
    chain_plan,
    read_chain,
    segment_root,
)
from sluice.attestation.systems.full.reference.encoding import _opened, _Reader
from sluice.attestation.systems.full.reference.field import ORDER
from sluice.attestation.systems.full.reference.gadgets.moments import demand_sealed, split_totals
from sluice.attestation.systems.full.reference.seams import SEAM_REPETITIONS
from sluice.attestation.systems.full.reference.statement import StatedStatistic, SummedRegister
from sluice.attestation.systems.sampled import Sampling
from sluice.attestation.systems.sampled.keys import VERIFYING, make_sampled
from sluice.errors import SettingError, VerificationError

from .full_plant import Wiring, policy_of, rules_of
from .hidden_federation import ROWS, SETTINGS

LAGS = SETTINGS.lags


def refused(why: str) -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=f"step 5.7: .*{why}")


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(8, "little") for value in values)


def test_a_chain_has_rows_for_a_whole_segment_of_a_usual_size() -> None:
    assert [len(part) for part in chain_plan(256, 8)] == [256, 256]
    assert len(chain_plan(1 << 17, 17)) == 2
    for rows, log_rows in ((255, 8), (1 << 17, 7), (1 << 18, 18), (100, 7)):
        with refused(f"no chain has {rows} rows"):
            chain_plan(rows, log_rows)


def test_a_chain_is_read_only_in_its_one_shape() -> None:
    seam = [ORDER - 1] * SEAM_REPETITIONS
    begins = MAGIC + words(8)
    found = read_chain(begins + words(*seam, 2, 3) + b"abcde", 2)
    assert (found.values, found.parts) == ([seam], [b"ab", b"cde"])
    for lie in (
        begins + words(*seam, 2, 3) + b"abcd",
        begins + words(*seam, 2, 3) + b"abcdef",
        begins + words(*seam[:-1], ORDER, 2, 3) + b"abcde",
        begins + words(*[ORDER] * SEAM_REPETITIONS, 2, 3) + b"abcde",
    ):
        with refused("the shape of this batch"):
            read_chain(lie, 2)


def test_a_segment_holds_a_whole_root() -> None:
    root = bytes(range(32))
    for rest in (b"", b"rest"):
        assert segment_root(b"\1" + root + rest) == root
    for lie in (b"", b"\1", b"\1" + root[:-1], b"\0" + root, b"\2" + root):
        with refused("has no root"):
            segment_root(lie)


def test_a_batch_may_need_exactly_the_memory_that_is_allowed() -> None:
    least = min(Cut(log_rows=log_rows).memory(5_000, 10) for log_rows in range(9, 13))
    assert cut_of(5_000, 10, memory=least).memory(5_000, 10) == least
    with pytest.raises(SettingError, match="allow more memory"):
        cut_of(5_000, 10, memory=least - 1)


def test_a_proof_of_hidden_sums_begins_with_canonical_totals() -> None:
    assert split_totals(words(1, 2, ORDER - 1)) == ([1, 2, ORDER - 1], b"")
    assert split_totals(words(1, 2, 3) + b"rest" * 9) == ([1, 2, 3], b"rest" * 9)
    for lie in (words(1, 2, ORDER), words(ORDER, 1, 2), words(1, 2), words(1, 2, 3)[:-1], b""):
        with refused("canonical totals"):
            split_totals(lie)


def ext_row(width: int) -> bytes:
    return bytes([width]) + bytes(24 * width)


def test_fixed_columns_are_opened_on_rows_of_one_width() -> None:
    begins, ends = ext_row(0) + b"\0", b"\0\0"  # no row, no next row; no quotients, no random row
    there, none = b"\1", b"\0"
    for fixed in (none + none, there + ext_row(2) + none, there + ext_row(2) + there + ext_row(2)):
        _opened(_Reader(begins + fixed + ends))
    for fixed, why in (
        (none + there + ext_row(2), "opened on the next row only"),
        (there + ext_row(0) + none, "of different widths"),
        (there + ext_row(2) + there + ext_row(1), "of different widths"),
    ):
        with refused(why):
            _opened(_Reader(begins + fixed + ends))


def test_keys_that_one_party_made_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / VERIFYING).touch()
    wiring = Wiring()
    with pytest.raises(SettingError, match="holds keys already"):
        make_sampled(tmp_path, rules_of(wiring), policy_of(wiring), Sampling(), rows_max=100)


def stated() -> StatedStatistic:
    return StatedStatistic(
        settings=SETTINGS.digest,
        lags=LAGS,
        channels=[SummedRegister(register=at) for at in range(3)],
    )


def sealed(rows: int = ROWS) -> SealedStatistic:
    return SealedStatistic(settings=SETTINGS, rows=rows, coordinator=bytes(32), helper=bytes(32))


def test_the_second_verifier_takes_a_sealed_statistic_of_these_rows_only() -> None:
    content = sealed().canonical()
    demand_sealed(stated(), content, ROWS)
    for length in (len(content) - 1, len(content) + 1):
        with refused("the statistic has"):
            demand_sealed(stated(), content.ljust(length, b"0")[:length], ROWS)
    for rows in (ROWS - 1, LAGS - 1):
        with refused("is not that of"):
            demand_sealed(stated(), content, rows)
    with refused("is not that of"):
        demand_sealed(stated(), b"x" + content[1:], ROWS)
    nothing = content[:48] + words(0, 0, LAGS) + content[72:]  # a header that says so
    with refused(f"is not that of {LAGS - 1} rows"):
        demand_sealed(stated(), nothing, LAGS - 1)


def test_a_sealed_statistic_has_rows_and_one_encoding() -> None:
    assert len(sealed(LAGS).canonical()) == len(sealed().canonical()) == 136
    with pytest.raises(SettingError, match=f"{LAGS - 1} rows have no statistic"):
        sealed(LAGS - 1).canonical()
    content = sealed().canonical()
    assert SealedStatistic.from_canonical(content, SETTINGS, rows=ROWS) == sealed()
    for lie in (content[:-1], content + b"0"):
        with pytest.raises(SettingError, match="a sealed statistic has 136 bytes"):
            SealedStatistic.from_canonical(lie, SETTINGS, rows=ROWS)
    with pytest.raises(SettingError, match="is not that of 41 rows"):
        SealedStatistic.from_canonical(content, SETTINGS, rows=ROWS + 1)


def test_heads_are_of_one_federation_and_part_only_at_one_length() -> None:
    head = Head(federation="water", signer="north", size=2, last="1" * 64)
    other = Head(federation="water", signer="south", size=2, last="2" * 64)
    refuse_fork(head, head)
    refuse_fork(head, Head(federation="water", signer="south", size=3, last="2" * 64))
    with pytest.raises(VerificationError, match="is forked: its entry 1"):
        refuse_fork(head, other)
    with pytest.raises(VerificationError, match="of two federations, 'water' and 'power'"):
        refuse_fork(head, Head(federation="power", signer="north", size=2, last="1" * 64))
