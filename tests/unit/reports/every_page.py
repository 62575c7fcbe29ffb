"""One page of each kind, made of hostile names: tags, plants, rules and files."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from sluice.admission import HardenedPolicy, judge
from sluice.detector import DetectorKind, train
from sluice.evaluation import Ballots, certify
from sluice.invariants import Profile, RuleSet, mine
from sluice.lab.plants import simulate
from sluice.lab.reports import (
    AuditPanel,
    Bar,
    Stem,
    StoryPage,
    StoryPlant,
    Way,
    lab_report,
    write_coverage_figure,
    write_lab_page,
    write_separation_figure,
    write_story_page,
)
from sluice.lab.results.store import ResultStore
from sluice.lab.results.work import GridFacts, WorkRow
from sluice.network.coordinator.states import PlantState, PlantWord
from sluice.reports import (
    rendered_main,
    write_certificate_page,
    write_record_page,
    write_score_page,
    write_verdict_page,
)
from sluice.reports.dashboard.federation_page import federation_page
from sluice.reports.dashboard.quality import RoundQuality
from sluice.reports.dashboard.snapshot import PlantRow, RoundRow, Snapshot
from sluice.telemetry import Label, Note, Record, summarise
from tests.unit.lab.reports.stored_cells import failed

TAGS = (
    "</script><script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "<a href='http://evil.example/'>F_PU1</a>",
    "var(--bad) {{ 7 * 7 }} ${document.title='owned'}",
    "' autofocus onfocus='document.title=1",
)
"""Names that would become markup, a script, a link or an attribute on a page that trusts them."""
NAME = f"march{TAGS[0]}"
WIDE_CHANNELS, WIDE_ROWS = 123, 20_000  # as wide as WADI


@cache
def plant() -> Record:
    """Return a plant with hostile tags."""
    record = simulate("line", seed=0, days=8)
    renamed = dict(zip(("L_T2", "F_PU1", "S_PU1", "F_PU2", "S_PU2"), TAGS, strict=True))
    channels = tuple(
        replace(each, name=renamed.get(each.name, each.name), why=f"named like {TAGS[1]}")
        for each in record.channels
    )
    return replace(record, name=NAME, channels=channels, notes=(Note(what=TAGS[1]),))


@cache
def _rules() -> RuleSet:
    return mine(plant().rows(0, 4_320), plant().rows(4_320, 8_640), profile=Profile.HARDENED)


@cache
def attacked() -> Record:
    """Return a batch in which a pump's state is inverted, labelled as an attack."""
    batch = plant().rows(8_640, 10_640)
    values, labels = batch.values.copy(), batch.labels.copy()
    column = batch.index(TAGS[2])
    values[500:900, column] = 1 - values[500:900, column]
    values[1_500:1_800, batch.index(TAGS[0])] = values[1_500, batch.index(TAGS[0])]
    labels[500:900] = Label.ATTACK
    return replace(batch, values=values, labels=labels)


def write_record(path: Path) -> None:
    write_record_page(attacked(), summarise(attacked()), path)


def write_wide_record(path: Path) -> None:
    """Write a record whose readings are noise, so that no point can be left out."""
    one = plant().channels[0]
    drawn = np.random.default_rng(0).normal(size=(WIDE_ROWS, WIDE_CHANNELS))
    labels = np.zeros(WIDE_ROWS, np.int8)
    for attack in range(0, WIDE_ROWS, 400):
        labels[attack : attack + 100] = Label.ATTACK
    seconds = np.arange(WIDE_ROWS) * np.timedelta64(1_000_000, "us")
    times = np.datetime64("2026-01-01T00:00:00", "us") + seconds
    record = replace(
        plant(),
        channels=tuple(replace(one, name=f"{TAGS[0]}{at}") for at in range(WIDE_CHANNELS)),
        values=drawn,
        labels=labels,
        times=times,
        stride_s=1.0,
    )
    write_record_page(record, summarise(record), path)


def write_verdict(path: Path) -> None:
    write_verdict_page(judge(attacked(), _rules(), HardenedPolicy()), path)


def write_admitted(path: Path) -> None:
    write_verdict_page(judge(plant().rows(8_640, 10_640), _rules(), HardenedPolicy()), path)


def write_score(path: Path) -> None:
    detector = train(plant().rows(0, 4_000), kind=DetectorKind.SUBSPACE)
    write_score_page(detector.score(attacked()), attacked(), detector, path)


@cache
def ballots() -> Ballots:
    """Return the votes of three members with hostile names."""
    votes = np.stack([attacked().labels == Label.ATTACK] * 3)
    votes[0, :300] = True
    return Ballots(
        members=TAGS[:3],
        voters=tuple(frozenset((tag,)) for tag in TAGS[:3]),
        votes=votes,
        needed=2,
        labels=attacked().labels,
        last_rows=np.arange(len(attacked())),
        row_labels=attacked().labels,
        stride_s=attacked().stride_s,
    )


def write_certificate(path: Path) -> None:
    certificate = certify(ballots(), malicious=1)
    write_certificate_page(certificate, ballots(), attacked(), path, clean=plant())


def write_separation(path: Path) -> None:
    bars = tuple(
        Bar(kind=kind, share=share, admitted_share=0.5)
        for kind, share in (("honest", 0.0), (TAGS[0], 0.3), (TAGS[2], 0.9))
    )
    write_separation_figure([AuditPanel(title=tag, bars=bars) for tag in TAGS[:2]], path)


def write_coverage(path: Path) -> None:
    stems = [Stem(index=at, rows=10 + at, shares=(0.02 * at, 0.3)) for at in range(8)]
    write_coverage_figure(stems, TAGS[:2], path)


def write_story(path: Path) -> None:
    plants = tuple(
        StoryPlant(
            name=tag,
            lies=at == 0,
            admitted=at > 0,
            violating_share=0.1 * at,
            why=tag,
            proof_bytes=1_000,
            seconds=1.0,
        )
        for at, tag in enumerate(TAGS)
    )
    ways = tuple(
        Way(name=name, recall=0.3, precision=0.3, other_recall=None, malicious_in=0)
        for name in ("clean", "honest-only", "naive", "physics-aware", "gated")
    )
    story = StoryPage(
        plants=plants,
        ways=ways,
        rules=TAGS,
        rounds=3,
        seed=0,
        certificate=certify(ballots(), malicious=1),
    )
    write_story_page(story, path)


def write_grid(path: Path) -> None:
    cell = failed("clean", 0, TAGS[0])
    row = WorkRow(id="w", layout="l", rule="fedavg", settings="{}", cells=((0, cell.asked),))
    facts = GridFacts(name=NAME, stand_ins=(TAGS[1],))
    store = ResultStore.create(path.parent / f"{path.stem}-results", facts, [row])
    write_lab_page(lab_report(store), path)
    store.close()


def snapshot() -> Snapshot:
    """Return a federation whose plants have hostile names."""
    states = (
        PlantState(word=PlantWord.TRAINED, detail="in round 2", takes_part=True),
        PlantState(word=PlantWord.SILENT, detail=TAGS[0]),
    )
    plants = tuple(
        PlantRow(
            name=tag,
            state=states[at % 2],
            takes_part=at % 2 == 0,
            absences=at,
            malformed=0,
            prove_s=1.5,
            verify_s=0.02,
            train_s=None,
            seen=3,
        )
        for at, tag in enumerate(TAGS)
    )
    rounds = tuple(
        RoundRow(
            round=number, model="0" * 64, members=TAGS[:2], excluded=((TAGS[2], "4"),), seconds=2.0
        )
        for number in (1, 2)
    )
    quality = tuple(
        RoundQuality(round=number, error=0.5, threshold=1.5, auc_pr=0.4, recall=0.3)
        for number in (1, 2)
    )
    return Snapshot(
        federation=NAME,
        gate="by zero-knowledge proof (full)",
        any_age=False,
        round=2,
        progress=2,
        rounds=8,
        phase="between rounds",
        until="",
        entries=12,
        trusted=0,
        head="ab" * 32,
        fault=TAGS[1],
        plants=plants,
        history=rounds,
        quality=quality,
    )


def write_dashboard(path: Path) -> None:
    page = federation_page(snapshot())
    path.write_text(rendered_main(page, template="live.html.j2"), encoding="utf-8")


PAGES: dict[str, Callable[[Path], None]] = {
    "record": write_record,
    "wide record": write_wide_record,
    "verdict": write_verdict,
    "admitted": write_admitted,
    "score": write_score,
    "certificate": write_certificate,
    "separation": write_separation,
    "coverage": write_coverage,
    "grid": write_grid,
    "demo": write_story,
    "dashboard": write_dashboard,
}
