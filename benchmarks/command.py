"""`python -m benchmarks`: measure speed beside a rival in the same run."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.speed.gate import GateBench, Timing, bench_gate
from sluice.attestation.systems.full import StatisticName
from sluice.cli import Json, Quiet, counted, emit, known, out, table, working
from sluice.errors import SettingError
from sluice.files import atomically

__all__ = ["bench"]

BENCHES = ("gate", "train", "attest-full", "attest-sampled")


def bench(
    name: Annotated[
        str,
        typer.Argument(help="What to measure: gate, train, attest-full or attest-sampled."),
    ] = "gate",
    rows: Annotated[
        list[int] | None,
        typer.Option(
            help="How many rows to judge, to train each client on, or to prove (may be repeated).",
            show_default="1,000,000; 4,734 for train; 1,024 and 4,734 for attest-full",
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats",
            "--runs",
            min=1,
            help="Repetitions; the fastest is reported, the median for attest-full.",
            show_default="15; 3 for train; 5 for attest-full",
        ),
    ] = None,
    clients: Annotated[int, typer.Option(min=1, help="How many clients train.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="How many rounds they train.")] = 25,
    plant: Annotated[
        str, typer.Option(help="Plant whose rules are proven: treatment, treatment-moving or line.")
    ] = "treatment",
    scaling: Annotated[
        bool,
        typer.Option(
            "--scaling",
            help="attest-full: 40 batches of up to 100,000 rows and one of 524,288, or of --rows.",
        ),
    ] = False,
    page: Annotated[
        Path | None, typer.Option("--out", help="Page to write the result of --scaling to.")
    ] = None,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="Measure the rival of attest-sampled at 32 samples, not 8."
        ),
    ] = False,
    rival: Annotated[
        Path, typer.Option(help="Folder in which 'make rival' installed stock circom and snarkjs.")
    ] = Path("build"),
    statistic: Annotated[
        str | None,
        typer.Option(
            help="attest-full: measure with and without this statistic (moments, hidden)."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure Sluice side by side with a rival on this machine.

    gate: mine the simulated treatment plant, then judge a long record of it by the paper's policy.
    Rivals: a vectorised pandas gate that names the same rows, and reading the channels once.

    train: the local training of a federation as large as the paper's on SWaT. Rivals: products of
    large square matrices in NumPy and in XLA.

    attest-full: prove batches of the simulated treatment plant under its hardened rules and verify
    them. Rivals: recorded figures of the paper's toolchain and of prototypes, not measured here.
    With --scaling: how the cost grows with the rows of a batch.

    attest-sampled: keys, proof and verification of the paper's sampled rows at its size. Rivals:
    stock circom and snarkjs on the paper's circuit, if installed (make rival).

    Other benchmarks have their own options; see 'python -m benchmarks NAME --help': reading,
    evaluation, exactness, evidence, red-team, drift, sampling, parameters, many, kills.

    Example: [bold]python -m benchmarks gate[/bold]
    """
    known("bench", name, BENCHES)
    if statistic is not None:
        known("statistic", statistic, tuple(StatisticName) if name == "attest-full" else ())
        named = StatisticName(statistic)
        _bound(tuple(rows or ()), repeats or 5, plant, named, json=json, quiet=quiet)
        return
    if scaling:
        known("bench", name, ("attest-full",))
        _scaling(tuple(rows or ()), plant, page, json=json, quiet=quiet)
        return
    if name == "attest-full":
        _attest(tuple(rows or ()), repeats or 5, plant, json=json, quiet=quiet)
        return
    if rows and len(rows) > 1:
        raise SettingError(f"bench {name!r} takes --rows once, got {len(rows)}")
    if name == "train":
        each = rows[0] if rows else 4_734
        _train(each, repeats or 3, clients, rounds, json=json, quiet=quiet)
    elif name == "attest-sampled":
        _sampled(repeats or 3, rival, thorough=thorough, json=json, quiet=quiet)
    else:
        _gate(rows[0] if rows else 1_000_000, repeats or 15, json=json, quiet=quiet)


def _attest(rows: tuple[int, ...], runs: int, plant: str, *, json: bool, quiet: bool) -> None:
    # Imported here because no other bench proves anything.
    from benchmarks.attest import full as bench_attest
    from benchmarks.attest import full_table as bench_attest_table

    known("plant", plant, bench_attest.PLANTS)
    sizes = tuple(sorted(set(rows or bench_attest.DEFAULT_ROWS)))
    silent = quiet or json
    with working(f"simulating and mining {plant!r}", quiet=silent):
        subject = bench_attest.subject(plant)
    # Each batch is proven once more to measure memory and CPU time.
    with counted("proofs", (runs + 1) * len(sizes), quiet=silent) as advance:
        measured = bench_attest.bench_attest(subject, rows=sizes, runs=runs, advance=advance)
    if json:
        emit(bench_attest_table.payload(measured))
    else:
        bench_attest_table.show(measured)


def _scaling(
    rows: tuple[int, ...], plant: str, page: Path | None, *, json: bool, quiet: bool
) -> None:
    # Imported here because no other bench proves anything.
    from benchmarks.attest import full as bench_attest
    from benchmarks.attest import scaling as bench_scaling

    known("plant", plant, bench_attest.PLANTS)
    sizes = tuple(sorted(set(rows))) or (*bench_scaling.SIZES, bench_scaling.LONGEST)
    silent = quiet or json
    with working(f"simulating and mining {plant!r}", quiet=silent):
        subject = bench_attest.subject(plant, rows=max(sizes))
    with counted("batches", len(sizes), quiet=silent) as advance:
        measured = bench_scaling.bench_scaling(subject, rows=sizes, advance=advance)
    if page is not None:
        with atomically(page) as draft:
            draft.write_text(bench_scaling.page(measured), encoding="utf-8")
    if json:
        emit(bench_scaling.payload(measured))
    else:
        bench_scaling.show(measured)


def _bound(
    rows: tuple[int, ...],
    runs: int,
    plant: str,
    statistic: StatisticName,
    *,
    json: bool,
    quiet: bool,
) -> None:
    # Imported here because no other bench proves anything.
    from benchmarks.attest import bound as bench_bound
    from benchmarks.attest import full as bench_attest

    known("plant", plant, bench_attest.PLANTS)
    sizes = rows or bench_attest.DEFAULT_ROWS
    with working(f"simulating and mining {plant!r}", quiet=quiet or json):
        subject = bench_attest.subject(plant)
    with counted("proofs", 2 * runs * len(sizes), quiet=quiet or json) as advance:
        measured = bench_bound.bench_bound(
            subject, statistic, rows=sizes, runs=runs, advance=advance
        )
    if json:
        emit(bench_bound.payload(measured))
    else:
        bench_bound.show(measured)


def _gate(rows: int, repeats: int, *, json: bool, quiet: bool) -> None:
    with working(f"measuring the gate on {rows:,} rows", quiet=quiet or json):
        measured = bench_gate(rows=rows, repeats=repeats)
    if json:
        emit(_payload(measured))
    else:
        _show(measured)


def _train(rows: int, repeats: int, clients: int, rounds: int, *, json: bool, quiet: bool) -> None:
    # Imported here because importing jax takes a second, and only this bench needs it.
    from benchmarks.speed import train as bench_train

    with working(f"training {clients} clients for {rounds} rounds", quiet=quiet or json):
        measured = bench_train.bench_train(
            clients=clients, rows=rows, rounds=rounds, repeats=repeats
        )
    if json:
        emit(bench_train.payload(measured))
    else:
        bench_train.show(measured)


def _sampled(repeats: int, build: Path, *, thorough: bool, json: bool, quiet: bool) -> None:
    # Imported here because no other bench proves anything.
    from benchmarks.attest import rival as bench_rival
    from benchmarks.attest import sampled as bench_sampled
    from benchmarks.attest import sampled_table as bench_sampled_table

    silent, equal = quiet or json, None
    rival = bench_rival.find_rival(build)
    cost: bench_rival.RivalCost | bench_rival.Absent
    with working("making keys and proving sampled rows", quiet=silent):
        subject = bench_sampled.subject()
        ours = bench_sampled.bench_sampled(subject, repeats=repeats)
    if isinstance(rival, bench_rival.Absent):
        cost = rival
    else:
        samples = 32 if thorough else 8
        with working(f"circom and snarkjs, {samples} samples (minutes)", quiet=silent):
            cost = rival.measure(samples=samples, repeats=repeats)
            equal = ours
            if samples != ours.samples:
                equal = bench_sampled.bench_sampled(subject, repeats=repeats, samples=samples)
    measured = bench_sampled_table.Comparison(ours=ours, rival=cost, equal=equal)
    if json:
        emit(bench_sampled_table.payload(measured))
    else:
        bench_sampled_table.show(measured)


def _faster_than_pandas(measured: GateBench) -> float:
    return measured.pandas.seconds / measured.ours.seconds


def _memory_passes(measured: GateBench) -> float:
    return measured.ours.seconds / measured.one_pass.seconds


def _payload(measured: GateBench) -> dict[str, object]:
    def timing(taken: Timing) -> dict[str, object]:
        return {"seconds": taken.seconds, "peak_mib": taken.peak_bytes / 2**20}

    return {
        "bench": "gate",
        "rows": measured.rows,
        "rules": measured.rules,
        "channels_read": measured.channels_read,
        "violating_rows": measured.violating_rows,
        "mined_rows": measured.mined_rows,
        "mining": timing(measured.mining),
        "ours": timing(measured.ours),
        "pandas": timing(measured.pandas),
        "one_pass": timing(measured.one_pass),
        "ratios": {
            "faster_than_pandas": _faster_than_pandas(measured),
            "memory_passes": _memory_passes(measured),
        },
    }


def _show(measured: GateBench) -> None:
    drawn = table("python -m benchmarks gate", "what", "ours", "rival", "ratio", "memory peak")
    judged = f"judge {measured.rows:,} rows by {measured.rules} rules, beside"
    ours = _duration(measured.ours)
    memory = f"{_memory(measured.ours)} / {_memory(measured.pandas)}"
    drawn.add_row(
        f"mine {measured.mined_rows:,} rows (hardened)",
        _duration(measured.mining),
        "",
        "",
        _memory(measured.mining),
    )
    drawn.add_row(
        f"{judged} pandas",
        ours,
        _duration(measured.pandas),
        f"{_faster_than_pandas(measured):.1f} times as fast",
        memory,
    )
    drawn.add_row(
        f"{judged} reading its {measured.channels_read} channels once",
        ours,
        _duration(measured.one_pass),
        f"{_memory_passes(measured):.1f} times as long",
        _memory(measured.ours),
    )
    out.print(drawn)
    out.print(f"Both gates name the same {measured.violating_rows:,} violating rows.")


def _duration(taken: Timing) -> str:
    return f"{taken.seconds:.2f} s" if taken.seconds >= 1 else f"{taken.seconds * 1e3:.1f} ms"


def _memory(taken: Timing) -> str:
    return f"{taken.peak_bytes / 2**20:,.0f} MiB"
