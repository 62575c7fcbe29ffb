"""Rules files: exact, sealed, and picky."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sluice.errors import RulesFileError
from sluice.invariants.mining.hardened import TYING_KINDS
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import (
    ActuatorState,
    Balance,
    Bound,
    Constant,
    Coupling,
    Evidence,
    Invariant,
    Rate,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Transition,
    Window,
)
from sluice.invariants.ruleset import Dropped, Profile, RuleSet, untied_channels
from sluice.invariants.rulesfile import (
    load_rules,
    parse_rules,
    rules_hash,
    save_rules,
    seal_rules,
)
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Channel, Codes, Role, Span

NAME = st.text(max_size=6)
COUNT = st.integers(0, 2**40)
CODE = st.integers(-9, 99)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
MAYBE = st.none() | NUMBER
TERM = st.builds(Term, channel=NAME, coefficient=NUMBER, on=st.lists(CODE, max_size=2).map(tuple))
TERMS = st.lists(TERM, max_size=3).map(tuple)
RELATION = st.one_of(
    st.builds(
        Coupling,
        name=NAME,
        actuator=NAME,
        flow=NAME,
        off=CODE,
        states=st.lists(st.builds(ActuatorState, code=CODE, nominal=NUMBER), max_size=2).map(tuple),
        settle=COUNT,
        transition=st.sampled_from(Transition),
        standby=st.lists(st.tuples(NAME, CODE), max_size=2).map(tuple),
    ),
    st.builds(Balance, name=NAME, level=NAME, terms=TERMS, constant=NUMBER, averaged=st.booleans()),
    st.builds(
        Window,
        name=NAME,
        level=NAME,
        terms=TERMS,
        constant=NUMBER,
        rows=COUNT,
        averaged=st.booleans(),
    ),
    st.builds(Bound, name=NAME, channel=NAME, low=NUMBER, high=NUMBER),
    st.builds(Rate, name=NAME, channel=NAME),
    st.builds(Tie, name=NAME, channel=NAME, terms=TERMS, constant=NUMBER),
    st.builds(Constant, name=NAME, channel=NAME, value=NUMBER),
    st.builds(
        SwitchBand,
        name=NAME,
        actuator=NAME,
        on=st.lists(CODE, max_size=2).map(tuple),
        level=NAME,
        before=st.booleans(),
        on_low=NUMBER,
        on_high=NUMBER,
        off_low=NUMBER,
        off_high=NUMBER,
    ),
    st.builds(
        Spectrum,
        name=NAME,
        channel=NAME,
        rows=COUNT,
        first_low=NUMBER,
        first_high=NUMBER,
        second_low=NUMBER,
        second_high=NUMBER,
        offset=COUNT,
    ),
)
INVARIANT = st.builds(
    Invariant,
    relation=RELATION,
    tolerance=NUMBER,
    evidence=st.builds(
        Evidence, r2=MAYBE, support=MAYBE, judged_rows=st.none() | COUNT, few_rows=st.booleans()
    ),
)
CHANNEL = st.builds(
    Channel,
    name=NAME,
    role=st.sampled_from([role for role in Role if not role.discrete]),
    unit=NAME,
    span=st.none() | st.builds(Span, low=st.floats(-9e9, 0), high=st.floats(0.1, 9e9)),
) | st.builds(
    Channel, name=NAME, role=st.just(Role.ACTUATOR), codes=st.just(Codes(off=0, on=(1, 2)))
)
RULES = st.builds(
    RuleSet,
    plant=NAME,
    profile=st.sampled_from(Profile),
    stride_s=NUMBER,
    channels=st.lists(CHANNEL, max_size=3).map(tuple),
    invariants=st.lists(INVARIANT, max_size=3).map(tuple),
    dropped=st.lists(st.builds(Dropped, name=NAME, why=NAME), max_size=2).map(tuple),
    fit_rows=COUNT,
    calibration_rows=COUNT,
)


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    plant = simulate("line", seed=0, days=4)
    return mine(plant.rows(0, 2880), plant.rows(2880, 5760), profile=Profile.HARDENED)


@pytest.fixture
def file(rules: RuleSet, tmp_path: Path) -> Path:
    path = tmp_path / "rules.json"
    save_rules(rules, path)
    return path


def sealed(rules: RuleSet) -> str:
    document = {"schema": 1, **TypeAdapter(RuleSet).dump_python(rules, mode="json")}
    return json.dumps(document | {"hash": rules_hash(rules)})


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("profile", list(Profile))
def test_saving_and_loading_is_exact_for_every_profile(profile: Profile, tmp_path: Path) -> None:
    plant = simulate("line", seed=1, days=2)
    mined = mine(plant.rows(0, 1440), plant.rows(1440, 2880), profile=profile)
    digest = save_rules(mined, tmp_path / "rules.json")
    assert load_rules(tmp_path / "rules.json") == mined
    assert digest == rules_hash(mined)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=RULES)
def test_any_rules_survive_a_file_bit_by_bit(drawn: RuleSet, tmp_path: Path) -> None:
    path = tmp_path / "drawn.json"
    save_rules(drawn, path)
    assert load_rules(path) == drawn


@settings(max_examples=20, deadline=None)
@given(drawn=RULES)
def test_the_list_of_untied_channels_must_be_exact(drawn: RuleSet) -> None:
    exact = replace(drawn, untied=untied_channels(drawn))
    assert parse_rules(sealed(exact), name="drawn") == exact
    wrong = replace(exact, untied=(*untied_channels(drawn), "X9"))
    with pytest.raises(RulesFileError, match="drawn lists .*'X9' as untied; no rule besides"):
        parse_rules(sealed(wrong), name="drawn")


def test_rules_without_new_parts_keep_the_document_of_the_first_release(
    rules: RuleSet, tmp_path: Path
) -> None:
    assert rules.clean is not None
    old = tuple(rule for rule in rules.invariants if rule.kind not in TYING_KINDS)
    clean = replace(rules.clean, switches=(), blocks=())
    rules = replace(rules, invariants=old, clean=clean, untied=None)
    save_rules(rules, tmp_path / "first.json")
    document = json.loads((tmp_path / "first.json").read_text())
    assert "untied" not in document
    assert not {"switches", "blocks"} & document["clean"].keys()
    assert rules_hash(replace(rules, untied=())) != rules_hash(rules)


def test_an_edited_file_is_refused_until_it_is_sealed(rules: RuleSet, file: Path) -> None:
    edit(file, stride_s=30.0)
    with pytest.raises(RulesFileError, match="was edited after it was sealed .* rules seal"):
        load_rules(file)
    digest = seal_rules(file)
    assert load_rules(file).stride_s == 30.0
    assert digest == rules_hash(load_rules(file)) != rules_hash(rules)


def test_provisional_rules_are_read_only_where_they_are_asked_for(rules: RuleSet) -> None:
    drawn = replace(rules, provisional=True)
    assert parse_rules(sealed(drawn), name="drawn", provisional=True) == drawn
    with pytest.raises(RulesFileError, match="drawn is provisional"):
        parse_rules(sealed(drawn), name="drawn")


def test_a_changed_last_digit_is_an_edit(file: Path) -> None:
    document = json.loads(file.read_text())
    tolerance = document["invariants"][0]["tolerance"]
    document["invariants"][0]["tolerance"] = math.nextafter(tolerance, math.inf)
    file.write_text(json.dumps(document))
    with pytest.raises(RulesFileError, match="was edited"):
        load_rules(file)


def test_the_hash_does_not_depend_on_key_order_or_spacing(rules: RuleSet, file: Path) -> None:
    document = json.loads(file.read_text())
    backward = {key: document[key] for key in reversed(document)}
    file.write_text(json.dumps(backward, indent=7))
    assert load_rules(file) == rules


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 99}, "is not of schema 1"),
        ({"tolerence": 1.0}, "keys that are not part of a rule"),
        ({"stride_s": "five"}, "stride_s"),
        ({"profile": "paper-huge"}, "profile"),
    ],
)
def test_what_no_rule_knows_cannot_be_sealed(
    file: Path, changes: dict[str, object], message: str
) -> None:
    edit(file, **changes)
    before = file.read_bytes()
    with pytest.raises(RulesFileError, match=message):
        seal_rules(file)
    assert file.read_bytes() == before


def test_an_unknown_key_deep_inside_is_refused(file: Path) -> None:
    document = json.loads(file.read_text())
    document["invariants"][0]["relation"]["wiggle"] = 1
    file.write_text(json.dumps(document))
    with pytest.raises(RulesFileError, match="keys that are not part of a rule"):
        seal_rules(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not of schema 1"),
        ('{"schema": 1, "stride_s": NaN}', "no canonical form"),
    ],
)
def test_a_damaged_file_is_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(RulesFileError, match=message):
        load_rules(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RulesFileError, match="cannot be read: No such file"):
        load_rules(tmp_path / "nowhere.json")
