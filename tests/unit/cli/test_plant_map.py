"""`coordinator template` and `plant map`: what they print, write and refuse."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sluice.cli.app import app
from sluice.errors import RecordError, SettingError
from sluice.invariants import Invariant, Profile, RuleSet, Term, Tie, save_rules
from sluice.lab.plants import VariedSite, simulate, varied_site
from sluice.telemetry import FileLayout, Record, read_plant_file, read_record, write

RUN = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("map")
    write(simulate("line", seed=50, days=7), folder / "reference.parquet", FileLayout.PARQUET)
    made = RUN.invoke(
        app,
        [
            *("coordinator", "template", str(folder / "reference.parquet"), "--json"),
            *("--out", str(folder / "template.json")),
        ],
    )
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["still"] == ["S_PU4"]
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> VariedSite:
    site = varied_site("line", 2, seed=3, days=7)
    write(site.record, folder / "north.parquet", FileLayout.PARQUET)
    return site


def mapped(
    folder: Path, *more: str, record: str = "north.parquet", template: str = "template.json"
) -> tuple[int, str]:
    result = RUN.invoke(
        app,
        [
            *("plant", "map", str(folder / record)),
            *("--template", str(folder / template), *more),
        ],
    )
    if isinstance(result.exception, SettingError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


def test_proposals_are_shown_and_nothing_is_written(folder: Path, site: VariedSite) -> None:
    code, text = mapped(folder, "--json")
    payload = json.loads(text)
    assert code == (3 if payload["undecided"] else 0)
    right = [
        each for each in payload["tags"] if site.reference.get(each["tag"]) == each["proposed"]
    ]
    assert len(right) >= 0.95 * len(payload["tags"])
    assert {each["by"] for each in payload["tags"]} == {"proposal"}


def test_uncertain_proposals_are_not_written(folder: Path, site: VariedSite) -> None:
    tag = site.record.names[0]
    _, text = mapped(folder, "--json", "--set", f"{tag}=")
    open_ = json.loads(text)["undecided"]
    assert json.loads(text)["tags"][0] == {**json.loads(text)["tags"][0], "by": "operator"}
    out = folder / "uncertain.toml"
    code, shown = mapped(folder, "--set", f"{tag}=", "--out", str(out))
    assert (code, out.exists()) == ((3, False) if open_ else (0, True))
    assert ("decide it with --set" in shown) is bool(open_)


def test_a_decided_mapping_reads_the_record_as_points(folder: Path, site: VariedSite) -> None:
    decided = [
        part for tag, point in site.reference.items() for part in ("--set", f"{tag}={point}")
    ]
    code, text = mapped(folder, *decided, "--out", str(folder / "north.toml"))
    assert code == 0, text
    record = read_record(folder / "north.parquet", plant=read_plant_file(folder / "north.toml"))
    assert set(record.names) == set(site.reference.values())
    # The mapped record maps to itself: the plant file's points are replaced, not stacked.
    again, _ = mapped(
        folder,
        *(*decided, "--plant", str(folder / "north.toml"), "--out", str(folder / "again.toml")),
    )
    assert again == 0
    first, second = (read_plant_file(folder / name) for name in ("north.toml", "again.toml"))
    assert first.points == second.points


def test_undecided_tags_can_be_left_out(folder: Path, site: VariedSite) -> None:
    out = folder / "left.toml"
    code, _ = mapped(folder, "--leave-undecided", "--out", str(out))
    assert code == 0
    assert set(read_plant_file(out).points) <= set(site.reference)


def test_a_tag_whose_point_was_given_away_is_not_decided(folder: Path, site: VariedSite) -> None:
    """It was left out without a word, and the mapping was written."""
    tags = {point: tag for tag, point in site.reference.items()}
    given, kept = tags["L_T1"], tags["L_T2"]
    code, text = mapped(folder, "--json", "--set", f"{given}=L_T2")
    payload = json.loads(text)
    assert code == 3
    assert kept in payload["undecided"]
    assert "L_T2" not in payload["missing"]
    assert "L_T1" in payload["missing"]
    out = folder / "given.toml"
    code, shown = mapped(folder, "--set", f"{given}=L_T2", "--out", str(out))
    assert (code, out.exists()) == (3, False)
    assert "L_T2: decided by you" in shown
    assert "points without a tag: L_T1" in " ".join(shown.split())
    code, text = mapped(folder, "--json", "--set", f"{given}=L_T2", "--leave-undecided")
    assert code == 0
    assert "L_T1" in json.loads(text)["missing"]


def test_points_that_never_change_are_called_guesses(folder: Path) -> None:
    record = read_record(folder / "reference.parquet")
    values = np.array(record.values)
    values[:, record.index("S_PU3")] = values[0, record.index("S_PU4")]
    still = record.with_values(values)
    write(still, folder / "still.parquet", FileLayout.PARQUET)
    words = ["coordinator", "template", str(folder / "still.parquet")]
    assert RUN.invoke(app, [*words, "--out", str(folder / "still.json")]).exit_code == 0
    code, shown = mapped(folder, record="still.parquet", template="still.json")
    assert code == 3
    said = " ".join(shown.split())
    told = "guesses, because their points never change in the reference: S_PU3, S_PU4; look at the"
    assert told in said


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (("L_T1", "L_T2"), r"--set decides tag .* twice; keep one of the decisions"),
        (("L_T1", ""), r"--set decides tag .* twice; keep one of the decisions"),
    ],
)
def test_two_decisions_of_one_tag_are_refused(
    folder: Path, site: VariedSite, points: tuple[str, str], message: str
) -> None:
    tag = site.record.names[0]
    code, text = mapped(folder, *(word for each in points for word in ("--set", f"{tag}={each}")))
    assert code == 2
    assert re.search(message, text)


def test_two_tags_of_one_point_are_refused(folder: Path, site: VariedSite) -> None:
    first, second = site.record.names[:2]
    code, text = mapped(folder, "--set", f"{first}=L_T1", "--set", f"{second}=L_T1")
    assert code == 2
    assert "--set maps two tags to point 'L_T1'; a point is one tag" in text


@pytest.mark.usefixtures("site")
def test_a_record_at_another_stride_is_refused_with_what_helps(folder: Path) -> None:
    """Thinning does not help a record that has too few rows."""
    slow = ["coordinator", "template", str(folder / "reference.parquet"), "--every", "2"]
    assert RUN.invoke(app, [*slow, "--out", str(folder / "slow.json")]).exit_code == 0
    words = ["plant", "map", str(folder / "north.parquet"), "--template"]
    finer = RUN.invoke(app, [*words, str(folder / "slow.json")])
    slower = RUN.invoke(app, [*words, str(folder / "template.json"), "--every", "2"])
    for refused, told in (
        (finer, "has a row every 60 s and template 'reference' one every 120 s; thin the record"),
        (slower, "has a row every 120 s and template 'reference' one every 60 s; export more rows"),
    ):
        assert isinstance(refused.exception, RecordError)
        assert told in str(refused.exception)


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--set", "nowhere=L_T1"), "write TAG=POINT with a tag of the record"),
        (("--invitation", "template.json"), "name the template with --template, or an invitation"),
    ],
)
def test_wrong_settings_are_refused(folder: Path, more: tuple[str, ...], message: str) -> None:
    named = [str(folder / each) if each.endswith(".json") else each for each in more]
    code, text = mapped(folder, *named)
    assert code == 2
    assert message in " ".join(text.split())


def test_a_tag_without_an_equals_sign_is_no_decision(folder: Path, site: VariedSite) -> None:
    """`TAG=` maps a tag to no point; `TAG` alone is a slip."""
    code, text = mapped(folder, "--set", site.record.names[0])
    assert code == 2
    assert "write TAG=POINT with a tag of the record" in " ".join(text.split())


def test_the_plants_own_rules_tell_twins_apart(folder: Path) -> None:
    """Two pumps with one reading: only rules tie each to its tank, and only rules of these tags."""
    record = read_record(folder / "reference.parquet")
    values = np.array(record.values)
    values[:, record.index("F_PU2")] = values[:, record.index("F_PU1")]
    span = record.channel("F_PU1").span
    twins = replace(
        record.with_values(values),
        channels=tuple(
            replace(each, span=span) if each.name == "F_PU2" else each for each in record.channels
        ),
    )
    other = {"F_PU1": "FT-2", "F_PU2": "FT-1"}  # numbered against the order of the points

    def named(taken: Record, name: str, tags: Mapping[str, str]) -> Path:
        channels = tuple(
            replace(each, name=tags.get(each.name, each.name)) for each in taken.channels
        )
        write(replace(taken, channels=channels), folder / name, FileLayout.PARQUET)
        ties = (("L_T1", "F_PU1"), ("L_T2", "F_PU2"))
        tied = [tuple(tags.get(each, each) for each in pair) for pair in ties]
        rules = RuleSet(
            plant="line",
            profile=Profile.HARDENED,
            stride_s=taken.stride_s,
            channels=channels,
            invariants=tuple(
                Invariant(
                    relation=Tie(
                        name="~".join(pair),
                        channel=pair[1],
                        terms=(Term(channel=pair[0], coefficient=1.0),),
                        constant=0.0,
                    ),
                    tolerance=1.0,
                )
                for pair in tied
            ),
        )
        save_rules(rules, folder / f"{name}.rules.json")
        return folder / f"{name}.rules.json"

    known = named(twins, "known.parquet", {})
    own = named(twins, "own.parquet", other)
    words = ("coordinator", "template", str(folder / "known.parquet"), "--rules")
    out = ("--out", str(folder / "tied.json"))
    assert RUN.invoke(app, [*words, str(known), *out]).exit_code == 0
    strange = RUN.invoke(app, [*words, str(own), *out])
    assert "does not have; give rules that were mined from these tags" in str(strange.exception)

    def proposed(*more: str) -> dict[str, str]:
        _, text = mapped(folder, *more, "--json", record="own.parquet", template="tied.json")
        return {each["tag"]: each["proposed"] for each in json.loads(text)["tags"]}

    assert proposed()["FT-1"] == "F_PU1"  # by number, which is wrong here
    assert proposed("--rules", str(own))["FT-1"] == "F_PU2"
    code, said = mapped(folder, "--rules", str(known), record="own.parquet")
    assert code == 2
    assert "read 'F_PU1', which record 'own' does not have" in said


def test_a_site_of_the_lab_is_written(tmp_path: Path) -> None:
    out = tmp_path / "site.parquet"
    made = RUN.invoke(
        app,
        [
            *("data", "make", "line", "--sites", "varied", "--site", "3", "--days", "1"),
            *("--out", str(out), "--json"),
        ],
    )
    assert made.exit_code == 0, made.output
    reference = json.loads(made.stdout)["reference"]
    assert set(reference) == set(read_record(out).names)
    assert "F_PU2" not in reference.values()
    alone = RUN.invoke(app, ["data", "make", "line", "--site", "3", "--out", str(out)])
    assert isinstance(alone.exception, SettingError)
    assert "needs --sites varied" in str(alone.exception)
