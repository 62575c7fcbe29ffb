"""Plants lend the tails of their scores: in the signed bytes, in the log, and in the model."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.messages.hidden_sums import HelperCard
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.detector import (
    LENT_BYTES,
    LentTail,
    borrows_thresholds,
    load_detector,
    voted_model,
)
from sluice.detector.vote import VotedModel
from sluice.errors import SettingError, VerificationError
from sluice.network.coordinator import founding
from sluice.network.coordinator.exporting import export_statistics
from sluice.network.coordinator.founding import FederationPlan
from sluice.network.coordinator.sharing import statistics_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.handout import handout
from sluice.network.lending import plant_tail
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.model import demand_logged, last_statistics
from sluice.network.statistics import MemberStatistics, vote_of
from sluice.network.terms import Invitation, read_document, write_document
from sluice.network.training_rows import TrainingRows
from sluice.telemetry import FileLayout, write
from sluice.telemetry.reading import read_record
from tests.unit.conftest import Outcome

from .conftest import POLICY, Consortium, Founder, sign_off

Run = Callable[..., Outcome]
NAMES = ("north", "south", "west")
LIAR = LentTail(peaks=1_000, weeks=5_200.0, level=0.0, scale=1e-9, shape=-0.5)
FEW = "10900:11140"  # four hours


def lending(founder: Founder, **more: object) -> Consortium:
    made = founder("vote", detector="moments", members_min=3, lends=True, **more)
    for index, name in enumerate(NAMES):
        made.join(name, index, rows=1_000)
    return made


def test_every_plant_ends_with_the_tails_of_all(founder: Founder, sluice: Run) -> None:
    made = lending(founder)
    done = made.run()
    opened = json.loads(made.site.log.read_text().splitlines()[0])["body"]["statistic"]
    assert opened["lends"] is True
    kept = statistics_in(done.parameters, made.site.terms)
    for name in NAMES:
        own, plant = kept.of(name), PlantFolder(made.folder / name)
        assert own is not None
        assert own.tail == plant_tail(plant.share.read(), made.site.terms, plant.keys.circuit)
        seen = last_statistics(made.folder / name, made.site.terms)
        assert seen is not None
        assert seen.shared == kept
        demand_logged(kept, made.folder / name / "log.jsonl", read_log(made.site.log))
    north = kept.of("north")
    assert north is not None
    for tail in (None, LIAR):  # a coordinator cannot drop a tail or give another
        changed = kept.joined_by([replace(north, tail=tail)])
        with pytest.raises(VerificationError, match="the log does not have"):
            demand_logged(changed, made.folder / "south" / "log.jsonl", read_log(made.site.log))
    _operators_borrow_and_replace(made, sluice)


def _operators_borrow_and_replace(made: Consortium, sluice: Run) -> None:
    """The commands of an operator, on the federation that has just run."""
    few, borrowed = made.folder / "few.csv", made.folder / "borrowed.safetensors"
    words = ("plant", "model", str(made.folder / "north"), "--out", str(borrowed), "--clean", FEW)
    assert sluice(*words).code == 2  # four hours have too few peaks for thresholds of their own
    said = json.loads(sluice(*words, "--borrow", "--json").out)
    assert (said["borrowed"], said["tails_lent"], said["rules"]) == (True, 3, False)
    assert "the thresholds are borrowed: 3 of 3 members" in sluice(*words, "--borrow").out
    assert borrows_thresholds(load_detector(borrowed))
    lines = made.record.read_text().splitlines(keepends=True)
    few.write_text(lines[0] + "".join(lines[10_901:11_141]))
    watched = sluice("watch", str(few), "--replay", "--model", str(borrowed), "--json").out
    assert json.loads(watched.splitlines()[-1])["summary"]["borrowed"] == ["thresholds"]
    assert "borrowed from other plants: thresholds" in (
        sluice("watch", str(few), "--replay", "--model", str(borrowed)).err
    )
    own = made.folder / "own.safetensors"
    more = ("model", "recalibrate", str(borrowed), "--clean", str(made.record), "--out", str(own))
    assert not json.loads(sluice(*more, "--json").out)["calibration"].get("borrowed", False)
    assert not borrows_thresholds(load_detector(own))
    checked = sluice("plant", "check", str(made.folder / "north"), "--json").out
    assert json.loads(checked)["lending"]["lending"] == 3
    shown = sluice("plant", "check", str(made.folder / "north")).out
    assert "lends the tail of its own score" in shown
    assert "3 of 3 members lend thresholds" in shown
    assert "may hand the statistics and the tails of all members to invited plants" in shown
    status = sluice("plant", "status", str(made.folder / "north")).out
    assert "the coordinator may hand all statistics to invited plants" in " ".join(status.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A plant with four hours of rows, and the files that it got."""

    made: Consortium
    invitation: Path
    statistics: Path
    log: Path
    record: Path
    out: Path

    @classmethod
    def of(cls, made: Consortium, sluice: Run) -> "Newcomer":
        folder, site = made.folder, str(made.site.folder)
        invitation, record = folder / "new.invitation", folder / "new.csv"
        write_document(made.site.invite("new", at=datetime.now(UTC)), invitation, private=True)
        lines = made.record.read_text().splitlines(keepends=True)
        record.write_text(lines[0] + "".join(lines[10_901:11_141]))
        statistics, log = folder / "members.bin", folder / "log-copy.jsonl"
        said = sluice("coordinator", "export-statistics", site, "--out", str(statistics), "--json")
        assert (said.code, said.json["members"], said.json["tails_lent"]) == (0, list(NAMES), 3)
        assert statistics.stat().st_mode & 0o077 == 0
        assert sluice("coordinator", "export-log", site, "--out", str(log)).code == 0
        return cls(
            made=made,
            invitation=invitation,
            statistics=statistics,
            log=log,
            record=record,
            out=folder / "first.safetensors",
        )

    def words(self) -> tuple[str, ...]:
        files = {
            "--statistics": self.statistics,
            "--log": self.log,
            "--record": self.record,
            "--out": self.out,
        }
        named = [part for option, path in files.items() for part in (option, str(path))]
        return ("plant", "borrow", str(self.invitation), *named)

    def with_terms(self, **changes: object) -> "Newcomer":
        """Return the plant with an invitation to other terms."""
        invitation = read_document(Invitation, self.invitation, private=True)
        terms = replace(invitation.terms, **changes)  # type: ignore[arg-type]
        path = self.invitation.with_name("other.invitation")
        write_document(replace(invitation, terms=terms), path, private=True)
        return replace(self, invitation=path)


def test_a_plant_with_few_rows_borrows_before_it_joins(founder: Founder, sluice: Run) -> None:
    made = lending(founder)
    site, out = str(made.site.folder), str(made.folder / "early.bin")
    early = sluice("coordinator", "export-statistics", site, "--out", out)
    assert (early.code, Path(out).exists()) == (2, False)
    assert "has shared a statistic yet" in early.err
    made.run()
    new = Newcomer.of(made, sluice)
    said = sluice(*new.words(), "--json").json
    assert (said["borrowed"], said["tails_lent"], said["rules"]) == (True, 3, False)
    assert (said["member_names"], said["missing"], said["clean_rows"]) == (list(NAMES), [], 240)
    assert said["tails_short"] == 0
    told = sluice(*new.words()).out
    assert "the thresholds are borrowed: 3 of 3 members" in told
    assert "too short" not in told
    rare = ("--false-alarms-per-week", "0.1")  # 1,000 rows say nothing of one in ten weeks
    assert sluice(*new.words(), *rare, "--json").json["tails_short"] == 3
    told = " ".join(sluice(*new.words(), *rare).out.split())
    assert "(3 of them from a batch that is too short for 0.1 alarms a week" in told
    assert sluice(*new.words()).code == 0
    member = made.folder / "north.safetensors"
    words = ("plant", "model", str(made.folder / "north"), "--out", str(member), "--clean", FEW)
    assert sluice(*words, "--borrow").code == 0
    one, other = (voted_model(load_detector(each)) for each in (new.out, member))
    assert one.calibration.thresholds == other.calibration.thresholds
    own = str(made.folder / "own.safetensors")
    more = ("model", "recalibrate", str(new.out), "--clean", str(made.record), "--out", own)
    assert sluice(*more).code == 0
    assert not borrows_thresholds(load_detector(own))
    join = ("plant", "join", str(new.invitation), "--record", str(made.record), "--reveal-rows")
    joined = sluice(*join, "--rules", str(made.rules), "--out", str(made.folder / "new"))
    assert joined.code == 0, joined.err  # the invitation is not used up


def test_what_is_borrowed_is_checked_by_the_log(
    founder: Founder, sluice: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lending(founder)
    done = made.run()
    new, terms = Newcomer.of(made, sluice), made.site.terms
    assert terms.statistic is not None

    def refused(plant: Newcomer, code: int, told: str) -> None:
        seen = sluice(*plant.words())
        assert (seen.code, plant.out.exists()) == (code, False)
        assert told in " ".join(seen.err.split())

    refused(new.with_terms(coordinator="00" * 32), 3, "is the log of 'water' under key")
    refused(new.with_terms(federation="air"), 3, "the invitation is to 'air' under key")
    alone = replace(terms.statistic, lends=False)
    refused(new.with_terms(statistic=alone), 2, "lend no thresholds (its invitation")
    more = replace(terms.statistic, malicious=0)
    refused(new.with_terms(statistic=more), 3, "names other channels, lags or scales")
    month_ago = datetime.now(UTC) - timedelta(days=30)
    late = made.site.invite("late", at=month_ago)
    write_document(late, made.folder / "late.invitation", private=True)
    refused(replace(new, invitation=made.folder / "late.invitation"), 3, "of 'late' expired on")
    lacking = made.folder / "lacking.csv"
    write(read_record(new.record).without("S_PU1"), lacking, FileLayout.CSV)
    refused(replace(new, record=lacking), 3, "10 of the federation's 11 points")
    kept = statistics_in(done.parameters, terms)
    other = made.folder / "other.bin"
    other.write_bytes(handout(kept.without("west").canonical(), round_=done.round))
    refused(replace(new, statistics=other), 3, "let the coordinator export both files again")
    other.write_bytes(handout(kept.canonical(), round_=done.round + 1))
    refused(replace(new, statistics=other), 3, "let the coordinator export both files again")
    north = kept.of("north")
    assert north is not None
    changed = kept.joined_by([replace(north, tail=LIAR)])
    other.write_bytes(handout(changed.canonical(), round_=done.round))
    logged = kept.digest
    with monkeypatch.context() as patch:  # a coordinator that logs a model of its own making
        patch.setattr(MemberStatistics, "digest", property(lambda _: logged))
        refused(replace(new, statistics=other), 3, "a statistic of 'north' that the log does not")
    store = CoordinatorStore(made.site.base)
    left = replace(done, parameters=kept.without("west").parameters)
    store.keep(left, "00" * 32, federation=terms.federation, at=made.clock())
    store.close()
    words = ("coordinator", "export-statistics", str(made.site.folder), "--out", str(other))
    seen = sluice(*words)
    assert seen.code == 3
    assert "a round or a removal is in progress" in seen.err


def test_a_bound_statistic_travels_with_its_tail(founder: Founder, sluice: Run) -> None:
    limits = StatisticLimits(rows_min=300, span_min_s=3_600)
    made = lending(founder, bound=True, system="full", limits=limits)
    for name in NAMES:
        sign_off(made, name)
    kept = statistics_in(made.run().parameters, made.site.terms)
    assert kept.names == NAMES
    assert all(member.tail is not None for member in kept.members)
    assert MemberStatistics.from_canonical(kept.canonical(), None) == kept
    demand_logged(kept, made.folder / "south" / "log.jsonl", read_log(made.site.log))
    borrowed = sluice(*Newcomer.of(made, sluice).words(), "--json").json
    assert (borrowed["tails_lent"], borrowed["member_names"]) == (3, list(NAMES))


@pytest.mark.parametrize("lie", ["extreme", "damaged", "of no tail", "none"])
def test_what_a_plant_may_lend(founder: Founder, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lending(founder)
    west = made.plants["west"]
    assert isinstance(west, Agent)
    lent = {
        "extreme": LIAR.canonical(),
        "damaged": LIAR.canonical()[:-8] + b"\xff" * 8,
        "of no tail": bytes(LENT_BYTES),
        "none": None,
    }[lie]
    monkeypatch.setattr(west, "_lent", lambda _: lent)
    kept = statistics_in(made.run().parameters, made.site.terms)
    if lie in ("damaged", "of no tail"):
        assert kept.names == ()  # a round of two is too small, so the model stays empty
        assert dict(read_log(made.site.log).rounds.excluded)["west"] == "6.7"
        with pytest.raises(SettingError, match="has shared a statistic yet"):
            export_statistics(made.site.folder, made.folder / "members.bin")
        return
    shared = kept.of("west")
    assert shared is not None
    assert shared.tail == (LIAR if lie == "extreme" else None)
    clean = read_record(made.record).rows(10_900, 11_140)
    vote = vote_of(
        kept,
        made.site.terms,
        clean,
        rounds=1,
        rules=None,
        false_alarms_per_week=1.0,
        borrowed=True,
    )
    assert isinstance(vote.model, VotedModel)
    votes = vote.model.votes(vote.framing.windows(clean))
    assert votes[2].any() == (lie == "extreme")
    assert votes[:2].mean() < 0.05


def test_members_lend_only_if_the_first_log_entry_says_so(
    founder: Founder, sluice: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate(NAMES):
        made.join(name, index)
    west = made.plants["west"]
    assert isinstance(west, Agent)
    monkeypatch.setattr(west, "_lent", lambda _: LIAR.canonical())
    assert statistics_in(made.run().parameters, made.site.terms).names == ()
    assert dict(read_log(made.site.log).rounds.excluded)["west"] == "6"
    exported = ("coordinator", "export-statistics", str(made.site.folder), "--out")
    refused = sluice(*exported, str(made.folder / "members.bin"))
    assert refused.code == 2
    assert "lend no thresholds" in refused.err
    out = str(made.folder / "model.safetensors")
    refused = sluice("plant", "model", str(made.folder / "north"), "--out", out, "--borrow")
    assert refused.code == 2
    assert "lend no thresholds" in refused.err


def lending_plan(**changes: object) -> FederationPlan:
    plan = FederationPlan(
        federation="water",
        host="127.0.0.1",
        port=18_443,
        link_port=18_000,
        reference=TrainingRows(record="line.csv", start=4_320, stop=8_640),
        policy=POLICY,
        approvers=("00" * 32,),
    )
    return replace(plan, lends=True, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("detector", "rule"),
    [("autoencoder", "fedavg"), ("autoencoder", "vote"), ("moments", "any-of-subsets")],
)
def test_only_a_vote_of_moments_lends(
    monkeypatch: pytest.MonkeyPatch, detector: str, rule: str
) -> None:
    known = dict.fromkeys(("fedavg", "vote"))  # a plug-in may bring a rule of any name
    monkeypatch.setattr(founding, "RULES", known)
    with pytest.raises(SettingError, match="lend thresholds to their own voters"):
        lending_plan(detector=detector, rule=rule)
    assert lending_plan(detector="moments", rule="vote").lends


def test_no_plant_lends_where_plants_share_in_groups() -> None:
    card = HelperCard(federation="water", host="127.0.0.1", port=1, key="00" * 32, authority="")
    with pytest.raises(SettingError, match="in groups no plant has one"):
        lending_plan(detector="moments", rule="vote", bound=True, members_min=9, helper=card)
