"""The context: one encoding, pinned, and no two contexts alike."""

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.attestation.messages.context import Context, Interval
from sluice.attestation.messages.messages import RegistrationTerms
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.attestation.packing import digest, packed
from sluice.errors import SettingError

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "context.json").read_text(encoding="utf-8")
)


def context_from(inputs: dict[str, Any]) -> Context:
    return Context(
        protocol=inputs["protocol"],
        system=inputs["system"],
        federation=inputs["federation"],
        client_key=bytes.fromhex(inputs["client_key"]),
        rules=bytes.fromhex(inputs["rules"]),
        policy=bytes.fromhex(inputs["policy"]),
        circuit=bytes.fromhex(inputs["circuit"]),
        parameters=tuple((name, value) for name, value in inputs["parameters"]),
        rows_max=inputs["rows_max"],
        commitment=bytes.fromhex(inputs["commitment"]),
        rows=inputs["rows"],
        interval=Interval(start=inputs["start"], end=inputs["end"]),
        nonce=bytes.fromhex(inputs["nonce"]),
    )


def by_hand(inputs: dict[str, Any]) -> str:
    """The same, from the words of docs/protocol.md and with nothing of the package."""

    def listed(*parts: bytes) -> bytes:
        return len(parts).to_bytes(8, "big") + b"".join(
            len(part).to_bytes(8, "big") + part for part in parts
        )

    named = [listed(name.encode(), str(value).encode()) for name, value in inputs["parameters"]]
    return hashlib.sha256(
        listed(
            b"sluice attestation v1",
            b"context",
            inputs["protocol"].to_bytes(8, "big"),
            inputs["system"].encode(),
            inputs["federation"].encode(),
            bytes.fromhex(inputs["client_key"]),
            bytes.fromhex(inputs["rules"]),
            bytes.fromhex(inputs["policy"]),
            bytes.fromhex(inputs["circuit"]),
            listed(*named, inputs["rows_max"].to_bytes(8, "big")),
            bytes.fromhex(inputs["commitment"]),
            inputs["rows"].to_bytes(8, "big"),
            inputs["start"].encode(),
            inputs["end"].encode(),
            bytes.fromhex(inputs["nonce"]),
        )
    ).hexdigest()


@pytest.mark.parametrize("vector", VECTORS["contexts"], ids=lambda vector: vector["what"])
def test_digests_are_the_pinned_ones(vector: dict[str, Any]) -> None:
    assert context_from(vector).digest().hex() == vector["digest"] == by_hand(vector)


def test_the_vectors_differ_in_one_thing_each_and_all_digests_differ() -> None:
    digests = [vector["digest"] for vector in VECTORS["contexts"]]
    assert len(set(digests)) == len(digests) >= 14


def test_every_field_is_in_the_digest() -> None:
    base = context_from(VECTORS["contexts"][0])
    others: dict[str, object] = {
        "system": "fuller",
        "federation": "other",
        "client_key": b"k" * 32,
        "rules": b"r" * 32,
        "policy": b"p" * 32,
        "circuit": b"c" * 32,
        "parameters": (("queries", 1),),
        "rows_max": 1,
        "commitment": b"x" * 32,
        "rows": 1,
        "interval": Interval(start="2020-01-01T00:00:00.000000", end="2020-01-02T00:00:00.000000"),
        "nonce": b"n" * 32,
        "statistic": b"s" * 32,
        "protocol": 2,
    }
    assert set(others) == {item.name for item in fields(Context)}
    for name, other in others.items():
        changed: Context = replace(base, **{name: other})  # type: ignore[arg-type]
        assert changed.digest() != base.digest(), name


parts = st.lists(st.binary(max_size=20), max_size=5)


@given(parts, parts)
def test_packing_can_be_read_in_one_way_only(one: list[bytes], other: list[bytes]) -> None:
    assert (packed(*one) == packed(*other)) == (one == other)


def test_shifting_bytes_between_fields_is_seen() -> None:
    assert digest("t", b"ab", b"c") != digest("t", b"a", b"bc")
    assert digest("t", b"ab", b"") != digest("t", b"ab")
    assert digest("ta", b"b") != digest("t", b"ab")


def test_intervals_overlap_when_they_share_a_moment() -> None:
    def day(first: int, last: int) -> Interval:
        return Interval(
            start=f"2026-04-{first:02}T00:00:00.000000", end=f"2026-04-{last:02}T00:00:00.000000"
        )

    assert day(1, 3).overlaps(day(3, 4))
    assert day(3, 4).overlaps(day(1, 3))
    assert day(1, 9).overlaps(day(3, 4))
    assert not day(1, 2).overlaps(day(3, 4))
    assert not day(3, 4).overlaps(day(1, 2))
    assert day(1, 2).microseconds == 86_400_000_000
    assert day(2, 2).microseconds == 0  # one row
    with pytest.raises(ValueError, match="must not end before it starts"):
        day(3, 1)


def test_more_rows_than_fit_into_their_interval_are_refused() -> None:
    terms = RegistrationTerms(rows_min=10, rows_max=11, stride_us=4, overlaps=False)

    def lasting(microseconds: int) -> Interval:
        return Interval(
            start="2026-04-01T00:00:00.000000", end=f"2026-04-01T00:00:00.{microseconds:06}"
        )

    assert terms.objection(10, lasting(18)) == ""  # nine steps, each half a stride
    assert "10 rows of 4e-06 s each do not fit" in terms.objection(10, lasting(17))
    assert terms.objection(11, lasting(20)) == ""
    assert "it has 9 rows; the policy takes 10 to 11" in terms.objection(9, lasting(100))
    assert "it has 12 rows; the policy takes 10 to 11" in terms.objection(12, lasting(100))


def test_a_statistic_covers_exactly_its_least_rows_and_time() -> None:
    limits = StatisticLimits(rows_min=10, span_min_s=60)
    minute = Interval(start="2026-04-01T00:00:00.000000", end="2026-04-01T00:01:00.000000")
    assert limits.objection(10, minute) == ""
    assert limits.objection(9, minute) == "a statistic covers at least 10 rows; the batch has 9"
    shorter = replace(minute, end="2026-04-01T00:00:59.999999")
    assert "a statistic covers at least 60 s" in limits.objection(10, shorter)


def test_the_least_limits_of_a_statistic_are_one_row_and_no_time() -> None:
    moment = Interval(start="2026-04-01T00:00:00.000000", end="2026-04-01T00:00:00.000000")
    assert StatisticLimits(rows_min=1, span_min_s=0).objection(1, moment) == ""
    for rows, seconds in ((0, 0), (1, -1)):
        with pytest.raises(SettingError, match="at least 1 row and 0 s"):
            StatisticLimits(rows_min=rows, span_min_s=seconds)
