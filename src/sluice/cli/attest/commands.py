"""`sluice attest`: commit to a batch, prove that it satisfies the rules, verify such a proof."""

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
    statistic_beside,
    steps_before,
    under_way_beside,
    write_proof,
)
from sluice.attestation.protocol import commit as commit_batch
from sluice.attestation.protocol import prove as prove_batch
from sluice.attestation.protocol import verify as verify_proof
from sluice.attestation.systems import (
    DEFAULT_ROWS,
    Circuit,
    System,
    SystemName,
    find_system,
    resumable,
)
from sluice.attestation.systems.full import LARGEST_STATISTIC, StatisticName
from sluice.attestation.systems.sampled import SAMPLED_ROWS, SINGLE_PARTY, make_sampled
from sluice.cli.attest.guarantee import guarantee_of, sampling_of, show_guarantee
from sluice.cli.attest.proofs import (
    PUBLIC,
    open_keys,
    peak_mb,
    read_batch,
    read_bounded,
    warn_if_unsafe,
    within_memory,
)
from sluice.cli.attest.sampled import ChallengePath, challenge, export_proof, read_challenge
from sluice.cli.console import Json, PartsBar, Quiet, emit, out, working
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
from sluice.cli.paths import reads_file, reads_folder, reads_record, writes_file, writes_folder
from sluice.errors import SettingError, VerificationError
from sluice.files import demand_room

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Prove that a batch satisfies its plant's rules without showing readings.",
)

BatchPath = Annotated[
    Path,
    typer.Argument(metavar="BATCH", help="The batch's file or folder.", click_type=reads_record()),
]
KeysPath = Annotated[
    Path,
    typer.Option(
        "--keys",
        help="The folder written by 'attest setup'.",
        click_type=reads_folder("a key folder"),
    ),
]
CommitPath = Annotated[
    Path,
    typer.Option(
        "--commit", help="The commitment to the batch.", click_type=reads_file("a commitment")
    ),
]
StatisticOption = Annotated[
    StatisticName | None,
    typer.Option(
        help="Bind the batch's sums to its rows: lagged moments of every channel that a rule ties "
        "to others (full). hidden: the same sums, in one share for the coordinator and one for a "
        "helper.",
    ),
]
Rows = Annotated[str | None, typer.Option("--rows", help="Use only rows A:B; B is excluded.")]


@app.command()
def setup(
    rules: Annotated[
        Path,
        typer.Option(
            "--rules", help="The plant's rules file.", click_type=reads_file("a rules file")
        ),
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="The key folder to write.", click_type=writes_folder())
    ],
    policy: PolicyName = None,
    system: Annotated[
        SystemName,
        typer.Option(
            help="full proves every row; sampled proves drawn rows, as in the paper; unsafe "
            "reveals every row and is for tests only."
        ),
    ] = SystemName.FULL,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows of the largest batch.",
            show_default="8192 for full, 1024 for sampled",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Rows to draw (sampled).")] = 32,
    violations: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Drawn rows that may violate a rule (sampled; the paper: 1).",
            show_default="2, or more if clean batches need it",
        ),
    ] = None,
    statistic: StatisticOption = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Derive the circuit from rules and policy; write the keys for plant and coordinator.

    full has no trusted set-up: everyone with the same rules and policy derives the same circuit.
    For sampled, this command generates the keys; the party that runs it must be the coordinator,
    or a party that the coordinator trusts. With --statistic, every commitment names the sums of its
    rows, and a proof shows that they are the sums of the committed rows.

    Example: [bold]sluice attest setup --rules rules.json --out keys/[/bold]
    """
    gate = open_gate(rules, policy, allow_empty=False)
    demand_room(out_path)
    with working("deriving the circuit", quiet=quiet or json):
        if system is SystemName.SAMPLED:
            if statistic:
                raise SettingError("system 'sampled' binds no statistic; use --system full")
            most = rows or SAMPLED_ROWS
            sampling = sampling_of(gate.rules, samples, violations)
            proofs: System = make_sampled(
                out_path, gate.rules, gate.policy, sampling, rows_max=most
            )
            typer.echo(f"sluice: NOTE: {SINGLE_PARTY}", err=True)
        else:
            most = rows or DEFAULT_ROWS
            proofs = find_system(
                system, reveal_rows=system is SystemName.UNSAFE, statistic=statistic
            )
            warn_if_unsafe(proofs.name)
        folder = KeyFolder.create(out_path, proofs, gate.rules, gate.policy, rows_max=most)
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
                **_statistic_terms(circuit),
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
        if circuit.statistic:
            out.print(
                f"statistic: {circuit.statistic}; a false one passes with 2^-"
                f"{circuit.statistic_bits} for each try of a prover",
                markup=False,
            )


@app.command()
def commit(
    batch: BatchPath,
    keys: KeysPath,
    out_path: Annotated[
        Path, typer.Option("--out", help="The commitment to write.", click_type=writes_file())
    ],
    federation: Annotated[str, typer.Option(help="The federation's id.")] = FEDERATION,
    client: Annotated[str, typer.Option(help="This plant's id in the federation.")] = CLIENT,
    statistic: StatisticOption = None,
    rows: Rows = None,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Commit to a batch: sign a hiding commitment, the number of rows and the time interval.

    The command also writes the private opening (commit.opening, mode 0600), which proving needs.
    The opening must not leave the plant. Neither must keys/private, which contains the plant's
    signing key. If the keys bind a statistic, the command writes it beside the commitment
    (statistic.bin). It shows means and correlations of the channels.

    Example: [bold]sluice attest commit april.csv --keys keys/ --out commit.json[/bold]
    """
    folder = open_keys(keys)
    if statistic and folder.circuit.statistic != statistic:
        raise SettingError(
            f"{keys} binds no statistic {statistic.value!r}; make keys with 'sluice attest setup "
            f"--statistic {statistic.value}'"
        )
    loaded = read_batch(
        batch, rows, plant=plant, format_=format_, fill=fill, skip=skip, every=every,
        quiet=quiet or json,
    )  # fmt: skip
    with working(f"committing to {len(loaded):,} rows", quiet=quiet or json):
        committed = commit_batch(loaded, folder, federation=federation, client=client)
    committed.save(out_path)
    content = committed.message.content
    if json:
        emit(
            {
                "commitment": content.commitment,
                "rows": content.rows,
                "interval": {"start": content.interval.start, "end": content.interval.end},
                **({"statistic": content.statistic} if content.statistic else {}),
            }
        )
    else:
        out.print(
            f"{out_path}: commitment {content.commitment[:16]}... to {content.rows:,} rows, "
            f"{content.interval.start[:19]} to {content.interval.end[:19]}",
            markup=False,
        )
        if committed.statistic is not None:
            out.print(
                f"{statistic_beside(out_path)}: {len(committed.statistic):,} bytes, sums of the "
                "rows, which the proof will be bound to",
                markup=False,
            )


@app.command()
def prove(
    batch: BatchPath,
    keys: KeysPath,
    commit: CommitPath,
    out_path: Annotated[
        Path, typer.Option("--out", help="The proof to write.", click_type=writes_file())
    ],
    challenge: ChallengePath = None,
    rows: Rows = None,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    memory: Annotated[
        str | None,
        typer.Option(
            help="The memory that the prover may use, such as 512MB or 2GB (full). A batch that "
            "needs more is proven in segments.",
            show_default="4,096 rows at a time",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prove that the committed batch satisfies the rules; if it does not, print why and exit 3.

    A long batch is proven in segments. If the command is stopped, run it again: it goes on after
    the last segment, from a private file beside the commitment.

    Example:
    [bold]sluice attest prove april.csv --keys keys --commit commit.json --out proof.json[/bold]
    """
    folder = open_keys(keys)
    refuse_overwriting(out_path, batch, commit)
    demand_room(out_path)
    raw_challenge = read_challenge(folder, challenge)
    under_way, bar = under_way_beside(commit), PartsBar()
    system = resumable(within_memory(folder.system, memory), under_way, bar)
    committed = Committed.load(commit, folder.client_key(), system, folder.circuit)
    loaded = read_batch(
        batch, rows, plant=plant, format_=format_, fill=fill, skip=skip, every=every,
        quiet=quiet or json,
    )  # fmt: skip
    with bar.shown(f"proving {len(loaded):,} rows", quiet=quiet or json):
        started = time.perf_counter()
        proven = prove_batch(loaded, committed, challenge=raw_challenge)
        seconds = time.perf_counter() - started
    write_proof(proven, out_path)
    under_way.unlink(missing_ok=True)
    size = len(proven.message.content.proof)
    if json:
        emit({"seconds": seconds, "bytes": size, "peak_mb": peak_mb()})
    else:
        out.print(
            f"{out_path}: {size:,} bytes in {seconds:.2f} s, peak memory {peak_mb():.0f} MB",
            markup=False,
        )
        out.print(PUBLIC)


@app.command()
def verify(
    proof: Annotated[
        Path, typer.Argument(metavar="PROOF", help="The proof.", click_type=reads_file("a proof"))
    ],
    keys: KeysPath,
    commit: CommitPath,
    challenge: ChallengePath = None,
    log: Annotated[
        Path | None, typer.Option(help="The federation's log.", click_type=reads_file("a log"))
    ] = None,
    statistic_file: Annotated[
        Path | None,
        typer.Option(
            help="The statistic, if the keys bind one.",
            show_default="statistic.bin beside the commitment",
            click_type=reads_file("a statistic"),
        ),
    ] = None,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference",
            help="Check the proof with the second verifier too, which is written in Python alone "
            "(full; takes seconds).",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify a proof against its commitment; exit 0 if it is valid, 3 if it is not.

    The command needs only the commitment and the public part of keys/. Without --log it names the
    steps of docs/protocol.md that it could not check. With --reference two verifiers that share no
    code must accept the proof.

    Example: [bold]sluice attest verify proof.json --keys keys/ --commit commit.json[/bold]
    """
    folder = KeyFolder.open(keys)
    warn_if_unsafe(folder.system.name)
    most = largest_proof_document(folder.system.largest_proof(folder.circuit))
    raw_proof, raw_commit = read_bounded(proof, most), read_bounded(commit, COMMITS.largest)
    raw_challenge = read_challenge(folder, challenge)
    sums = _read_statistic(folder, commit, statistic_file)
    bound = folder.circuit.statistic
    unchecked: tuple[str, ...] = ()
    started = time.perf_counter()
    try:
        ledger = read_log(log) if log else None
        unchecked = () if ledger else NEED_A_LOG
        with working("verifying with both verifiers", quiet=quiet or json or not reference):
            verified = verify_proof(
                raw_proof,
                raw_commit,
                folder,
                challenge=raw_challenge,
                ledger=ledger,
                reference=reference,
                statistic=sums,
            )
    except VerificationError as refused:
        if json:
            passed = steps_before(refused.step, unchecked, bound=bound is not None)
            payload = _payload(started, passed, unchecked)
            outcome = {"bound": None, "step": refused.step, "reason": refused.why}
            emit({"verified": False, **payload, **_reference(reference, False), **outcome})
        typer.echo(f"sluice: not verified: {refused}", err=True)
        raise typer.Exit(3) from None
    if json:
        payload = _payload(started, verified.steps_checked, verified.steps_unchecked)
        accepted = _reference(reference, verified.reference)
        emit({"verified": True, "bound": verified.bound, **payload, **accepted})
    else:
        _show(verified, started)
        show_guarantee(folder, verified)


app.command()(challenge)
app.command(name="guarantee")(guarantee_of)
app.command(name="export")(export_proof)


def _payload(
    started: float, checked: tuple[str, ...], unchecked: tuple[str, ...]
) -> dict[str, object]:
    return {
        "milliseconds": (time.perf_counter() - started) * 1e3,
        "steps_checked": list(checked),
        "steps_unchecked": list(unchecked),
    }


def _statistic_terms(circuit: Circuit) -> dict[str, object]:
    if circuit.statistic is None:
        return {}
    return {"statistic": circuit.statistic, "statistic_bits": circuit.statistic_bits}


def _read_statistic(folder: KeyFolder, commit: Path, given: Path | None) -> bytes | None:
    """Read the statistic that the keys bind; none if they bind none and no file is given."""
    if given is None and folder.circuit.statistic is None:
        return None
    path = given or statistic_beside(commit)
    if not path.exists():
        raise SettingError(
            f"these keys bind a statistic, and {path} does not exist; give it with --statistic-file"
        )
    return read_bounded(path, LARGEST_STATISTIC)


def _reference(asked: bool, accepted: bool) -> dict[str, object]:
    return {"reference": accepted} if asked else {}


def _show(verified: Verification, started: float) -> None:
    out.print(
        f"[bold]verified[/bold] in {(time.perf_counter() - started) * 1e3:.0f} ms: the committed "
        f"batch of {verified.client!r}, {verified.rows:,} rows, satisfies the rules"
    )
    if verified.reference:
        out.print("Two verifiers accept the proof: the Rust core and the second one, in Python.")
    if verified.steps_unchecked:
        out.print(
            f"Not checked: steps {', '.join(verified.steps_unchecked)} (client is registered, "
            "commitment is logged, no earlier attestation), because no --log was given."
        )
    out.print(f"bound: {verified.bound or 'nothing'}")
    out.print(PUBLIC)
    if verified.bound:
        out.print("The statistic is exactly that of the committed rows.")
    else:
        out.print("The proof does not show that a model was trained on the committed batch.")
