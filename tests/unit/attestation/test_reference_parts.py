"""The parts of the second verifier, one by one: fields, hashes, trees, encoding, statements."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from sluice import _attest
from sluice.admission.policy import PaperPolicy
from sluice.attestation.systems.full.reference import public as publics
from sluice.attestation.systems.full.reference.again import verify_again
from sluice.attestation.systems.full.reference.circuit import ReferenceCircuit
from sluice.attestation.systems.full.reference.columns import (
    ColumnPlan,
    Coming,
    Real,
    Schedule,
    spread_digits,
    spread_weights,
)
from sluice.attestation.systems.full.reference.encoding import _Reader, read_proof
from sluice.attestation.systems.full.reference.field import (
    GENERATOR,
    ORDER,
    Ext,
    inverses,
    reverse_bits,
    root_of_unity,
)
from sluice.attestation.systems.full.reference.fri import fold_schedule
from sluice.attestation.systems.full.reference.gadgets.channels import own_bound
from sluice.attestation.systems.full.reference.gadgets.digest import BEGINNING, ENDING, PARTIAL
from sluice.attestation.systems.full.reference.gadgets.liveness import BlockEnd
from sluice.attestation.systems.full.reference.gadgets.spectra import SpectrumEnd
from sluice.attestation.systems.full.reference.gadgets.windows import Anchor
from sluice.attestation.systems.full.reference.hashes import blake3, blake3_stream, keccak256
from sluice.attestation.systems.full.reference.merkle import leaf_hash, verify_openings
from sluice.attestation.systems.full.reference.parameters import BASE, NAMED, largest_proof
from sluice.attestation.systems.full.reference.seams import SEAM_REPETITIONS
from sluice.attestation.systems.full.reference.statement import BudgetList
from sluice.attestation.systems.full.system import Full
from sluice.attestation.systems.system import ProofClaim
from sluice.attestation.systems.unsafe import Unsafe
from sluice.errors import SettingError, VerificationError
from sluice.seeding import stream

from .full_plant import Wiring, policy_of, rules_of
from .full_vectors import VECTORS

STATEMENT = next(iter(json.loads(VECTORS.read_text())["statements"].values()))


def test_an_element_times_its_inverse_is_one() -> None:
    rng = stream(100, "elements")
    drawn = [Ext(*(int(each) for each in rng.integers(1 << 63, size=3))) for _ in range(20)]
    assert [a * b for a, b in zip(drawn, inverses(drawn), strict=True)] == [Ext(1)] * 20
    assert Ext(0, 1) ** 3 == Ext(1, 1)  # X^3 = X + 1
    assert (drawn[0] + drawn[1]) * drawn[2] == drawn[0] * drawn[2] + drawn[1] * drawn[2]
    assert 1 - drawn[0] + drawn[0] == Ext(1)
    with pytest.raises(ZeroDivisionError):
        Ext(0).inverse()


def test_roots_of_unity_have_their_order() -> None:
    for log_order in (1, 5, 32):
        root = root_of_unity(log_order)
        assert pow(root, 1 << log_order, ORDER) == 1
        assert pow(root, 1 << log_order - 1, ORDER) == ORDER - 1
    assert pow(GENERATOR, (ORDER - 1) // 2, ORDER) == ORDER - 1
    assert [reverse_bits(at, 3) for at in range(8)] == [0, 4, 2, 6, 1, 5, 3, 7]


def test_blake3_gives_the_published_hashes() -> None:
    """Lengths and hashes of the published test vectors, whose input counts up to 250."""
    published = {
        0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
        1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
    }
    for length, expected in published.items():
        assert blake3(bytes(at % 251 for at in range(length))).hex() == expected
    stream_ = blake3_stream(b"a", context="b")
    assert next(stream_)[:32] == blake3(b"a", context="b") != blake3(b"a")
    assert next(stream_) != next(stream_)


def test_keccak_gives_the_published_hash() -> None:
    expected = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert keccak256(b"").hex() == expected
    assert len({keccak256(bytes(length)) for length in (0, 1, 135, 136, 137, 272)}) == 6


def test_round_constants_come_from_the_published_generator() -> None:
    assert (len(BEGINNING), len(PARTIAL), len(ENDING)) == (4, 22, 4)
    assert BEGINNING[0][:2] == [0x13DCF33ABA214F46, 0x30B3B654A1DA6D83]


OWN: dict[str, list[int]] = {"switches": [], "blocks": []}  # budgets of rules that are not there


def test_a_ladder_reaches_every_integer_and_no_other() -> None:
    for reach, beyond in ((0, 3), (41, 17), (300, 0), (699, 63)):
        ladder = ColumnPlan().ladder(reach, beyond)
        for digits, top in ((ladder.base, reach), (ladder.digits, reach + beyond)):
            sums = {0}
            for digit in digits:
                assert 2 <= digit.radix <= 8
                sums = {
                    each + value * digit.weight for each in sums for value in range(digit.radix)
                }
            assert sums == set(range(top + 1))


def test_spread_digits_reach_exactly_as_far_as_each_width() -> None:
    for reach in range(42, 2_000, 49):
        for count in (spread_digits(reach), 6):
            weights = spread_weights(reach, count)
            assert min(weights) > 0
            sums = {0}
            for weight in weights[:5]:
                sums = {each + value * weight for each in sums for value in range(8)}
            assert sums == set(range(7 * sum(weights[:5]) + 1))
            assert 7 * sum(weights) == reach
    assert spread_weights(112, 16) == [1] * 16
    assert spread_digits(65_541) == 6


@pytest.mark.parametrize(
    ("schedule", "marked"),
    [
        (Real(), [*range(16)]),
        (Coming(), [*range(15)]),
        (Anchor(4), [4, 6, 8, 10, 12, 14]),  # not 2, before a whole window, and not 16
        (Anchor(5), [5, 7, 10, 12, 15]),
        (Anchor(16), []),
        (BlockEnd(8), [7, 9, 11, 13, 15]),  # the first block ends on its eighth row
        (BlockEnd(9), [8, 10, 12, 14]),  # not 16, the first row of padding
        (BlockEnd(16), [15]),
        (BlockEnd(17), []),
        (SpectrumEnd(8, 0), [7, 15]),
        (SpectrumEnd(8, 1), [0, 8]),  # not 16
    ],
    ids=repr,
)
def test_public_columns_mark_these_of_sixteen_rows_and_no_padding(
    schedule: Schedule, marked: list[int]
) -> None:
    assert [row for row in range(32) if schedule.on(row, 16)] == marked


def test_words_are_folded_down_to_the_last_polynomial() -> None:
    assert fold_schedule(12) == [1]
    assert fold_schedule(17) == [3, 3]
    assert fold_schedule(18) == [3, 3, 1]
    assert sum(fold_schedule(21)) == 10


@pytest.mark.parametrize(("rows", "segments"), [(4_096, 2), (4_734, 2), (10_000, 3)])
def test_the_largest_proof_is_that_of_the_core(rows: int, segments: int) -> None:
    content = STATEMENT.encode()
    circuit, core = ReferenceCircuit(content), _attest.FullCircuit(content)
    one = largest_proof(circuit.columns.width + SEAM_REPETITIONS, 4_096)
    around = core.largest_chain(rows, 12) - segments * one
    assert 0 < around < 200  # header, lengths and the values of the seams


def tree_of(leaves: list[bytes]) -> list[list[bytes]]:
    levels = [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([blake3(below[at] + below[at + 1]) for at in range(0, len(below), 2)])
    return levels


def test_leaves_are_opened_together_with_as_few_nodes_as_possible() -> None:
    leaves = [leaf_hash([[at]], [[7, 8]]) for at in range(8)]
    levels = tree_of(leaves)
    root = levels[-1][0]
    opened = [(at, leaves[at]) for at in (5, 1, 2, 1)]
    nodes = [leaves[0], leaves[3], leaves[4], levels[1][3]]
    verify_openings(root, 3, opened, nodes)
    for changed, siblings, why in (
        ([(1, leaves[1]), (1, leaves[2])], nodes, "opened twice, differently"),
        (opened, nodes[::-1], "does not lead to the committed root"),
        (opened, nodes[:-1], "too few nodes"),
        (opened, [*nodes, root], "more nodes"),
        ([(5, leaves[5]), (1, leaves[2]), (2, leaves[2])], nodes, "committed root"),
    ):
        with pytest.raises(VerificationError, match=why):
            verify_openings(root, 3, changed, siblings)
    assert leaf_hash([[1], [2]], [[7], [8]]) == blake3(
        b"".join(each.to_bytes(8, "little") for each in (1, 7, 2, 8))
    )


@pytest.mark.parametrize(
    ("data", "read", "why"),
    [
        (b"\x80\x00", _Reader.number, "another encoding"),
        (b"\x80" * 9 + b"\x02", _Reader.number, "too large"),
        (b"", _Reader.number, "it ends early"),
        (b"\x02", lambda reader: reader.option(reader.number), "neither there nor absent"),
        (b"\x05\x01", lambda reader: reader.items(reader.number), "longer than the rest"),
        (b"\xff" * 8, _Reader.element, "not below the order"),
        (b"\x02" + bytes(8) + b"\xff" * 8, _Reader.row, "not below the order"),
        (ORDER.to_bytes(8, "little"), _Reader.element, "not below the order"),
        (b"\x02" + bytes(64), _Reader.root, "not one hash"),
        (b"\x00", _Reader.root, "not one hash"),
        (b"\x01", lambda reader: reader.end(), "something follows it"),
    ],
)
def test_there_is_one_encoding(data: bytes, read: Callable[[_Reader], object], why: str) -> None:
    with pytest.raises(VerificationError, match=why) as caught:
        read(_Reader(data))
    assert caught.value.step == "5.7"


def test_what_is_encoded_is_read() -> None:
    reader = _Reader(b"\x01\x05\x00\x01\x80\x01")
    assert reader.items(reader.number) == (5,)
    assert (reader.option(reader.number), reader.option(reader.number)) == (None, 128)
    reader.end()
    whole = _Reader(b"\x02\x05\x06")
    assert whole.items(whole.number) == (5, 6)  # as many as there are bytes left
    assert _Reader((ORDER - 1).to_bytes(8, "little")).element() == ORDER - 1
    assert _Reader(b"\xff" * 9 + b"\x01").number() == (1 << 64) - 1


def test_a_proof_that_is_too_long_is_not_read() -> None:
    with pytest.raises(VerificationError, match="it ends early"):
        read_proof(b"\x01\x00\x00", largest=3)
    with pytest.raises(VerificationError, match="none of this circuit has more than 3"):
        read_proof(bytes(4), largest=3)


def fixed_columns(before: bytes, after: bytes) -> bytes:
    """A proof up to its fixed columns, which no circuit has."""
    root = b"\x01" + bytes(32)
    return root + root + b"\x00" + b"\x00\x00" + before + after


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (b"\x00", b"\x01\x01" + bytes(24), "on the next row only"),
        (b"\x01\x00", b"\x00", "different widths"),
        (b"\x01\x01" + bytes(24), b"\x01\x02" + bytes(48), "different widths"),
    ],
)
def test_fixed_columns_are_opened_on_both_rows(before: bytes, after: bytes, why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        read_proof(fixed_columns(before, after), largest=1_000)


def changed(path: str, value: object, document: Any = None) -> bytes:
    """The statement with another value at a path, or with a function of the old one."""
    document = document or json.loads(STATEMENT)
    *folders, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    node: Any = document
    for part in folders:
        node = node[part]
    node[last] = value(node[last]) if callable(value) else value
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


NARROW = {"level": 0, "weight": 0, "terms": [], "averaged": False, "constant": (1 << 62) - 1}


def test_what_a_circuit_can_just_state() -> None:
    ReferenceCircuit(changed("balances.0.residual", NARROW))
    usual = json.loads(STATEMENT)["balances"][0]["usual"]
    ReferenceCircuit(changed("balances.0.severe", usual))
    document = json.loads(STATEMENT)
    document["registers"][0] = {"low": 8, "high": 8}
    document["lanes"] = [
        [{"source": {kind: at}, "weight": 1}]
        for kind, channels in (("register", "registers"), ("actuator", "actuators"))
        for at in range(len(document[channels]))
    ]
    ReferenceCircuit(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("version", 1, "version"),
        ("version", 3, "version"),
        ("version", "1", "version"),
        ("registers.0.low", -1, "registers.0.low"),
        ("registers.0.high", 1 << 16, "registers.0.high"),
        ("registers.0.more", 1, "registers.0.more"),
        ("registers.0.low", True, "registers.0.low"),
        ("encoding", "0" * 63, "encoding"),
        ("actuators.0.codes", 65, "codes"),
        ("windows.0.rows", 1, "rows"),
        ("balances.0.usual", 0, "usual"),
        ("couplings.0.settle", 1 << 17, "settle"),
        ("registers.0", {"low": 9, "high": 8}, "a lower limit is above"),
        ("actuators.0.legal", [4], "a legal code has no index"),
        ("rates.0.usual", lambda _: 1 << 40, "a severe limit is below"),
        ("balances.0.severe", 1, "a severe limit is below"),
        ("balances.0.residual.weight", 1 << 47, "could wrap round"),
        ("windows.0.residual.constant", -(1 << 61), "could wrap round"),
        ("balances.0.residual", NARROW | {"constant": 1 << 62}, "could wrap round"),
        ("rates.0.register", 99, "a register that is not there"),
        ("balances.0.residual.level", 99, "a register that is not there"),
        ("couplings.0.flow", 99, "a register that is not there"),
        ("liveness.0.register", 99, "a register that is not there"),
        ("couplings.0.steady.0.code", 60, "a code that is not there"),
        ("couplings.0.standby", [[99, 0]], "a code that is not there"),
        ("couplings.0.actuator", 99, "not there"),
        ("couplings.0.steady", lambda old: [old[0], old[0]], "stands twice"),
        ("couplings.0.envelope.severe", [9, 8], "an interval of flows is empty"),
        ("couplings.0.envelope.severe", None, "not within the severe ones"),
        ("lanes.0.0.weight", 2, "the product of the radices"),
        ("lanes", lambda old: old[:-1] or [[]], "in one lane, once"),
        ("lanes", lambda old: [old[0] + old[0][:1], *old[1:]], "in one lane, once"),
        (
            "lanes",
            lambda old: [[each for lane in old for each in lane]],
            "the product of the radices",
        ),
    ],
)
def test_a_statement_that_a_circuit_cannot_state_is_refused(
    path: str, value: object, why: str
) -> None:
    with pytest.raises(SettingError, match=why):
        ReferenceCircuit(changed(path, value))


def lanes_of_four(*last: object) -> bytes:
    """A statement with four registers of 16 bits in one lane, and these values in the last one."""
    document = json.loads(STATEMENT)
    document["registers"] = [{"low": 0, "high": 65_535}] * 4
    document["severe"] = True
    document["bounds"] = [{"register": 3, "low": 100, "high": 9_000, "severe": True}]
    document["lanes"] = [
        [{"source": {"register": at}, "weight": 1 << 16 * at} for at in range(4)],
        *([{"source": {"actuator": at}, "weight": 1}] for at in range(len(document["actuators"]))),
        *([list(last)] if last else []),
    ]
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


GUARD = {"source": "guard", "weight": 1}


def test_four_whole_registers_fit_a_lane_beside_a_guard() -> None:
    content = lanes_of_four(GUARD)
    circuit, core = ReferenceCircuit(content), _attest.FullCircuit(content)
    assert circuit.identity == core.identity
    assert circuit.columns.width == core.columns


def test_a_lane_must_not_overflow_the_field_unguarded() -> None:
    for content in (lanes_of_four(), lanes_of_four(GUARD, {**GUARD, "weight": 65_536})):
        with pytest.raises(SettingError, match="in one lane, once"):
            ReferenceCircuit(content)
        with pytest.raises(ValueError, match=r"is in no lane|packed twice"):
            _attest.FullCircuit(content)


def test_nothing_but_four_whole_registers_may_overflow() -> None:
    document = json.loads(lanes_of_four())
    document["registers"][3] = {"low": 0, "high": 65_534}
    ReferenceCircuit(json.dumps(document).encode())  # the lane is not full and needs no guard
    (code,) = document["lanes"].pop(1)
    document["lanes"][0].append({**code, "weight": 65_535 << 48})
    content = json.dumps(document).encode()
    with pytest.raises(SettingError, match="a lane overflows the field"):
        ReferenceCircuit(content)
    with pytest.raises(ValueError, match="a lane overflows the field"):
        _attest.FullCircuit(content)


def test_a_guard_does_not_make_a_lane_of_three_registers_full() -> None:
    document = json.loads(lanes_of_four({**GUARD, "weight": 1 << 48}))
    document["registers"] = [{"low": 0, "high": 65_535}] * 7
    three = [{"source": {"register": 4 + at}, "weight": 1 << 16 * at} for at in range(3)]
    document["lanes"][-1][:0] = three
    content = json.dumps(document).encode()
    with pytest.raises(SettingError, match="a lane overflows the field"):
        ReferenceCircuit(content)
    with pytest.raises(ValueError, match="a lane overflows the field"):
        _attest.FullCircuit(content)


def test_too_many_full_lanes_are_refused() -> None:
    document = json.loads(lanes_of_four(GUARD))
    document["registers"] = [{"low": 0, "high": 65_535}] * (4 * 41)
    lanes = [
        [{"source": {"register": 4 * lane + at}, "weight": 1 << 16 * at} for at in range(4)]
        for lane in range(41)
    ]
    document["lanes"] = [*lanes, *document["lanes"][1:]]
    content = json.dumps(document).encode()
    with pytest.raises(SettingError, match="too many full lanes"):
        ReferenceCircuit(content)
    with pytest.raises(ValueError, match="41 full lanes"):
        _attest.FullCircuit(content)


@pytest.mark.parametrize(
    ("bound", "own"),
    [
        ({}, 0),
        ({"high": 100 + 36}, 0),
        ({"high": 100 + 35}, None),  # too narrow for five digits and a sixth
        ({"severe": False}, None),
        ({"register": 2}, None),
    ],
)
def test_a_register_keeps_its_own_bound_if_digits_can(
    bound: dict[str, object], own: int | None
) -> None:
    document = json.loads(lanes_of_four(GUARD))
    document["bounds"][0] |= bound
    content = json.dumps(document).encode()
    circuit = ReferenceCircuit(content)
    assert own_bound(circuit.statement, 3) == own
    assert circuit.identity == _attest.FullCircuit(content).identity


def test_a_bound_that_a_register_keeps_takes_a_cell_for_each_of_its_lanes() -> None:
    bounded, free = json.loads(lanes_of_four(GUARD)), json.loads(lanes_of_four(GUARD))
    free["bounds"] = []
    widths = [ReferenceCircuit(json.dumps(each).encode()).columns.width for each in (bounded, free)]
    assert widths[0] - widths[1] == 2  # its own lane, and that of the guard


OWN_LIMITS = {
    "idle": [{"actuator": 1, "code": 1}],
    "ties": [
        {"register": 0, "weight": 3, "terms": [{"register": {"register": 1, "weight": -2}}],
         "constant": 5, "usual": 7, "severe": 9}
    ],
    "switches": [
        {"actuator": 0, "codes": [1, 2], "register": 0, "before": True, "on": [10, 52],
         "off": [65_535, 65_584]}
    ],
    "spectra": [
        {"register": 0, "rows": 8, "offset": 3, "first": [0, 112], "second": [5, 124]},
        {"register": 1, "rows": 8, "offset": 0, "first": [0, 700], "second": [5, 124]},
    ],
}  # fmt: skip


def own_limits(path: str = "", value: object = None) -> bytes:
    """A statement with ties, switch bands and spectra, with another value at a path."""
    document = json.loads(STATEMENT) | deepcopy(OWN_LIMITS)
    return changed(path, value, document) if path else json.dumps(document).encode()


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("idle.0.actuator", 99, "an idle actuator has no such code"),
        ("idle.0.code", 2, "an idle actuator has no such code"),
        ("ties.0.usual", 10, "a severe limit is below"),
        ("ties.0.register", 99, "a register that is not there"),
        ("ties.0.terms.0.register.register", 99, "a register that is not there"),
        ("ties.0.constant", (1 << 62) - 5 * 65_535, "the residual of a tie could wrap"),
        ("ties.0.weight", 1 << 47, "the residual of a tie could wrap"),
        ("switches.0.register", 99, "a register that is not there"),
        ("switches.0.codes", [9], "a code that is not there"),
        ("switches.0.codes", [], "no code counts as on"),
        ("switches.0.codes", [1, 1], "one stands twice"),
        ("switches.0.on", [10, 53], "no width that digits can share"),
        ("switches.0.on", [10, 45], "no width that digits can share"),
        ("switches.0.off", [65_536, 65_578], "no width that digits can share"),
        ("switches.0.off", [0, 65_548], "no width that digits can share"),
        ("spectra.0.register", 99, "a register that is not there"),
        ("spectra.0.offset", 8, "a block begins after its own length"),
        ("spectra.0.rows", 2, "spectra.0.rows"),
        ("spectra.0.first", [0, 105], "no width that digits can share"),
        ("spectra.0.second", [0, 113], "no width that digits can share"),
        ("spectra.0.first", [0, 7 << 60], "no width that digits can share"),
        ("spectra.0.first", [1 << 62, (1 << 62) + 112], "no width that digits can share"),
    ],
)
def test_own_limits_that_a_circuit_cannot_state_is_refused(
    path: str, value: object, why: str
) -> None:
    ReferenceCircuit(own_limits())
    with pytest.raises(SettingError, match=why):
        ReferenceCircuit(own_limits(path, value))


def test_a_tie_can_almost_reach_half_the_field() -> None:
    ReferenceCircuit(own_limits("ties.0.constant", (1 << 62) - 1 - 5 * 65_535))


@pytest.mark.parametrize(
    ("rows", "offset", "given", "allowed"),
    [(64, 3, 5, 5 + 1), (64, 3, 99, 7 + 1), (64, 0, 99, 8), (3, 3, 9, 0 + 1), (2, 3, 9, 0),
     (64, 1, 2, 2 + 1)],
)  # fmt: skip
def test_blocks_are_counted_with_the_rows_before_them(
    rows: int, offset: int, given: int, allowed: int
) -> None:
    document = json.loads(own_limits()) | {"couplings": [], "windows": []}
    document["spectra"][0]["offset"] = offset
    document["spectra"] = document["spectra"][:1]
    circuit = ReferenceCircuit(json.dumps(document).encode())
    budgets = BudgetList(
        violating=0, severe=0, segments=1, unsteady=[], windows=[], switches=[0], blocks=[given]
    )
    public = publics.public_of(circuit, rows, budgets)
    assert public.totals == [allowed * BASE**2]  # after violating rows and switches
    with pytest.raises(VerificationError, match="one budget for each rule"):
        publics.public_of(circuit, rows, replace(budgets, switches=[]))


def test_spectra_whose_blocks_end_on_different_rows_share_digits() -> None:
    apart, together = (
        ReferenceCircuit(own_limits("spectra.1.offset", offset)) for offset in (0, 3)
    )
    # first sums: 3 or 4 digits, second sums: 3; and a flag
    assert together.columns.width - apart.columns.width == 1 + 3 + 3


def test_a_name_that_stands_twice_is_refused() -> None:
    twice = STATEMENT.replace('"jumps":', '"jumps":true,"jumps":', 1).encode()
    with pytest.raises(SettingError, match="a name stands twice"):
        ReferenceCircuit(twice)


@pytest.mark.parametrize(
    ("rows", "budgets", "why"),
    [
        (1, {}, "1 rows are not 2 to 524288"),
        (524_289, {}, "524289 rows are not"),
        (80, {"unsteady": [1]}, "one budget for each rule"),
        (80, {"windows": []}, "one budget for each rule"),
        (7, {"unsteady": [7, 7], "segments": 7}, "too few for"),
    ],
)
def test_rows_and_budgets_that_fit_no_trace_are_refused(
    rows: int, budgets: dict[str, Any], why: str
) -> None:
    statement = changed("jumps", True)
    document = json.loads(statement)
    document["lanes"].append([{"source": "start", "weight": 1}])
    circuit = ReferenceCircuit(json.dumps(document).encode())
    found: dict[str, Any] = {"violating": 1, "severe": 0, "segments": 1, **OWN}
    found |= {"unsteady": [1, 1], "windows": [1, 1, 1]} | budgets
    with pytest.raises(VerificationError, match=why) as caught:
        publics.public_of(circuit, rows, BudgetList(**found))
    assert caught.value.step == "5.7"
    just = BudgetList(violating=1, severe=0, segments=1, unsteady=[7, 7], windows=[1, 1, 1], **OWN)
    assert publics.public_of(circuit, 7, just).rows == 7  # one row for each bit of slack
    assert publics.public_of(circuit, 524_288, just).height == 524_288


def test_a_budget_is_not_more_than_there_is_to_count() -> None:
    circuit = ReferenceCircuit(STATEMENT.encode())
    many = BudgetList(
        violating=99, severe=9, segments=9, unsteady=[99, 99], windows=[99, 99, 99], **OWN
    )
    anchors = [30, 14, 17]  # of windows of 4, 8 and 7 rows that end on one of 64 rows
    most = BudgetList(violating=64, severe=9, segments=9, unsteady=[64, 64], windows=anchors, **OWN)
    assert publics.public_of(circuit, 64, many) == publics.public_of(circuit, 64, most)
    less = BudgetList(
        violating=64, severe=9, segments=9, unsteady=[64, 64], windows=[29, 14, 17], **OWN
    )
    assert publics.public_of(circuit, 64, less) != publics.public_of(circuit, 64, most)


def test_the_fewest_rows_are_two_and_severe_rows_are_violating() -> None:
    document = json.loads(STATEMENT) | {"severe": True}
    circuit = ReferenceCircuit(json.dumps(document).encode())
    parts: dict[str, Any] = {"segments": 1, "unsteady": [0, 0], "windows": [0, 0, 0], **OWN}
    public = publics.public_of(circuit, 2, BudgetList(violating=1, severe=9, **parts))
    assert public.totals[0] == 1 + BASE  # one violating row, and so at most one severe row
    assert public.height == 256


def test_a_commitment_is_canonical() -> None:
    circuit = ReferenceCircuit(STATEMENT.encode())
    order = ORDER.to_bytes(8, "little")
    publics.digest_of(circuit, (ORDER - 1).to_bytes(8, "little") * 4, 80)
    for commitment in (b"\xff" * 32, bytes(24) + order, order * 4, bytes(31), bytes(33)):
        with pytest.raises(VerificationError, match="the commitment is not canonical"):
            publics.digest_of(circuit, commitment, 80)
    digests = {tuple(publics.digest_of(circuit, bytes(32), rows)) for rows in (80, 81)}
    assert len(digests) == 2


def test_public_columns_are_polynomials_through_their_values() -> None:
    """At a row of the trace, a column has its value there; close by, it is something else."""
    circuit = ReferenceCircuit(STATEMENT.encode())
    budgets = BudgetList(
        violating=1, severe=0, segments=1, unsteady=[5, 3], windows=[0, 0, 2], **OWN
    )
    public = publics.public_of(circuit, 80, budgets)
    point = Ext(3, 5, 9)
    found = publics.columns_at(circuit, public, point)
    turn = root_of_unity(public.log_height)
    real = Ext(0)
    for row in range(80):  # the first schedule marks the rows of the batch
        place = pow(turn, row, ORDER)
        basis = (point**public.height - 1) * (point - place).inverse() * place
        real = real + basis * pow(public.height, -1, ORDER)
    assert found[0] == real


def test_the_identity_is_the_circuits() -> None:
    """Another policy, other rules, another limit or other parameters are another circuit."""
    system, wiring = Full(), Wiring()
    circuit = system.circuit(rules_of(wiring), policy_of(wiring), rows_max=100)
    claim = ProofClaim(commitment=bytes(32), rows=100, context=bytes(32), proof=b"")
    with pytest.raises(VerificationError, match="it ends early"):  # so the identity is right
        verify_again(circuit, claim)
    other = system.circuit(rules_of(wiring), policy_of(wiring), rows_max=101)
    for changed_circuit in (
        replace(circuit, identity=other.identity),
        replace(circuit, rules=rules_of(Wiring(settle=1))),
    ):
        with pytest.raises(VerificationError, match="do not lead to the circuit's identity"):
            verify_again(changed_circuit, claim)
    assert circuit.parameters == NAMED
    long = ProofClaim(commitment=bytes(32), rows=101, context=bytes(32), proof=b"")
    with pytest.raises(VerificationError, match="does not take 101 rows"):
        verify_again(circuit, long)
    with pytest.raises(VerificationError, match="a context has 31 bytes"):
        verify_again(circuit, replace(claim, context=bytes(31)))
    with pytest.raises(SettingError, match="proofs of the system 'full'"):
        verify_again(replace(circuit, policy=PaperPolicy()), claim)
    unsafe = Unsafe(reveal_rows=True).circuit(rules_of(wiring), policy_of(wiring), rows_max=100)
    with pytest.raises(SettingError, match="proofs of the system 'full'"):
        verify_again(unsafe, claim)
