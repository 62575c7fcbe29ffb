"""`sluice attest`: commit to a batch, prove that it keeps the rules, verify such a proof."""

import time
from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.log import read_log
from sluice.attestation.messages import COMMITS, largest_proof_document
from sluice.attestation.protocol import (
    CLIENT,
    FEDERATION,
    NEED_A_LOG,
    Committed,
    KeyFolder,
    Verification,
    steps_before,
    write_proof,
)
from sluice.attestation.protocol import commit as commit_batch
from sluice.attestation.protocol import prove as prove_batch
from sluice.attestation.protocol import verify as verify_proof
from sluice.attestation.systems import DEFAULT_ROWS, System, SystemName, find_system
from sluice.attestation.systems.sampled import SAMPLED_ROWS, SINGLE_PARTY, make_sampled
from sluice.cli.attest.guarantee import guarantee_of, sampling_of, show_guarantee
from sluice.cli.attest.proofs import (
    PUBLIC,
    open_keys,
    peak_mb,
    read_batch,
    read_bounded,
    warn_if_unsafe,
)
from sluice.cli.attest.sampled import ChallengePath, challenge, export_proof, read_challenge
from sluice.cli.console import Json, Quiet, emit, out, working
from sluice.cli.options import (
    Every,
    FillWith,
    FormatName,
    PlantPath,
    PolicyName,
    SkipSeconds,
    open_gate,
    refuse_overwriting,
)
from sluice.errors import VerificationError

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Prove a batch's verdict without showing readings.")

BatchPath = Annotated[Path, typer.Argument(metavar="BATCH", help="The batch's file or folder.")]
KeysPath = Annotated[Path, typer.Option("--keys", help="The folder that 'attest setup' made.")]
CommitPath = Annotated[Path, typer.Option("--commit", help="The commitment that is answered.")]
Rows = Annotated[str | None, typer.Option("--rows", help="Take rows A:B only, B left out.")]


@app.command()
def setup(
    rules: Annotated[Path, typer.Option("--rules", help="The plant's rules file.")],
    out_path: Annotated[Path, typer.Option("--out", help="The key folder to make.")],
    policy: PolicyName = None,
    system: Annotated[
        SystemName,
        typer.Option(help="full; sampled, the paper's; unsafe reveals every row: for tests only."),
    ] = SystemName.FULL,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="The largest batch, in rows (full 8192, sampled 1024)."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Rows that are drawn (sampled).")] = 32,
    violations: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Drawn rows that may violate (sampled; the paper: 1).",
            show_default="2, or more where clean batches need it",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Derive the circuit of rules and policy, and write what plant and coordinator pin.

    full has no trusted set-up: whoever has rules and policy derives the same circuit. The keys of
    sampled are made here, by one party, whom the coordinator must be or trust.

    Example: [bold]sluice attest setup --rules rules.json --out keys/[/bold]
    """
    gate = open_gate(rules, policy, allow_empty=False)
    with working("deriving the circuit", quiet=quiet or json):
        if system is SystemName.SAMPLED:
            most = rows or SAMPLED_ROWS
            sampling = sampling_of(gate.rules, samples, violations)
            found: System = make_sampled(out_path, gate.rules, gate.policy, sampling, rows_max=most)
            typer.echo(f"sluice: NOTE: {SINGLE_PARTY}", err=True)
        else:
            most = rows or DEFAULT_ROWS
            found = find_system(system, reveal_rows=system is SystemName.UNSAFE)
            warn_if_unsafe(found.name)
        folder = KeyFolder.create(out_path, found, gate.rules, gate.policy, rows_max=most)
    circuit = folder.circuit
    if json:
        emit(
            {
                "system": circuit.system,
                "circuit_id": circuit.identity,
                "columns": circuit.columns,
                "constraints": circuit.constraints,
                "proven_bits": circuit.proven_bits,
                "key_bytes": folder.public_bytes,
            }
        )
    else:
        out.print(
            f"{out_path}: circuit {circuit.identity[:16]}... of system {circuit.system}, "
            f"{circuit.columns:,} columns, {circuit.constraints:,} constraints, "
            f"batches of up to {circuit.rows_max:,} rows, "
            f"{circuit.proven_bits} bits of proven soundness",
            markup=False,
        )


@app.command()
def commit(
    batch: BatchPath,
    keys: KeysPath,
    out_path: Annotated[Path, typer.Option("--out", help="The commitment to write.")],
    federation: Annotated[str, typer.Option(help="The federation's id.")] = FEDERATION,
    client: Annotated[str, typer.Option(help="This plant's id there.")] = CLIENT,
    rows: Rows = None,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Commit to a batch: a hiding commitment, its rows and its time, signed.

    The private opening is written beside it (commit.opening, mode 0600): proving needs it, and it
    must not leave the plant. So must keys/private, where the plant's signing key is made.

    Example: [bold]sluice attest commit april.csv --keys keys/ --out commit.json[/bold]
    """
    folder = open_keys(keys)
    loaded = read_batch(
        batch, rows, plant=plant, format_=format_, fill=fill, skip=skip, every=every,
        quiet=quiet or json,
    )  # fmt: skip
    with working(f"committing to {len(loaded):,} rows", quiet=quiet or json):
        committed = commit_batch(loaded, folder, federation=federation, client=client)
    committed.save(out_path)
    told = committed.message.content
    if json:
        emit(
            {
                "commitment": told.commitment,
                "rows": told.rows,
                "interval": {"start": told.interval.start, "end": told.interval.end},
            }
        )
    else:
        out.print(
            f"{out_path}: commitment {told.commitment[:16]}... to {told.rows:,} rows, "
            f"{told.interval.start[:19]} to {told.interval.end[:19]}",
            markup=False,
        )


@app.command()
def prove(
    batch: BatchPath,
    keys: KeysPath,
    commit: CommitPath,
    out_path: Annotated[Path, typer.Option("--out", help="The proof to write.")],
    challenge: ChallengePath = None,
    rows: Rows = None,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prove that the committed batch keeps the rules; exit 3 where it does not, and say why here.

    Example:
    [bold]sluice attest prove april.csv --keys keys --commit commit.json --out proof.json[/bold]
    """
    folder = open_keys(keys)
    refuse_overwriting(out_path, batch, commit)
    raw_challenge = read_challenge(folder, challenge)
    committed = Committed.load(commit, folder.client_key(), folder.system, folder.circuit)
    loaded = read_batch(
        batch, rows, plant=plant, format_=format_, fill=fill, skip=skip, every=every,
        quiet=quiet or json,
    )  # fmt: skip
    with working(f"proving {len(loaded):,} rows", quiet=quiet or json):
        started = time.perf_counter()
        proven = prove_batch(loaded, committed, challenge=raw_challenge)
        seconds = time.perf_counter() - started
    write_proof(proven, out_path)
    size = len(proven.message.content.proof)
    if json:
        emit({"seconds": seconds, "bytes": size, "peak_mb": peak_mb()})
    else:
        out.print(
            f"{out_path}: {size:,} bytes in {seconds:.2f} s, {peak_mb():.0f} MB at most",
            markup=False,
        )
        out.print(PUBLIC)


@app.command()
def verify(
    proof: Annotated[Path, typer.Argument(metavar="PROOF", help="The proof.")],
    keys: KeysPath,
    commit: CommitPath,
    challenge: ChallengePath = None,
    log: Annotated[Path | None, typer.Option(help="The federation's log.")] = None,
    json: Json = False,
) -> None:
    """Verify a proof against its commitment; exit 0 where it holds, 3 where it does not.

    Needs only the public part of keys/ and the commitment. Without the log it says which steps of
    docs/protocol.md it could not check.

    Example: [bold]sluice attest verify proof.json --keys keys/ --commit commit.json[/bold]
    """
    folder = KeyFolder.open(keys)
    warn_if_unsafe(folder.system.name)
    most = largest_proof_document(folder.system.largest_proof)
    raw_proof, raw_commit = read_bounded(proof, most), read_bounded(commit, COMMITS.largest)
    raw_challenge = read_challenge(folder, challenge)
    unchecked: tuple[str, ...] = ()
    started = time.perf_counter()
    try:
        ledger = read_log(log) if log else None
        unchecked = () if ledger else NEED_A_LOG
        found = verify_proof(raw_proof, raw_commit, folder, challenge=raw_challenge, ledger=ledger)
    except VerificationError as refused:
        if json:
            payload = _told(started, steps_before(refused.step, unchecked), unchecked)
            emit({"verified": False, **payload, "step": refused.step, "reason": refused.why})
        typer.echo(f"sluice: not verified: {refused}", err=True)
        raise typer.Exit(3) from None
    if json:
        emit({"verified": True, **_told(started, found.steps_checked, found.steps_unchecked)})
    else:
        _show(found, started)
        show_guarantee(folder, found)


app.command()(challenge)
app.command(name="guarantee")(guarantee_of)
app.command(name="export")(export_proof)


def _told(
    started: float, checked: tuple[str, ...], unchecked: tuple[str, ...]
) -> dict[str, object]:
    return {
        "milliseconds": (time.perf_counter() - started) * 1e3,
        "steps_checked": list(checked),
        "steps_unchecked": list(unchecked),
    }


def _show(found: Verification, started: float) -> None:
    out.print(
        f"[bold]verified[/bold] in {(time.perf_counter() - started) * 1e3:.0f} ms: the committed "
        f"batch of {found.client!r}, {found.rows:,} rows, keeps the rules"
    )
    if found.steps_unchecked:
        out.print(
            f"not checked, for want of a log: steps {', '.join(found.steps_unchecked)} (a known "
            "client, a logged commitment, its first attestation)"
        )
    out.print(PUBLIC)
    out.print("It speaks of the committed batch; that a model was trained on it is not proven.")
