"""The page of a federation: its round, who was aggregated, each plant's state, the detector."""

import plotly.graph_objects as go

from sluice.attestation.protocol import step_in_words
from sluice.network.coordinator import PlantWord
from sluice.reports import (
    Cell,
    Columns,
    DataColumn,
    DataTable,
    Drawing,
    PageSection,
    Part,
    Prose,
    ReportPage,
    Tile,
    Tone,
)
from sluice.reports.dashboard.snapshot import ROUNDS_SHOWN, PlantRow, RoundRow, Snapshot

__all__ = ["federation_page"]

HEIGHT_PX = 300
MOST_ROUNDS = 50
TONES = {
    PlantWord.TRAINED: Tone.GOOD,
    PlantWord.ATTESTED: Tone.WARN,
    PlantWord.WAITING: Tone.WARN,
    PlantWord.SILENT: Tone.BAD,
    PlantWord.LEFT_OUT: Tone.BAD,
    PlantWord.SUSPENDED: Tone.BAD,
    PlantWord.REMOVED: Tone.BAD,
}
"""Only a plant whose update is there is green: being attested is not yet taking part."""


def federation_page(snapshot: Snapshot) -> ReportPage:
    """Return the page of a federation at one moment."""
    return ReportPage(
        kind="Federation",
        title=f"{snapshot.federation}: round {snapshot.progress} of {snapshot.rounds}",
        tiles=_tiles(snapshot),
        sections=(
            PageSection(title="Plants", parts=_plants(snapshot)),
            PageSection(
                title="Participation and detector", short="Charts", parts=_charts(snapshot)
            ),
            PageSection(title="Rounds", parts=_rounds(snapshot)),
        ),
        search="plants",
        end="For a proof that fails, only the step is known; the reasons stay at the plant.",
    )


def _tiles(snapshot: Snapshot) -> tuple[Tile, ...]:
    return tuple(
        tile
        for tile in (
            _round(snapshot),
            _aggregated(snapshot),
            _gate(snapshot),
            *_quality(snapshot),
            _log(snapshot),
        )
        if tile is not None
    )


def _round(snapshot: Snapshot) -> Tile:
    phase = snapshot.phase
    if snapshot.until:
        phase += f", until {snapshot.until[11:19]} UTC"
    if snapshot.round != snapshot.progress:
        phase += f"; round {snapshot.round} of the log, because rounds were given up"
    value = f"{snapshot.progress} of {snapshot.rounds}"
    return Tile(label="round", value=value, note=phase, key="round")


def _aggregated(snapshot: Snapshot) -> Tile:
    if not snapshot.history:
        value = f"0 of {len(snapshot.plants)} plants"
        note = "no round has ended"
        return Tile(label="aggregated", value=value, note=note, key="aggregated")
    last = snapshot.history[-1]
    joined = [plant for plant in snapshot.plants if plant.state.word is not PlantWord.REMOVED]
    total = max(len(joined), len(last.members))
    left_out = ", ".join(sorted(name for name, _ in last.excluded))
    note = ", ".join(last.members) or "none: the model is unchanged"
    return Tile(
        label=f"aggregated in round {last.round}",
        value=f"{len(last.members)} of {total} plants",
        note=f"{note}; left out: {left_out}" if left_out else note,
        tone=Tone.GOOD if len(last.members) == total else Tone.WARN,
        key="aggregated",
    )


def _gate(snapshot: Snapshot) -> Tile:
    any_age = "; batches of any age (--history)" if snapshot.any_age else ""
    statistic = f". {snapshot.statistic}" if snapshot.statistic else ""
    return Tile(
        label="gate",
        value="in shadow" if "shadow" in snapshot.gate else "enforced",
        note=f"{snapshot.gate}{any_age}{statistic}",
        tone=Tone.WARN if "shadow" in snapshot.gate else Tone.PLAIN,
        key="gate",
    )


def _quality(snapshot: Snapshot) -> tuple[Tile, ...]:
    if not snapshot.quality:
        return ()
    last = snapshot.quality[-1]
    clean = Tile(
        label="model, clean reference",
        value=f"{last.error:.4g}",
        note=f"mean error after round {last.round}; alarms above {last.threshold:.4g}",
        key="error",
    )
    if last.auc_pr is None:
        return (clean,)
    recall = "unknown" if last.recall is None else f"{last.recall:.3f}"
    labelled = Tile(
        label="model, labelled record",
        value=f"{last.auc_pr:.3f}",
        note=f"AUC-PR; recall {recall} at the threshold",
        key="auc-pr",
    )
    return clean, labelled


def _log(snapshot: Snapshot) -> Tile:
    if snapshot.fault:
        return Tile(
            label="log", value="does not verify", note=snapshot.fault, tone=Tone.BAD, key="log"
        )
    note = f"{snapshot.entries} entries, head {snapshot.head[:16]}"
    if snapshot.trusted:
        note += (
            f"; the first {snapshot.trusted} by the coordinator's signed snapshot ('sluice "
            "audit-log verify' verifies all)"
        )
    return Tile(label="log", value="verifies", note=note, tone=Tone.GOOD, key="log")


def _plants(snapshot: Snapshot) -> tuple[Part, ...]:
    columns = (
        DataColumn(name="plant"),
        DataColumn(name="state"),
        *(
            DataColumn(name=name, numeric=True)
            for name in (
                "absent rounds",
                "malformed",
                "proof time",
                "verify time",
                "token time",
                "log seen",
            )
        ),
    )
    rows = tuple(_plant(plant, snapshot.entries) for plant in snapshot.plants)
    said = Prose(
        text="Proof and token times run from the question to the answer and include the transfer "
        "and Flower's polling.",
        small=True,
    )
    return DataTable(columns=columns, rows=rows, key="plants", searched=True), said


def _plant(plant: PlantRow, entries: int) -> tuple[str | Cell, ...]:
    state = plant.state
    return (
        plant.name,
        Cell(text=state.word.value, note=state.detail, tone=TONES[state.word]),
        str(plant.absences),
        str(plant.malformed),
        _seconds(plant.prove_s),
        _seconds(plant.verify_s),
        _seconds(plant.train_s),
        f"{plant.seen} of {entries}",
    )


def _rounds(snapshot: Snapshot) -> tuple[Part, ...]:
    columns = (
        DataColumn(name="round"),
        DataColumn(name="aggregated"),
        DataColumn(name="left out because"),
        DataColumn(name="duration", numeric=True),
    )
    shown = snapshot.history[-MOST_ROUNDS:][::-1]
    if not shown:
        return (Prose(text="No round has ended."),)
    rows = tuple(
        (
            str(row.round),
            ", ".join(row.members) or "none",
            _left_out(row),
            _seconds(row.seconds),
        )
        for row in shown
    )
    return (DataTable(columns=columns, rows=rows, key="rounds"),)


def _left_out(row: RoundRow) -> str:
    return "; ".join(f"{name}: {step_in_words(step)} (step {step})" for name, step in row.excluded)


def _charts(snapshot: Snapshot) -> tuple[Part, ...]:
    if not snapshot.history:
        return (Prose(text="The charts begin with the first round."),)
    last = (Prose(text=f"The last {ROUNDS_SHOWN} rounds.", small=True),)
    shown = last if len(snapshot.history) == ROUNDS_SHOWN else ()
    drawings = [Drawing(figure=_participation(snapshot), title="Participation", tools=False)]
    if snapshot.quality:
        drawings.append(Drawing(figure=_detector(snapshot), title="Detector", tools=False))
        return (Columns(drawings=tuple(drawings)), *shown)
    said = "No round has been measured yet, or the reference record is not on this machine."
    return (Columns(drawings=tuple(drawings)), Prose(text=said, small=True), *shown)


def _participation(snapshot: Snapshot) -> go.Figure:
    rounds = [row.round for row in snapshot.history]
    figure = go.Figure(
        [
            go.Bar(
                x=rounds,
                y=[len(row.members) for row in snapshot.history],
                hovertext=[", ".join(row.members) for row in snapshot.history],
                name="aggregated",
                marker={"color": "var(--level)"},
            ),
            go.Bar(
                x=rounds,
                y=[len(row.excluded) for row in snapshot.history],
                hovertext=[", ".join(name for name, _ in row.excluded) for row in snapshot.history],
                name="left out",
                marker={"color": "var(--bad)"},
            ),
        ]
    )
    figure.update_layout(
        barmode="stack",
        legend={"traceorder": "normal"},
        yaxis={"title": "plants", "rangemode": "tozero", "nticks": 6, "tickformat": "d"},
    )
    return _shaped(figure, rounds)


def _detector(snapshot: Snapshot) -> go.Figure:
    rounds = [each.round for each in snapshot.quality]
    lines = [
        ("mean error, clean reference", [each.error for each in snapshot.quality], "level", "y"),
        ("alarm threshold", [each.threshold for each in snapshot.quality], "limit", "y"),
    ]
    if any(each.auc_pr is not None for each in snapshot.quality):
        areas = [
            each.auc_pr if each.auc_pr is not None else float("nan") for each in snapshot.quality
        ]
        lines.append(("AUC-PR, labelled record", areas, "actuator", "y2"))
    figure = go.Figure(
        [
            go.Scatter(
                x=rounds,
                y=values,
                name=name,
                mode="lines+markers",
                line={"color": f"var(--{colour})"},
                yaxis=axis,
            )
            for name, values, colour, axis in lines
        ]
    )
    figure.update_layout(
        yaxis={"title": "error", "rangemode": "tozero"},
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "range": [0, 1.05],
            "tickvals": [0, 0.5, 1],
            "showgrid": False,
        },
    )
    return _shaped(figure, rounds)


def _shaped(figure: go.Figure, rounds: list[int]) -> go.Figure:
    figure.update_layout(
        height=HEIGHT_PX,
        margin={"l": 50, "r": 40, "t": 40, "b": 46},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        showlegend=True,
        xaxis={"title": "round", "dtick": 1 if len(rounds) < 15 else None},
    )
    return figure


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.1f} s"
