"""Water networks: what the instruments show is what EPANET solved, and attacks really happen."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sluice.arrays import Bools, Floats, Run
from sluice.errors import RecordError, SettingError
from sluice.lab.plants.distribution.attacks import DistributionAttackKind
from sluice.lab.plants.distribution.controls import Override
from sluice.lab.plants.distribution.instruments import instruments
from sluice.lab.plants.distribution.model import BUNDLED, FROM_WNTR, OWN, load, quiet
from sluice.lab.plants.distribution.plant import IdleNetworkWarning, simulate
from sluice.lab.plants.distribution.solver import run
from sluice.telemetry.channel import Role
from sluice.telemetry.record import Label, Note, Record

REPOSITORY = Path(__file__).parents[4]
DATA = Path(os.environ.get("SLUICE_DATA", REPOSITORY.parent / "shared" / "data"))
CTOWN = DATA / "networks" / "ctown_map.inp"


@cache
def net3(*, seed: int = 3, attacks: bool = False) -> Record:
    return simulate(network="Net3", seed=seed, days=16, attacks=attacks)


@cache
def net1(*, attacks: bool = False) -> Record:
    return simulate(network="Net1", seed=5, days=30, attacks=attacks)


@cache
def ky4_attacked() -> Record:
    return simulate(network="ky4", seed=3, days=8, attacks=True)


def struck(note: Note) -> Run:
    assert note.first_row is not None
    return Run(note.first_row, note.first_row + note.rows)


def attacks_of(record: Record, kind: DistributionAttackKind) -> list[Run]:
    return [struck(note) for note in record.notes if note.what == f"attack {kind.value}"]


def explained(record: Record, network: str, tank: str) -> float:
    """R2 of a tank's level steps by the flows of its pipes, averaged over both rows."""
    model = load(network)
    inflow_l_s = np.sum([record.column(f"F_{p}") for p in model.get_links_for_node(tank)], axis=0)
    area_m2 = np.pi * model.get_node(tank).diameter ** 2 / 4
    steps_m = np.diff(record.column(f"L_{tank}"))
    expected_m = (inflow_l_s[1:] + inflow_l_s[:-1]) / 2 / 1000 * record.stride_s / area_m2
    return float(1 - np.var(steps_m - expected_m) / np.var(steps_m))


def test_a_record_says_what_each_channel_is() -> None:
    record = net3()
    assert record.name == "network:Net3"
    assert len(record) == 16 * 24
    assert [c.name for c in record.of_role(Role.LEVEL)] == ["L_1", "L_2", "L_3"]
    assert [c.name for c in record.of_role(Role.ACTUATOR)] == ["S_10", "S_335", "S_330"]
    assert {c.name for c in record.of_role(Role.FLOW)} == {
        *("F_10", "F_335", "F_330"),
        *("F_40", "F_50", "F_20"),
    }
    assert len(record.of_role(Role.PRESSURE)) == 12
    for channel in record.channels:
        readings = record.column(channel.name)
        if channel.codes is not None:
            assert set(readings) <= channel.codes.legal
        else:
            assert channel.span is not None
            assert channel.span.low <= readings.min() <= readings.max() <= channel.span.high


def test_a_network_without_tank_meters_has_only_the_actuators_flows() -> None:
    record = simulate(network="Net3", seed=3, days=1, meter_tank_pipes=False)
    assert [c.name for c in record.of_role(Role.FLOW)] == ["F_10", "F_335", "F_330"]


def test_the_bundled_names_are_the_networks_that_wntr_carries() -> None:
    from wntr.library import ModelLibrary  # noqa: PLC0415

    assert sorted(ModelLibrary().model_name_list) == sorted(FROM_WNTR)


def test_the_output_file_reads_as_wntr_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wntr.sim import EpanetSimulator  # noqa: PLC0415

    model = load("Net3")
    meters = instruments(model, meter_tank_pipes=True)
    shown = run(model, meters, rows=24)
    monkeypatch.chdir(tmp_path)
    with quiet():
        expected = EpanetSimulator(model).run_sim(file_prefix="theirs")
    for column, meter in enumerate(meters):
        match meter.name[0]:
            case "L" | "P":
                theirs = expected.node["pressure"][meter.element]
            case "F":
                theirs = expected.link["flowrate"][meter.element] * 1000 * meter.sign
            case _:
                theirs = expected.link["status"][meter.element].clip(0, 1)
        np.testing.assert_allclose(shown[:, column], theirs.to_numpy()[:24], atol=2e-3)


# -- the clean plant --------------------------------------------------------------------------


def test_a_state_agrees_with_the_flow_it_switches() -> None:
    record = net3()
    for pump in ("10", "335"):
        on = record.column(f"S_{pump}") == 1
        assert (record.column(f"F_{pump}")[on] > 1).all()
        assert not record.column(f"F_{pump}")[~on].any()


def test_a_timed_schedule_goes_on_after_the_week_it_was_written_for() -> None:
    state = net3().column("S_10").reshape(16, 24)
    np.testing.assert_array_equal(state, np.tile(state[0], (16, 1)))
    assert 0 < state[0].sum() < 24


def test_days_differ_unless_demand_follows_its_pattern_to_the_letter() -> None:
    noisy, exact = (
        simulate(network="Net1", seed=1, days=6, demand_noise=noise) for noise in (0.1, 0.0)
    )

    def spread(record: Record) -> float:
        flows = record.column("F_110").reshape(6, 24)[2:]
        return float(flows.std(axis=0).mean())

    assert spread(exact) < 0.5 * spread(noisy)


def test_the_same_seed_makes_the_same_record_and_another_seed_another() -> None:
    first, again, other = (
        simulate(network="Net1", seed=seed, days=3, attacks=True) for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first.values, again.values)
    assert first.notes == again.notes
    assert not np.array_equal(first.values, other.values)


@pytest.mark.parametrize(
    ("network", "days", "stride_s", "least"),
    [
        ("Net3", 14, 3600, 0.80),
        ("Net3", 4, 300, 0.97),
        ("ky4", 6, 3600, 0.80),
        ("ky4", 3, 300, 0.97),
    ],
)
def test_the_tank_pipes_explain_the_levels(
    network: str, days: float, stride_s: int, least: float
) -> None:
    record = simulate(network=network, seed=3, days=days, stride_s=stride_s)
    for channel in record.of_role(Role.LEVEL):
        assert explained(record, network, channel.name.removeprefix("L_")) > least, channel.name


# -- controls ---------------------------------------------------------------------------------


def states_in_epanet(path: Path, links: list[str], hours: int) -> Floats:
    """Return what EPANET itself shows every hour, from the file as it is."""
    from wntr.epanet.toolkit import ENepanet  # noqa: PLC0415
    from wntr.epanet.util import EN  # noqa: PLC0415

    toolkit = ENepanet()
    with quiet():
        toolkit.ENopen(str(path), "raw.rpt", "raw.bin")
        toolkit.ENsettimeparam(EN.DURATION, (hours - 1) * 3600)
        toolkit.ENsettimeparam(EN.HYDSTEP, 600)
        toolkit.ENsettimeparam(EN.REPORTSTEP, 3600)
        places = [toolkit.ENgetlinkindex(link) for link in links]
        toolkit.ENopenH()
        toolkit.ENinitH(0)
        shown, step_s = [], 1
        while step_s > 0:
            if toolkit.ENrunH() % 3600 == 0:
                shown.append([toolkit.ENgetlinkvalue(place, EN.STATUS) for place in places])
            step_s = toolkit.ENnextH()
        toolkit.ENcloseH()
        toolkit.ENclose()
    return np.array(shown)


@pytest.mark.parametrize("network", ["Net1", "Net3", "ky4", *OWN])
def test_actuators_switch_when_epanet_switches_them(
    network: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours, model = 72, load(network)
    meters = tuple(m for m in instruments(model, meter_tank_pipes=False) if m.name[0] == "S")
    model.options.time.duration = (hours - 1) * 3600
    model.options.time.hydraulic_timestep = 600
    model.options.time.report_timestep = 3600
    ours = run(model, meters, rows=hours)
    monkeypatch.chdir(tmp_path)
    theirs = states_in_epanet(Path(model.name), [meter.element for meter in meters], hours)
    np.testing.assert_array_equal(ours, theirs)
    assert np.ptp(ours, axis=0).any()


def ridge_with(tmp_path: Path, old: str, new: str) -> str:
    text = Path(str(load("Ridge").name)).read_text()
    assert old in text
    path = tmp_path / "Ridge.inp"
    path.write_text(text.replace(old, new))
    return str(path)


def test_of_two_controls_that_apply_the_last_wins_and_the_pump_goes_on(tmp_path: Path) -> None:
    """As rules, the first won: the pump stopped on the first day and never ran again."""
    stop, start = (
        " LINK PU1 CLOSED IF NODE T2 ABOVE 2.0\n",
        " LINK PU1 OPEN IF NODE T1 BELOW 3.4\n",
    )
    record = simulate(network=ridge_with(tmp_path, start, stop + start), seed=1, days=7)
    state = record.column("S_PU1").reshape(7, 24)
    assert state.any(axis=1).all()
    assert (~state.astype(bool)).any(axis=1).all()


def test_a_schedule_longer_than_the_files_own_run_is_repeated_as_a_whole(tmp_path: Path) -> None:
    timed = "".join(
        f" LINK P13 {state} AT TIME {hour}\n"
        for state, hour in (("OPEN", 1), ("CLOSED", 5), ("OPEN", 49), ("CLOSED", 56))
    )
    daily = " LINK P13 OPEN AT CLOCKTIME 10 PM\n LINK P13 CLOSED AT CLOCKTIME 5 AM\n"
    path = ridge_with(tmp_path, daily, timed)
    text = Path(path).read_text()
    Path(path).write_text(text.replace("Duration            48:00", "Duration            24:00"))
    hours_open = simulate(network=path, seed=1, days=9).column("S_P13").reshape(9, 24).sum(axis=1)
    np.testing.assert_array_equal(hours_open, [4, 0, 7] * 3)


@pytest.mark.parametrize("network", [name for name in BUNDLED if name not in {"Net2", "Net6"}])
def test_every_bundled_network_with_actuators_switches(network: str) -> None:
    record = simulate(network=network, seed=0, days=4)  # Net6 takes too long for a test
    states = np.column_stack([record.column(c.name) for c in record.of_role(Role.ACTUATOR)])
    assert np.ptp(states, axis=0).any()


def test_a_network_in_which_nothing_switches_is_announced(tmp_path: Path) -> None:
    path = tmp_path / "still.inp"
    path.write_text(
        "[JUNCTIONS]\nJ1 10 1\n[RESERVOIRS]\nR 20\n[TANKS]\nT 12 2 0 5 20 0\n"
        "[PIPES]\nP1 J1 T 100 200 100 0 Open\n[PUMPS]\nPU R J1 POWER 0.1\n"
        "[OPTIONS]\nUnits LPS\n[TIMES]\nDuration 24:00\n[END]\n"
    )
    with pytest.warns(
        IdleNetworkWarning, match=r"nothing switches in 3 days .*none of PU switches"
    ):
        simulate(network=str(path), seed=1, days=3)
    simulate(network=str(path), seed=1, days=1)  # too short to say


# -- attacks ----------------------------------------------------------------------------------


def test_a_tank_pipe_that_only_ever_filled_can_still_be_seen_to_drain() -> None:
    """A meter that cannot show an attack's reverse flow would break the balance by itself."""
    for pipe in ("F_P-539", "F_P-36", "F_P-541", "F_P-540", "F_P-538"):
        span = ky4_attacked().channel(pipe).span
        assert span is not None
        assert span.low == -span.high


@pytest.mark.parametrize(("is_open", "level"), [(False, "start"), (True, "stop")])
def test_a_forced_pump_obeys_the_intruder_and_not_its_tank(*, is_open: bool, level: str) -> None:
    """Net1's pump starts when its tank falls below 33.5 m and stops above 42.7 m."""
    rows, first, last = 96, 24, 72
    model = load("Net1")
    meters = instruments(model, meter_tank_pipes=True)
    model.options.time.duration = rows * 3600
    model.options.time.hydraulic_timestep = 600
    free = run(model, meters, rows=rows)
    window = Override(link="9", is_open=is_open, start_s=first * 3600, stop_s=last * 3600)
    forced = run(model, meters, rows=rows, overrides=(window,))
    names = [meter.name for meter in meters]
    flow, tank = names.index("F_9"), names.index("L_2")
    np.testing.assert_array_equal(free[:first], forced[:first])
    assert 0.2 < (free[first:last, flow] > 0).mean() < 0.8
    assert ((forced[first:last, flow] > 0) == is_open).all()
    reached = forced[first:last, tank]
    crossed = reached > 42.7 if level == "stop" else reached < 33.5
    assert crossed.mean() > 0.5, "the tank's own control would have acted, again and again"
    assert ((forced[last + 1 :, flow] > 0) != is_open).any(), "released, the tank has its say"


def test_a_pump_without_controls_returns_to_its_state_after_the_window() -> None:
    record = ky4_attacked()
    forced = [note for note in record.notes if note.channel == "S_~@Pump-2"]
    assert forced, "the seed forces ky4's second pump, which nothing controls"
    state = record.column("S_~@Pump-2")
    off = np.zeros(len(record), np.bool_)
    for note in forced:
        off[struck(note).slice] = True
    np.testing.assert_array_equal(state == 0, off)


def test_every_kind_of_attack_comes_up_and_is_labelled() -> None:
    record = net1(attacks=True)
    assert {note.what.removeprefix("attack ") for note in record.notes} == set(
        DistributionAttackKind
    )
    assert tuple(struck(note) for note in record.notes) == record.attack_segments
    assert not (net1().labels == Label.ATTACK).any()
    first = record.attack_segments[0].start
    assert first >= 24
    np.testing.assert_array_equal(record.values[:first], net1().values[:first])


def test_a_forced_pump_stays_forced_through_its_window() -> None:
    record, state, flow = net1(attacks=True), *pump(net1(attacks=True))
    for kind, expected in (
        (DistributionAttackKind.FORCED_OFF, False),
        (DistributionAttackKind.CONCEALED, False),
        (DistributionAttackKind.FORCED_ON, True),
    ):
        for window in attacks_of(record, kind):
            assert (state[window.slice] == expected).all()
            assert ((flow[window.slice] > 0) == expected).all()
            assert (pump(net1())[0][window.slice] != expected).mean() > 0.3


def pump(record: Record) -> tuple[Bools, Floats]:
    return record.column("S_9") == 1, record.column("F_9")


def test_a_concealed_attack_shows_the_day_before_it_over_again() -> None:
    record = net1(attacks=True)
    windows = [
        window
        for kind in (DistributionAttackKind.CONCEALED, DistributionAttackKind.LEVEL_REPLAY)
        for window in attacks_of(record, kind)
    ]
    assert max(window.rows for window in windows) > 24, "one of them outlasts a day"
    for window in windows:
        level = record.column("L_2")
        day_before = level[window.start - 24 : window.start]
        np.testing.assert_array_equal(level[window.slice], np.resize(day_before, window.rows))


def test_an_offset_level_comes_and_goes_in_one_step() -> None:
    record = net1(attacks=True)
    for window in attacks_of(record, DistributionAttackKind.LEVEL_OFFSET):
        steps = np.diff(record.column("L_2"))
        metered = record.column("F_110") * 3.6 / (np.pi * 15.3924**2 / 4)
        unexplained = np.abs(steps - (metered[1:] + metered[:-1]) / 2)
        assert unexplained[window.start - 1] > 1
        assert unexplained[window.start : window.stop - 1].max() < 1.5


def test_a_network_without_pumps_is_attacked_at_its_gauge() -> None:
    with pytest.warns(IdleNetworkWarning, match="no pump, valve or controlled pipe"):
        record = simulate(network="Net2", seed=1, days=8, attacks=True)
    assert {note.channel for note in record.notes} == {"L_26"}


def test_a_record_without_room_after_its_first_day_is_refused_attacks() -> None:
    with pytest.raises(SettingError, match="too short for attacks"):
        simulate(network="Net1", seed=1, days=1, attacks=True)


# -- what the user gives ----------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "meant"), [("net3", "Net3"), ("KY-4", "ky4"), ("Net33", "Net3")])
def test_an_unknown_network_is_answered_with_the_known_and_the_nearest(
    typed: str, meant: str
) -> None:
    with pytest.raises(SettingError, match=rf"Net1, Net2, .*; did you mean '{meant}'\?"):
        simulate(network=typed, seed=1, days=1)


def test_a_network_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingError, match=r"no network file 'missing\.inp'"):
        simulate(network="missing.inp", seed=1, days=1)


@pytest.mark.parametrize(
    "text",
    ["", "not a network\n", "[JUNCTIONS]\nJ1 ten\n", "[PIPES]\n1 2 3\n", "[JUNCTIONS]\nJ1 10\n"],
)
def test_a_file_that_is_no_network_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.inp"
    path.write_text(text)
    with pytest.raises(RecordError, match="EPANET network") as refused:
        simulate(network=str(path), seed=1, days=1)
    assert "\n" not in str(refused.value)


def test_a_network_that_epanet_refuses_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "dry.inp"
    path.write_text(
        "[JUNCTIONS]\nJ1 10 1\nJ2 10 1\n"
        "[PIPES]\nP1 J1 J2 100 100 100 0 Open\n"
        "[OPTIONS]\nUnits LPS\n[END]\n"
    )
    with pytest.raises(RecordError, match="EPANET cannot solve") as refused:
        simulate(network=str(path), seed=1, days=1)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("stride_s", [0, 30, 90, 3700, 172_800])
def test_a_stride_that_does_not_divide_the_day_is_refused(stride_s: int) -> None:
    with pytest.raises(SettingError, match="divide a day"):
        simulate(network="Net1", seed=1, stride_s=stride_s)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="demand noise"):
        simulate(network="Net1", seed=1, demand_noise=1.5)
    with pytest.raises(SettingError, match="at least 2 rows"):
        simulate(network="Net1", seed=1, days=float("nan"))


def test_a_run_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    scratch = tmp_path / "scratch"
    work = tmp_path / "work"
    scratch.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    simulate(network="Net1", seed=1, days=1)
    assert not any(scratch.iterdir())
    assert not any(work.iterdir())
    assert Path.cwd() == work
    assert capfd.readouterr() == ("", "")


def test_importing_the_plant_does_not_import_wntr() -> None:
    probe = "import sys, sluice.lab.plants.distribution; sys.exit('wntr' in sys.modules)"
    subprocess.run([sys.executable, "-c", probe], check=True)


@pytest.mark.data
@pytest.mark.skipif(not CTOWN.is_file(), reason=f"C-Town is not at {CTOWN}; set SLUICE_DATA")
def test_a_users_network_has_the_channels_of_its_control_room() -> None:
    record = simulate(network=str(CTOWN), seed=1, days=3, attacks=True)
    assert record.name == "network:ctown_map"
    assert [c.name for c in record.of_role(Role.LEVEL)] == [f"L_T{tank}" for tank in range(1, 8)]
    assert [c.name for c in record.of_role(Role.ACTUATOR)] == [
        *(f"S_PU{pump}" for pump in range(1, 12)),
        "S_V2",
    ]
    assert record.attack_segments
